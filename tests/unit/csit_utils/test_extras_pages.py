"""What is on the page of a test besides its rates: power, bursts, losses, the generator, and how to run it again."""

import base64
import hashlib
import shlex
from itertools import pairwise

from csit_utils.report.details.capsule import capsule, command
from csit_utils.report.details.energy import energy_figure, energy_lines, energy_notes, load_words
from csit_utils.report.details.machine_checks import qualification_figure, qualification_view
from csit_utils.report.details.testview import burst_figure, bursts_text
from csit_utils.report.details.trial_plots import loss_pattern_figure, loss_patterns
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.measurements.energy import IDLE, Energy
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.result import MeasurementRequest, Rerun
from resources.libraries.python.search.losses import flow_in_words, worst_flow
from resources.libraries.python.studies.density.model import DensityRecord
from tests.builders import cpus, plan_of, qualification, qualified_point
from tests.loaded import rows_of_tests
from tests.unit.csit_utils.builders import IMIX, PROFILE, does_not_fit, result
from tests.unit.csit_utils.datasets import dataset_of, plain
from tests.unit.csit_utils.measured_extras import BURSTS, LOSSES, METERED, power_at

UNMETERED = Energy(
    trial_s=10.0,
    duts=("DUT1",),
    loads=(power_at("PDR0", None), power_at("PDR90", None, 2e6, 1.9)),
    unmetered={"DUT1": "no counters"},
)


def test_each_load_has_power_and_energy_per_packet_in_a_line_and_its_power_in_the_figure() -> None:
    lines = {line.label: line for line in energy_lines(METERED)}
    assert lines["PDR50"].power == "90.00 ± 0.5 W"
    assert (lines["PDR50"].joules_per_packet, lines["PDR50"].above_idle) == (90e-6, 30e-6)
    assert lines["PDR0"].joules_per_packet is None
    assert lines["PDR90"].nodes == "DUT1 by powercap in 9.5 s: package-0 99.00 W"
    assert load_words("PDR50") == "50 % of PDR" and load_words(IDLE) == "before the deployment"
    assert energy_lines(None) == () and energy_notes(None) == ()
    power, idle = energy_figure("e", "t", METERED, simulated=False).variants[""]["data"]
    assert (power["x"], power["y"], power["error_y"]["array"]) == ([0, 1, 2], [80, 90, 99], [0.5, 0.5, 0.5])
    assert idle["y"] == [60, 60, 60]


def test_without_a_meter_the_figure_has_busy_cpus_and_a_note_says_why() -> None:
    figure = energy_figure("e", "t", UNMETERED, simulated=False)
    assert figure.variants[""]["data"][0]["y"] == [1.0, 1.9]
    shared = plan_of("local", "CSC", cores=cpus(8))
    assert energy_notes(UNMETERED) == energy_notes(UNMETERED, shared) == ("DUT1: no counters.",)
    (note,) = energy_notes(METERED, shared)
    assert note.startswith("The generator runs on the same machine")
    for bare in (UNMETERED.model_copy(update={"loads": (power_at("PDR0", None, busy=None),)}), None):
        assert energy_figure("e", "t", bare, simulated=False) is None


def test_bursts_have_a_sentence_and_a_figure_with_a_point_for_each_repetition() -> None:
    assert bursts_text(BURSTS) == (
        "Back-to-back: 310 ± 10 frames of each flow at 1.00 Mpps, a buffer of 465 µs (620 µs implied); "
        "3 repetitions from 300 to 320 frames, 45 bursts."
    )
    assert bursts_text(BURSTS.model_copy(update={"endless": True})).startswith("Back-to-back: at least 310 ")
    assert bursts_text(None) == ""
    assert burst_figure("b", "t", BURSTS, simulated=False).variants[""]["data"][0]["y"] == [300, 310, 320]
    for missing in (BURSTS.model_copy(update={"frames": (300,)}), None):
        assert burst_figure("b", "t", missing, simulated=False) is None


def test_the_table_has_a_sentence_for_every_flow_and_the_test_one_of_the_worst() -> None:
    lines = loss_patterns(LOSSES)
    assert [(line.load, line.direction) for line in lines] == [
        (load, direction) for load in ("NDR", "PDR") for direction in ("forward", "reverse")
    ]
    assert lines[0].sentence == "none of 20,000 packets lost" and not lines[0].largest_extent
    lossy = lines[2]
    assert " at random; " in lossy.sentence and "packets reordered" in lossy.sentence
    assert lossy.lost == LOSSES[1].flows[0].lost and lossy.longest >= 1
    assert lossy.largest_extent and lossy.three_reordered
    sentences = {row.label: flow_in_words(worst_flow(row)) for row in LOSSES}
    made = plain(1, 1, 2e5).model_copy(update={"losses": LOSSES, "loss_patterns": sentences})
    assert DensityRecord.model_validate_json(made.model_dump_json()) == made
    (row,) = rows_of_tests(dataset_of(made))
    column = "NDR: instance 1 forward: none of 20,000 packets lost; PDR: instance 1 forward: 1 in "
    assert row.loss_patterns.startswith(column)


def test_the_figure_has_losses_over_time_by_length_and_the_order() -> None:
    figure = loss_pattern_figure("losses-1", "loss patterns", LOSSES, simulated=True)
    assert figure.simulated
    assert figure.selectors == (("PDR",), ("over time", "loss periods by length", "reorder density"))
    over_time = figure.variants["PDR|over time"]["data"]
    assert len(over_time) == 1 and len(over_time[0]["x"]) == len(LOSSES[1].flows[0].listed)
    assert loss_pattern_figure("losses-1", "loss patterns", LOSSES[:1], simulated=True) is None


FOUND = qualification(qualified_point(), qualified_point(size="1518B", loss_free_pps=None))


def test_the_qualification_says_which_line_bounds_the_test_and_has_the_rates_of_both() -> None:
    view = qualification_view(FOUND, frame("IMIX"), 20)
    assert (view.bound, view.points) == (FOUND.points[0], FOUND.points)
    assert view.caption.startswith("auto 1 on veth, 1 CPU of m; XDP live frames; trials of 0.2 s")
    assert qualification_view(None, frame("64B"), 2) is None
    assert qualification_figure("q", "t", None, [], simulated=False) is None
    view = qualification_view(FOUND, frame("64B"), 2)
    figure = qualification_figure("q", "t", view, [("NDR", 712e3), ("PDR", None)], simulated=False)
    no_loss, _, arrived, ndr = figure.variants[""]["data"]
    assert no_loss["x"] == ["64B, 2 flows", "1518B, 2 flows"]
    assert no_loss["y"] == [1.0, None] and arrived["y"] == [1.2, 1.2]
    assert (ndr["name"], ndr["x"], ndr["y"]) == ("NDR of this test", ["64B, 2 flows"], [0.712])
    assert figure.variants[""]["layout"]["yaxis"]["title"]["text"] == "rate of all flows, Mpps"


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


def test_the_plan_that_is_saved_has_the_plans_digest() -> None:
    one = result(CSC, 2, 2)
    href = capsule(one).plan_href
    kind, packed = href.split(",")
    assert kind == "data:application/json;base64"
    assert hashlib.sha256(base64.b64decode(packed)).hexdigest() == digest_of_model(one.plan)
    assert capsule(does_not_fit(CSC, 8, 2)).plan_href is None


def test_what_a_record_says_runs_no_other_command() -> None:
    evil = "x; rm -rf /\nreboot"
    rerun = RERUN.model_copy(update={"topology": evil, "suite": evil})
    one = result(CSC, 1, 1, rerun=rerun, test_id=evil, test_name=evil, drivers={"vswitch": evil})
    names = dict.fromkeys(("kernel", "command_line", "git_revision"), evil)
    environment = one.environment.model_copy(update={**names, "versions": {evil: evil}, "settings": {evil: evil}})
    words = shlex.split(capsule(one.model_copy(update={"environment": environment})).text, comments=True)
    assert words[:5] == ["git", "checkout", evil, "./csit", "robot"]
    assert words[-3:] == ["--test", evil, evil]
    assert not {"rm", "reboot", ";"} & set(words)
