"""Power and energy per packet on the page of a test, and as columns."""

from csit_utils.report.details.energy import energy_figure, energy_lines, energy_notes, load_words
from resources.libraries.python.model.measurements.energy import IDLE, Energy
from tests.builders import cpus, plan_of
from tests.unit.csit_utils.measured_extras import METERED, power_at

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
