"""Power from readings of meters, energy per packet, and what is said where there are none."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.energy import IDLE, Energy, MeterSeries
from resources.libraries.python.model.measurements.trial import Direction, FlowLatency, Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.search.energy import (
    EnergyReadings,
    certain_window,
    energy_in_words,
    mean_power,
    measure_energy,
    node_powers,
)
from tests.builders import finished

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
BEGAN_S = BEGAN.timestamp()
RANGE_J = 262143.32885


def counter(
    watts: float, seconds: float = 10.0, *, first_j: float = 100.0, domain: str = "package-0", counts: bool = True
) -> MeterSeries:
    """An energy counter that is read ten times a second."""
    times_s = [BEGAN_S + index / 10 for index in range(round(seconds * 10) + 1)]
    return MeterSeries(
        node="DUT1",
        meter="powercap",
        domain=domain,
        counts=counts,
        quantity="energy",
        samples=tuple((at_s, (first_j + watts * (at_s - BEGAN_S)) % RANGE_J) for at_s in times_s),
        resolution=61e-6,
        interval_s=0.001,
        wraps_at_j=RANGE_J,
    )


def powers(*watts: float, interval_s: float = 1.0) -> MeterSeries:
    """A BMC that is read twice a second."""
    return MeterSeries(
        node="DUT1",
        meter="ipmi",
        domain="system",
        counts=True,
        quantity="power",
        samples=tuple((BEGAN_S + index / 2, value) for index, value in enumerate(watts)),
        resolution=1.0,
        interval_s=interval_s,
    )


def result_of(trial: Trial, *, received: int) -> TrialResult:
    flow = FlowLatency(
        instance=1,
        direction=Direction.FORWARD,
        **{"sent": 10, "received": 10, "min_ns": 1, "mean_ns": 1.0, "p50_ns": 1, "p90_ns": 1, "p99_ns": 36_000},
        **{"p999_ns": 1, "max_ns": 1, "histogram": ""},
    )
    return finished(trial, (received, received), latency=(flow,))


@given(st.floats(1, 1000), st.floats(0, RANGE_J - 1e-3))
def test_a_counter_gives_the_power_also_where_it_starts_again(watts: float, first_j: float) -> None:
    found, error_w, seconds = mean_power(counter(watts, first_j=first_j))
    assert found == pytest.approx(watts, rel=1e-6) and seconds == pytest.approx(10)
    assert error_w == pytest.approx((watts * 0.001 + 61e-6) / 10)


def test_a_counter_without_range_that_goes_back_is_refused() -> None:
    broken = counter(100.0, first_j=RANGE_J - 50).model_copy(update={"wraps_at_j": None})
    with pytest.raises(Unsupported, match="an energy counter went back from"):
        mean_power(broken)


def test_only_the_time_in_which_traffic_was_sent_for_certain_counts() -> None:
    window = certain_window(BEGAN_S, BEGAN_S + 9.5, 8.0)
    assert list(window) == pytest.approx([BEGAN_S + 1.5, BEGAN_S + 8.0])
    # 50 W until 1.5 s, 200 W until 8 s, 50 W again
    course = [50 * min(at, 1.5) + 200 * max(0, min(at, 8) - 1.5) + 50 * max(0, at - 8) for at in range(10)]
    series = counter(1.0).model_copy(update={"samples": tuple((BEGAN_S + at, j) for at, j in enumerate(course))})
    watts, _, seconds = mean_power(series, window)
    assert [watts, seconds] == pytest.approx([200.0, 6.0])
    with pytest.raises(Unsupported, match="powercap package-0 has 1 readings while traffic was sent"):
        mean_power(series, (BEGAN_S + 2.5, BEGAN_S + 3.5))


def test_readings_of_the_first_interval_are_of_a_time_before() -> None:
    watts, error_w, seconds = mean_power(powers(90, 90, 200, 200, 200, 200))
    assert (watts, error_w, seconds) == (200.0, 0.5, 2.5)
    _, error_w, _ = mean_power(powers(90, 90, 198, 202, 198, 202))
    assert error_w == pytest.approx(0.5 + 2.309 / 2.5**0.5, rel=1e-3)  # 2.5 updates in 2.5 s
    with pytest.raises(Unsupported, match="ipmi system has no reading of traffic alone: its interval is 5 s"):
        mean_power(powers(90, 90, 200, interval_s=5.0))


def test_domains_that_are_parts_of_others_do_not_count_twice() -> None:
    every = [
        counter(100.0),
        counter(90.0, domain="package-1"),
        counter(12.0, domain="package-0/dram"),
        counter(70.0, domain="package-0/core", counts=False),
    ]
    (node,) = node_powers(every)
    assert node.watts == pytest.approx(202.0) and node.domains["package-0/core"] == pytest.approx(70.0)
    assert node.error_w == pytest.approx((202 * 0.001 + 3 * 61e-6) / 10)


def test_a_machine_whose_meter_has_parts_only_has_their_sum() -> None:
    (node,) = node_powers([counter(40.0, domain="psys", counts=False)])
    assert node.watts == pytest.approx(40.0)


def measured(*, metered: bool = True, pdr_pps: float | None = 1e6) -> tuple[Energy, list[Trial | None]]:
    asked: list[Trial | None] = []

    def watch(trial: Trial | None) -> EnergyReadings:
        asked.append(trial)
        watts = 100.0 + (trial.load_pps * 50e-6 if trial else 0.0)
        result = result_of(trial, received=round(trial.load_pps * trial.duration_s)) if trial else None
        series, missing = ((counter(watts),), {}) if metered else ((), {"DUT1": "no counters"})
        return EnergyReadings(series, missing, 1.5, result, (BEGAN_S, BEGAN_S + 10) if trial else None)

    idle = EnergyReadings((counter(60.0),) if metered else ())
    found = measure_energy(watch, frame("64B"), pdr_pps, 10.0, 1000.0, duts=("DUT1",), idle=idle)
    return found, asked


def test_loads_are_shares_of_pdr_and_the_heaviest_is_first() -> None:
    found, asked = measured()
    assert [trial and trial.load_pps for trial in asked] == [9e5, 5e5, 1e5, None]
    assert [row.label for row in found.loads] == [IDLE, "PDR0", "PDR10", "PDR50", "PDR90"]
    each = found.joules_per_packet("PDR50")
    assert each is not None and list(each) == pytest.approx([125 / 5e5, 0.0125061 / 5e5], rel=1e-3)
    above = found.joules_per_packet("PDR50", IDLE)
    assert above is not None and above[0] == pytest.approx(65 / 5e5) and above[1] > 0.0125 / 5e5
    assert found.joules_per_packet("PDR0") is None
    row = found.at("PDR90")
    assert row is not None and row.p99_ns == 36_000 and row.busy_cpus == 1.5


def test_without_pdr_there_is_no_load() -> None:
    found, asked = measured(pdr_pps=None)
    assert asked == [None] and [row.label for row in found.loads] == [IDLE, "PDR0"]


def test_a_trial_whose_readings_came_too_late_is_done_again_and_twice_as_long() -> None:
    asked: list[Trial | None] = []

    def watch(trial: Trial | None) -> EnergyReadings:
        """Readings of a machine that takes 1.5 s to prepare a trial, and as long to end it."""
        asked.append(trial)
        if trial is None:
            return EnergyReadings((counter(100.0),))
        window = certain_window(BEGAN_S, BEGAN_S + trial.duration_s + 3.0, trial.duration_s)
        return EnergyReadings((counter(100.0),), {}, 1.5, result_of(trial, received=1), window)

    found = measure_energy(watch, frame("64B"), 1e6, 1.0, 0.0, duts=("DUT1",), idle=None)
    assert [trial.duration_s for trial in asked if trial] == 3 * [1.0, 2.0, 4.0]
    assert asked[-1] is None
    for at in found.loads:
        power = found.watts(at.label)
        assert power and power[0] == pytest.approx(100.0) and at.remark is None
    asked.clear()
    found = measure_energy(watch, frame("64B"), 1e6, 0.25, 0.0, duts=("DUT1",), idle=None)
    assert [trial.duration_s for trial in asked if trial] == 3 * [0.25, 0.5, 1.0]
    row = found.at("PDR50")
    assert row and not row.nodes and row.remark and "0 readings while traffic was sent" in row.remark


def test_a_trial_is_not_done_again_for_a_counter_that_went_back() -> None:
    asked: list[Trial | None] = []

    def watch(trial: Trial | None) -> EnergyReadings:
        asked.append(trial)
        broken = counter(100.0, first_j=RANGE_J - 50).model_copy(update={"wraps_at_j": None})
        return EnergyReadings((broken,), {}, 1.5, trial and result_of(trial, received=1))

    found = measure_energy(watch, frame("64B"), 1e6, 10.0, 0.0, duts=("DUT1",), idle=None)
    assert len(asked) == 4
    row = found.at("PDR50")
    assert row and row.remark and "went back" in row.remark


def test_a_node_without_a_meter_is_named_and_the_rest_is_measured() -> None:
    found, _ = measured(metered=False)
    assert found.watts("PDR90") is None and found.joules_per_packet("PDR90") is None
    said = energy_in_words(found)
    assert said[-1] == "DUT1: no counters" and said[-2] == "PDR90 power unknown, 1.50 data CPUs busy, p99 36.0 µs"


def test_energy_of_two_systems_under_test_needs_both_meters() -> None:
    found, _ = measured()
    both = found.model_copy(update={"duts": ("DUT1", "DUT2")})
    assert both.watts("PDR90") is None
