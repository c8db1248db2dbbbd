"""What is refused before anything starts: paths that do not exist, by every command; `local` without root."""

from pathlib import Path

import pytest

from csit_utils.cli import make_app
from csit_utils.commands.runs import local as module
from csit_utils.commands.runs.night import OPENING_S
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import ServiceType, TestType
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.paths import LOCAL_TOPOLOGY, PROJECT
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.density.planning.extras import Extras
from resources.libraries.python.studies.density.planning.extras import test_s as planned_test_s
from resources.libraries.python.studies.density.planning.selection import parse_selection
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.robot_output import write_output_xml

SIM = str(PROJECT / "topologies" / "sim.yaml")
SPECS = PROJECT / "tests" / "characterization" / "specs"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_output_xml(tmp_path_factory.mktemp("run") / "output.xml", [result(ServiceType.CSC, 1, 1)])


@pytest.mark.parametrize(
    "line",
    [
        "answer {nix} --rate 1kpps", "bisect {nix}", "compare {nix} {output}", "compare {output} {output} --data {nix}",
        "compare {output} label=x --data {nix}", "export {nix} --uti -o {tmp}", "gate {output} {output} --data {nix}",
        "import {nix} -o {tmp}/set", "local --cold --priors {nix}", f"local -t {SIM} --priors {{nix}}",
        "local --resume {nix}", f"night {SIM} --data {{nix}}",
        f"night {SIM} --data {{output}} --data {{nix}}",
        "outcome {nix}", "place {nix}", "profile {nix}", "regoal {nix}", "show {nix}",
        "report {nix} -o {tmp}/p", "suspects {nix}", "trend {nix}", "why {nix}", "why {output} {output} --data {nix}",
        f"size {{nix}} {SPECS / 'snort' / 'workload.json'}", "chains {nix}", "interference {nix}", "outage {nix}",
        "stateful {nix}", "plan {nix}", "convert {nix}", "robot --resume {nix}",
    ],
)  # fmt: skip
def test_a_path_that_does_not_exist_is_refused(
    line: str, output: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    nix = tmp_path / "nix"
    words = line.format(nix=nix, output=output, tmp=tmp_path).split()
    try:
        status, said = make_app(words)(words, standalone_mode=False), ""
    except CsitError as error:
        status, said = 2, str(error)
    said += capfd.readouterr().err
    assert str(nix) in said
    assert ("--data" in said) <= ("--data" in line)
    assert status


def test_data_of_which_nothing_can_be_read_plan_no_night(tmp_path: Path) -> None:
    (first := tmp_path / "first").mkdir()
    words = ["night", SIM, "--cells", "1x1", "--types", "CSC", "--tests", "MRR", "--data"]
    assert make_app(words)([*words, str(first)], standalone_mode=False) in {None, 0}
    (first / "output.xml").write_text("<html/>", encoding="utf-8")
    for data in (first, first / "output.xml"):
        with pytest.raises(ConfigError, match=r"output\.xml: no result, looks like"):
            make_app(words)([*words, str(data)], standalone_mode=False)


def test_all_texts_say_how_long_the_default_matrix_is_planned_to_take() -> None:
    topology = load_topology(LOCAL_TOPOLOGY)
    cells = parse_selection(service_types="CSC,CSP,VSC", cells=module.CELLS, nf_sizes="1c").cells()
    chosen = [each for each in cells if each.service_type is not ServiceType.VSC or each.locator == "1R1C"]
    planned_s = sum(planned_test_s(topology, cell, QUICK, TestType.NDRPDR, Extras()) for cell in chosen)
    assert round((OPENING_S[World.LOCAL] + planned_s) / 60) == 6
    for path in ("README.md", "docs/how-to/run-on-a-laptop.md"):
        assert "six minutes" in (PROJECT / path).read_text(encoding="utf-8")
    assert "six minutes" in " ".join((module.local.__doc__ or "").split())


def test_without_root_this_machine_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    refusals = {"local-vpp": "^local needs root to make network namespaces; as another user: ", "sim": "nix"}
    for topology, sentence in refusals.items():  # the simulated testbed needs none
        words = ["local", "--topology", str(PROJECT / "topologies" / f"{topology}.yaml"), "--types", "nix"]
        with pytest.raises(ConfigError, match=sentence):
            make_app(["local"])(words, standalone_mode=False)
