"""Power from readings of meters, energy per packet, and what is said where there are none."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.energy import IDLE, Energy, MeterSeries
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
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
from tests.unit.search.search_fakes import flow_latency

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
BEGAN_S = BEGAN.timestamp()
RANGE_J = 262143.32885


def counter(
    watts: float, *, first_j: float = 100.0, domain: str = "package-0", counts: bool = True, wraps: bool = True
) -> MeterSeries:
    """An energy counter that is read ten times a second, for ten seconds."""
    samples = tuple((BEGAN_S + tenth / 10, (first_j + watts * tenth / 10) % RANGE_J) for tenth in range(101))
    return MeterSeries(
        node="DUT1", meter="powercap", domain=domain, counts=counts, quantity="energy", samples=samples,
        resolution=61e-6, interval_s=0.001, wraps_at_j=RANGE_J if wraps else None,
    )  # fmt: skip


def powers(*watts: float, interval_s: float = 1.0) -> MeterSeries:
    """A BMC that is read twice a second."""
    samples = tuple((BEGAN_S + index / 2, value) for index, value in enumerate(watts))
    return MeterSeries(
        node="DUT1", meter="ipmi", domain="system", counts=True, quantity="power", samples=samples,
        resolution=1.0, interval_s=interval_s,
    )  # fmt: skip


def result_of(trial: Trial) -> TrialResult:
    received = round(trial.load_pps * trial.duration_s)
    return finished(trial, (received, received), latency=(flow_latency(36_000),))


@given(st.floats(1, 1000), st.floats(0, RANGE_J - 1e-3))
def test_a_counter_gives_the_power_also_where_it_starts_again(watts: float, first_j: float) -> None:
    found, error_w, seconds = mean_power(counter(watts, first_j=first_j))
    assert found == pytest.approx(watts, rel=1e-6) and seconds == pytest.approx(10)
    assert error_w == pytest.approx((watts * 0.001 + 61e-6) / 10)
    with pytest.raises(Unsupported, match="an energy counter went back from"):
        mean_power(counter(100.0, first_j=RANGE_J - 50, wraps=False))


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
    (node,) = node_powers([counter(40.0, domain="psys", counts=False)])
    assert node.watts == pytest.approx(40.0), "a meter of parts alone has their sum"


Watched = Callable[[Trial | None], EnergyReadings]


def metered(trial: Trial | None) -> EnergyReadings:
    """100 W, and 50 W more for each million of packets a second."""
    watts = 100.0 + (trial.load_pps * 50e-6 if trial else 0.0)
    return EnergyReadings((counter(watts),), {}, 1.5, trial and result_of(trial), trial and (BEGAN_S, BEGAN_S + 10))


def measured(
    watch: Watched = metered, pdr_pps: float | None = 1e6, trial_s: float = 10.0, idle: EnergyReadings | None = None
) -> tuple[Energy, list[Trial | None]]:
    """What is found, and the trials that were asked for."""
    asked: list[Trial | None] = []

    def watched(trial: Trial | None) -> EnergyReadings:
        asked.append(trial)
        return watch(trial)

    return measure_energy(watched, frame("64B"), pdr_pps, trial_s, 1000.0, duts=("DUT1",), idle=idle), asked


def test_loads_are_shares_of_pdr_and_the_heaviest_is_first() -> None:
    found, asked = measured(idle=EnergyReadings((counter(60.0),)))
    assert [trial and trial.load_pps for trial in asked] == [9e5, 5e5, 1e5, None]
    assert [row.label for row in found.loads] == [IDLE, "PDR0", "PDR10", "PDR50", "PDR90"]
    each = found.joules_per_packet("PDR50")
    assert each is not None and list(each) == pytest.approx([125 / 5e5, 0.0125061 / 5e5], rel=1e-3)
    above = found.joules_per_packet("PDR50", IDLE)
    assert above is not None and above[0] == pytest.approx(65 / 5e5) and above[1] > 0.0125 / 5e5
    assert found.joules_per_packet("PDR0") is None
    row = found.at("PDR90")
    assert row is not None and row.p99_ns == 36_000 and row.busy_cpus == 1.5
    both = found.model_copy(update={"duts": ("DUT1", "DUT2")})
    assert both.watts("PDR90") is None, "energy of two systems under test needs both meters"
    found, asked = measured(pdr_pps=None)
    assert asked == [None] and [row.label for row in found.loads] == ["PDR0"]


@pytest.mark.parametrize(("trial_s", "known"), [(1.0, True), (0.25, False)])
def test_a_trial_whose_readings_came_too_late_is_done_again_and_twice_as_long(trial_s: float, known: bool) -> None:
    def slow(trial: Trial | None) -> EnergyReadings:
        """Readings of a machine that takes 1.5 s to prepare a trial, and as long to end it."""
        if trial is None:
            return EnergyReadings((counter(100.0),))
        window = certain_window(BEGAN_S, BEGAN_S + trial.duration_s + 3.0, trial.duration_s)
        return EnergyReadings((counter(100.0),), {}, 1.5, result_of(trial), window)

    found, asked = measured(slow, trial_s=trial_s)
    assert [trial and trial.duration_s for trial in asked] == [*3 * [trial_s, 2 * trial_s, 4 * trial_s], None]
    row = found.at("PDR50")
    assert row is not None
    if known:
        power = found.watts("PDR50")
        assert row.remark is None and power and power[0] == pytest.approx(100.0)
    else:
        assert not row.nodes and row.remark and "0 readings while traffic was sent" in row.remark


def test_a_node_without_a_meter_is_named_and_the_rest_is_measured() -> None:
    found, _ = measured(lambda trial: EnergyReadings((), {"DUT1": "no counters"}, 1.5, trial and result_of(trial)))
    assert found.watts("PDR90") is None and found.joules_per_packet("PDR90") is None
    said = energy_in_words(found)
    assert said[-1] == "DUT1: no counters" and said[-2] == "PDR90 power unknown, 1.50 data CPUs busy, p99 36.0 µs"
