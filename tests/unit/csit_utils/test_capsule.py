"""The commands that run a test again."""

import base64
import hashlib
import shlex
from itertools import pairwise

from csit_utils.report.details.capsule import capsule, command
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.result import MeasurementRequest, Rerun
from tests.unit.csit_utils.builders import IMIX, PROFILE, does_not_fit, result

CSC = ServiceType.CSC
RERUN = Rerun(
    suite="tests/density/csc-ndrpdr.robot",
    topology="topologies/sim.yaml",
    topology_digest="d" * 64,
    variables={"CELLS": "1x1,4x2", "SEARCH": "quick,width=0.02", "FRAMES": "64B,IMIX", "PRIORS": ""},
)


def test_the_command_asks_for_this_cell_and_no_other() -> None:
    cell = Cell(service_type=CSC, nf_chains=4, nf_nodes=2, nf_sizes=(NfSize.ONE, NfSize.HALF), vs_dtc=2)
    asked = MeasurementRequest(test_type=TestType.NDRPDR, cell=cell, frame=IMIX, profile=PROFILE)
    argv = command(result(CSC, 4, 2, rerun=RERUN, asked=asked, test_name="IMIX-2c-eth[x]"))
    assert argv[:2] == ["./csit", "robot"]
    assert [word for before, word in pairwise(argv) if before == "-v"] == [
        "TOPOLOGY:topologies/sim.yaml",
        "CELLS:4x2",
        "NF_SIZES:1c+0.5c",
        "VSWITCH:2",
        "FRAMES:IMIX",
        "SEARCH:quick,width=0.02",
    ]
    assert argv[-3:] == ["--test", "IMIX-2c-eth[[]x]", "tests/density/csc-ndrpdr.robot"]


def test_an_older_record_gives_a_command_that_says_what_is_guessed() -> None:
    one = result(CSC, 1, 1, test_id="Density.Csc-Ndrpdr.64B-0.5c-t", test_name="64B-0.5c-t")
    argv = command(one)
    assert argv[argv.index("--suite") + 1] == "Csc-Ndrpdr"
    assert argv[-1] == "tests/density"
    assert "the one below is a guess" in capsule(one).text


def test_the_plan_that_is_saved_has_the_plans_digest() -> None:
    one = result(CSC, 2, 2)
    assert one.plan is not None
    href = capsule(one).plan_href
    kind, packed = href.split(",")
    assert kind == "data:application/json;base64"
    assert hashlib.sha256(base64.b64decode(packed)).hexdigest() == digest_of_model(one.plan)
    assert capsule(does_not_fit(CSC, 8, 2)).plan_href is None


def test_what_a_record_says_runs_no_other_command() -> None:
    evil = "x; rm -rf /\nreboot"
    rerun = RERUN.model_copy(update={"topology": evil, "suite": evil})
    one = result(CSC, 1, 1, rerun=rerun, test_id=evil, test_name=evil, drivers={"vswitch": evil})
    environment = one.environment.model_copy(
        update={
            **dict.fromkeys(("kernel", "command_line", "git_revision"), evil),
            "versions": {evil: evil},
            "settings": {evil: evil},
        }
    )
    text = capsule(one.model_copy(update={"environment": environment})).text
    words = shlex.split(text, comments=True)
    assert words[:2] == ["git", "checkout"]
    assert words[2] == evil
    assert words[3:5] == ["./csit", "robot"]
    assert words[-3:] == ["--test", evil, evil]
    assert not {"rm", "reboot", ";"} & set(words)
