"""Loads on one size: what is averaged, where they end, the capacity at a load and between them, when it swings."""

from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.model.service.spec import Offered, Trace, Use, WatchedResource
from resources.libraries.python.model.service.workload import Stop
from resources.libraries.python.studies.sizing.search import capacity
from resources.libraries.python.studies.sizing.search.capacity_estimate import Crossing, crossing
from tests.unit.examples import share
from tests.unit.studies.sizing.sizing_runs import offered


def ratios(*values: float) -> list[Offered]:
    """Loads of 100, 200, ... with these shares carried."""
    return [offered(100.0 * number, 100.0 * number * value) for number, value in enumerate(values, 1)]


def use(cpu: float | None, memory: float | None = None, network_bps: float | None = None) -> Use:
    return Use(cpu=cpu, memory=memory, network_bps=network_bps)


def test_a_load_is_repeated_and_averaged_and_figures_where_they_were_said() -> None:
    said = [(90.0, 0.2, {"detected": 1.0, "hits": 4}), (100.0, None, {"detected": 0.5}), (110.0, 0.6, {})]
    answers = [capacity.OfferedLoad(carried, {"a-1": use(cpu, 0.5)}, figures) for carried, cpu, figures in said]
    asked: list[float] = []

    def offer(load: float) -> capacity.OfferedLoad:
        asked.append(load)
        return answers[len(asked) - 1]

    row = capacity.offered_load(100.0, 3, offer)
    assert asked == [100.0] * 3
    assert (row.indicators, row.mean, row.stdev, row.ratio) == ((90, 100, 110), 100, 10, 1.0)
    assert (row.use, row.figures) == ({"a-1": use(0.4, 0.5)}, {"detected": 0.75, "hits": 4.0})
    assert capacity.offered_load(100.0, 1, lambda _: capacity.OfferedLoad(1.0, {})).stdev is None


@pytest.mark.parametrize(
    ("highest", "kept"),
    [(600.0, [300.0, 600.0, 900.0]), (100.0, [100.0, 900.0]), (900.0, [400.0, 900.0]), (None, [100.0, 900.0])],
)
def test_traces_are_kept_below_the_capacity_at_it_and_beyond(highest: float | None, kept: list[float]) -> None:
    trace = Trace(ends_s=(1.0,), cpu={"a-1": (0.5,)})
    rows = [row.model_copy(update={"trace": trace}) for row in ratios(*[1.0] * 9)]
    few = capacity.with_few_traces(rows, highest)
    assert [row.load for row in few if row.trace == trace] == kept
    assert [row.load for row in few] == [row.load for row in rows]
    assert "trace" not in ratios(1.0)[0].model_dump()


@pytest.mark.parametrize(
    ("shares", "highest", "again"),
    [
        ((1.0, 0.95, 0.9, 0.89), 300, ()),
        ((1.0, 0.8, 0.95, 0.5), 100, (300,)),
        ((0.89, 0.95), None, (200,)),
        ((0.5,), None, ()),
        ((1.0, 1.2), 200, ()),
        ((), None, ()),
    ],
)
def test_the_capacity_is_the_last_load_before_one_that_is_not_carried(
    shares: Sequence[float], highest: float | None, again: tuple[float, ...]
) -> None:
    rows = ratios(*shares)
    assert capacity.capacity_of(rows, 0.9) == highest
    assert capacity.carried_again(rows, 0.9) == again


@given(st.lists(st.floats(0, 1.2), max_size=20), st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_stricter_threshold_never_gives_a_higher_capacity(shares: list[float], one: float, other: float) -> None:
    low, high = sorted((one, other))
    rows = ratios(*shares)
    assert (capacity.capacity_of(rows, high) or 0.0) <= (capacity.capacity_of(rows, low) or 0.0)


@given(st.lists(st.floats(0, 1.2), max_size=20), st.integers(1, 3), st.floats(0.1, 0.9))
def test_the_stop_rule_does_not_change_the_capacity(shares: list[float], loads: int, below: float) -> None:
    rows = ratios(*shares)
    stop = Stop(below=below, loads=loads)
    until = next((count for count in range(1, len(rows) + 1) if capacity.ends(stop, rows[:count])), len(rows))
    assert capacity.capacity_of(rows[:until], 0.9) == capacity.capacity_of(rows, 0.9)


def test_loads_end_when_so_many_in_a_row_are_below_the_stop_share() -> None:
    rows = ratios(1.0, 0.7, 0.9, 0.7, 0.6)
    assert [capacity.ends(Stop(below=0.8, loads=2), rows[:count]) for count in range(1, 6)] == [False] * 4 + [True]
    assert capacity.ends(Stop(below=0.8), rows[:2])
    assert not capacity.ends(None, rows)


def test_the_busiest_component_is_that_with_the_busiest_instance() -> None:
    used = {"sp-1": use(0.9, 0.1, 100), "sp-2": use(0.3, 0.1, 300), "bn-1": use(0.7, 0.2), "x-y-1": use(None)}
    row = offered(1.0, 1.0, use=used)
    assert capacity.utilization(row, WatchedResource.CPU) == {"sp": 0.9, "bn": 0.7}
    assert capacity.busiest(capacity.utilization(row, WatchedResource.CPU)) == "sp"
    assert capacity.busiest(capacity.utilization(row, WatchedResource.MEMORY)) == "bn"
    assert capacity.utilization(row, WatchedResource.NETWORK) == {"sp": 300}
    assert capacity.busiest({}) is None


def test_the_traces_of_the_capacity_count_or_of_the_lowest_load() -> None:
    rows = ratios(1.0, 0.95, 0.5)
    assert capacity.at_capacity(rows, 200) is rows[1]
    assert capacity.at_capacity(rows, None) is rows[0]
    assert capacity.at_capacity([], None) is None


def swinging(seed: int, *deviations: float) -> list[Offered]:
    """Loads of 100, 200, ... in ten repetitions each, whose shares deviate normally by this much."""
    random = Random(seed)
    return [
        offered(load, *(load * random.gauss(0.9, deviation) for _ in range(10)))
        for load, deviation in zip(range(100, 10**4, 100), deviations, strict=False)
    ]


@pytest.mark.slow
def test_a_steady_service_is_judged_unstable_in_one_of_a_hundred_cases() -> None:
    """The level of the test: the second load is tested once, and both have the same deviation."""
    alarms = sum(capacity.overload_from(swinging(seed, 0.05, 0.05)) is not None for seed in range(2000))
    assert 0.005 <= alarms / 2000 <= 0.02


def test_repetitions_that_swing_three_times_as_much_are_found_at_their_load() -> None:
    found = [capacity.overload_from(swinging(seed, 0.02, 0.02, 0.02, 0.02, 0.06, 0.06)) for seed in range(200)]
    assert found.count(500) >= 0.85 * len(found)


def test_swinging_repetitions_are_a_sign_of_overload_from_one_percent_of_the_load_on() -> None:
    steady = [offered(load, load, load * 0.998, load * 1.001, load * 0.999) for load in (100.0, 200.0, 300.0)]
    swings = offered(400.0, 390.0, 330.0, 370.0, 300.0)
    assert capacity.overload_from([*steady, swings]) == 400
    assert capacity.overload_from(steady) is None
    small = offered(400.0, 400.0, 398.0, 402.0, 400.0)
    assert capacity.overload_from([*steady[:1], small]) is None  # 0.4 % is no oscillation
    assert capacity.overload_from([offered(100.0, 50.0, 99.0)]) is None  # nothing to compare with
    assert capacity.overload_from(ratios(1.0, 0.5)) is None  # nothing was repeated
    steady = [offered(load, load * 0.9999, load, load * 1.0001) for load in (100.0, 200.0, 300.0)]
    for deviation, found in ((0.009, None), (0.011, 400)):
        row = offered(400.0, 400 * (1 - deviation), 400.0, 400 * (1 + deviation))
        assert capacity.overload_from([*steady, row]) == found


Carry = Callable[[float, Random], float]


def loads(carry: Carry, seed: int, *, step: int, repeat: int) -> list[Offered]:
    rng = Random(seed)
    return [offered(load, *(carry(load, rng) for _ in range(repeat))) for load in range(500, 1301, step)]


def drifting(load: float, rng: Random) -> float:
    """Carries 900, with a deviation of 5 %: 0.9 of 1000."""
    return min(load, rng.gauss(900, 45))


def sagging(load: float, rng: Random) -> float:
    """Half of what is too much costs capacity: 0.9 of 900 + 30."""
    limit = rng.gauss(855, 8)
    return min(load, limit - 0.5 * max(0.0, load - limit))


def falling(load: float, rng: Random) -> float:
    """Carries 900, and only 600 to 700 of more."""
    return load if load <= 900 else rng.uniform(600, 700)


def lossy(load: float, rng: Random) -> float:
    """Loses 3 % at any load, and carries 900."""
    return min(0.97 * load * rng.gauss(1, 0.003), rng.gauss(900, 9))


def found(carry: Carry, seed: int = 1, threshold: float = 0.9, step: int = 20, repeat: int = 3) -> Crossing:
    return crossing(loads(carry, seed, step=step, repeat=repeat), threshold)


@pytest.mark.parametrize(
    ("carry", "threshold", "truth"),
    [(drifting, 0.9, 1000), (drifting, 0.8, 1125), (sagging, 0.9, 855 * 1.5 / 1.4), (lossy, 0.9, 1000)],
)
def test_a_capacity_is_estimated_between_the_loads(carry: Carry, threshold: float, truth: float) -> None:
    estimates = [found(carry, seed, threshold) for seed in range(8)]
    assert fmean(each.load for each in estimates) == pytest.approx(truth, rel=0.01)
    assert sum(each.low <= truth <= each.high for each in estimates) >= 6


def test_a_capacity_at_which_the_indicator_falls_at_once_is_between_two_loads() -> None:
    at = found(falling, step=70)
    assert (at.low, at.high) == (850, 920)
    assert at.low < at.load < at.high
    at = found(falling, threshold=0.6, step=20)
    assert at.low < 650 / 0.6 < at.high
    rows = loads(lambda load, rng: min(load, rng.gauss(400, 4)), 0, step=50, repeat=3)
    at = crossing(rows, 0.9)
    assert at.load == pytest.approx(400 / 0.9, rel=0.02)


def test_there_is_no_estimate_where_all_loads_are_carried_or_one_repetition_is_beyond_the_capacity() -> None:
    assert crossing(loads(lambda load, _: 0.95 * load, 0, step=100, repeat=2), 0.9) is None
    assert crossing(loads(drifting, 0, step=500, repeat=1), 0.9) is None
    assert crossing([], 0.9) is None


@settings(max_examples=share(25), deadline=None)
@given(
    st.lists(st.lists(st.floats(0, 1.1), min_size=1, max_size=3), max_size=12), st.floats(0.05, 1), st.floats(0.01, 500)
)
def test_any_indicators_have_an_ordered_interval_or_none(
    shares: list[list[float]], threshold: float, unit: float
) -> None:
    rows = [offered(load, *(each * load for each in row)) for load, row in zip(count(unit, unit), shares, strict=False)]
    at = crossing(rows, threshold)
    if at is not None:
        assert 0 <= at.low <= at.load <= at.high
