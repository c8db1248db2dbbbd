"""Energy on the page of a test, as columns and in comparisons, and back-to-back frames on that page."""

from typing import Any

from csit_utils.dataset.rows import TestRow
from csit_utils.report.details.energy import energy_figure, energy_lines, energy_notes, load_words
from csit_utils.report.details.testview import burst_figure, bursts_text
from csit_utils.studies.density.pages.energy import energy_blocks
from resources.libraries.python.model.measurements.energy import IDLE, Energy
from tests.builders import cpus, plan_of
from tests.unit.csit_utils import histories
from tests.unit.csit_utils.measured_extras import BURSTS, METERED, power_at

UNMETERED = Energy(
    trial_s=10.0,
    duts=("DUT1",),
    loads=(power_at("PDR0", None), power_at("PDR90", None, 2e6, 1.9)),
    unmetered={"DUT1": "no counters"},
)


def test_a_line_for_each_load_has_power_and_energy_per_packet() -> None:
    lines = {line.label: line for line in energy_lines(METERED)}
    assert lines["PDR50"].power == "90.00 ± 0.5 W"
    assert lines["PDR50"].joules_per_packet == 90e-6 and lines["PDR50"].above_idle == 30e-6
    assert lines["PDR0"].joules_per_packet is None
    assert lines["PDR90"].nodes == "DUT1 by powercap in 9.5 s: package-0 99.00 W"
    assert load_words("PDR50") == "50 % of PDR" and load_words(IDLE) == "before the deployment"
    assert energy_lines(None) == () and energy_notes(None) == ()


def test_the_figure_has_power_with_its_uncertainty_over_the_rate() -> None:
    figure = energy_figure("e", "t", METERED, simulated=False)
    power, idle = figure.variants[""]["data"]
    assert (power["x"], power["y"], power["error_y"]["array"]) == ([0, 1, 2], [80, 90, 99], [0.5, 0.5, 0.5])
    assert idle["y"] == [60, 60, 60]


def test_without_a_meter_the_figure_has_busy_cpus_and_a_note_says_why() -> None:
    figure = energy_figure("e", "t", UNMETERED, simulated=False)
    assert figure is not None and figure.variants[""]["data"][0]["y"] == [1.0, 1.9]
    assert energy_notes(UNMETERED) == ("DUT1: no counters.",)
    shared = plan_of("local", "CSC", cores=cpus(8))
    assert energy_notes(UNMETERED, shared) == ("DUT1: no counters.",)
    assert energy_notes(METERED, shared) == (
        "The generator runs on the same machine: its power is part of that of the system under test.",
    )
    bare = UNMETERED.model_copy(update={"loads": (power_at("PDR0", None, busy=None),)})
    assert (
        energy_figure("e", "t", bare, simulated=False) is None
        and energy_figure("e", "t", None, simulated=False) is None
    )


def test_the_sentence_has_the_mean_the_range_and_both_times() -> None:
    assert bursts_text(BURSTS) == (
        "Back-to-back: 310 ± 10 frames of each flow at 1.00 Mpps, a buffer of 465 µs (620 µs implied); "
        "3 repetitions from 300 to 320 frames, 45 bursts."
    )
    assert bursts_text(BURSTS.model_copy(update={"endless": True})).startswith("Back-to-back: at least 310 ")
    assert bursts_text(None) == ""


def test_the_figure_has_a_point_for_each_repetition() -> None:
    figure = burst_figure("b", "t", BURSTS, simulated=False)
    assert figure is not None and figure.variants[""]["data"][0]["y"] == [300, 310, 320]
    single = BURSTS.model_copy(update={"frames": (300,)})
    assert burst_figure("b", "t", single, simulated=False) is None
    assert burst_figure("b", "t", None, simulated=False) is None


def row(waiting: str | None, watts: float | None, **more: Any) -> TestRow:
    values: dict[str, Any] = {
        "anchor": f"{waiting}-{watts}",
        "waiting": waiting,
        "pdr0_w": watts,
        "pdr50_w": watts,
        "pdr50_j_per_packet": None if watts is None else watts / 5e5,
        "pdr0_busy_cpus": 1.0,
        "pdr50_busy_cpus": 1.0,
        "pdr50_energy_p99_ns": 36_000,
    }
    return histories.row(1e6, testbed="local-ovs", **(values | more))


def test_two_ways_of_waiting_are_two_columns_of_one_table() -> None:
    (block,) = energy_blocks([row("never sleep", 100.0), row("sleeping up to 100 µs", 80.0)])
    assert block.columns == ("local-ovs: never sleep", "local-ovs: sleeping up to 100 µs")
    half = next(line for line in block.lines if line.load == "50 % of PDR")
    assert [cell.watts for cell in half.cells] == [100.0, 80.0]
    assert [cell.joules_per_packet for cell in half.cells] == [2e-4, 1.6e-4]
    assert [cell.received_pps for cell in half.cells] == [5e5, 5e5]
    assert [trace["y"][0] for trace in block.figure.variants[""]["data"]] == [100.0, 80.0]


def test_the_newest_test_of_a_column_is_shown() -> None:
    newer = row("never sleep", 90.0, started_at="2026-12-02T00:00:00+00:00")
    (block,) = energy_blocks([newer, row("never sleep", 100.0)])
    assert [cell.watts for cell in block.lines[0].cells] == [90.0]


def test_other_cells_and_simulated_ones_are_apart() -> None:
    rows = [row("a", 1.0), row("a", 1.0, nf_chains=2), row("a", 1.0, simulated=True)]
    assert len(energy_blocks(rows)) == 3
    assert energy_blocks([row("a", None, pdr0_busy_cpus=None)]) == []


def test_without_a_meter_busy_cpus_are_drawn() -> None:
    (block,) = energy_blocks([row(None, None)])
    assert not block.metered and block.columns == ("local-ovs",)
    assert block.figure.variants[""]["data"][0]["y"] == [1.0, None, 1.0, None]
