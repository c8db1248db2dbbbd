"""Loads on one size: what is averaged, where they end, what the capacity is, who is busiest, when it swings."""

from collections.abc import Sequence
from random import Random
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.model.service.spec import Offered, Trace, Use, WatchedResource
from resources.libraries.python.model.service.workload import Stop
from resources.libraries.python.studies.sizing.search.capacity import (
    OfferedLoad,
    at_capacity,
    busiest,
    capacity_of,
    carried_again,
    ends,
    offered_load,
    overload_from,
    utilization,
    with_few_traces,
)


def offered(load: float, *indicators: float) -> Offered:
    return Offered(
        load=load,
        indicators=indicators,
        mean=fmean(indicators),
        stdev=stdev(indicators) if len(indicators) > 1 else None,
    )


def ratios(*values: float) -> list[Offered]:
    """Loads of 100, 200, ... with these shares carried."""
    return [offered(100.0 * number, 100.0 * number * value) for number, value in enumerate(values, 1)]


def use(cpu: float | None, memory: float | None = None, network_bps: float | None = None) -> Use:
    return Use(cpu=cpu, memory=memory, network_bps=network_bps)


def test_a_load_is_repeated_and_averaged() -> None:
    said = iter([90.0, 100.0, 110.0])
    cpus = iter([0.2, None, 0.6])
    asked: list[float] = []

    def offer(load: float) -> OfferedLoad:
        asked.append(load)
        return OfferedLoad(next(said), {"a-1": use(next(cpus), 0.5)})

    row = offered_load(100.0, 3, offer)
    assert asked == [100.0] * 3
    assert (row.indicators, row.mean, row.stdev, row.ratio) == ((90, 100, 110), 100, 10, 1.0)
    assert row.use == {"a-1": use(0.4, 0.5)}
    assert offered_load(100.0, 1, lambda _: OfferedLoad(1.0, {})).stdev is None


@pytest.mark.parametrize(
    ("capacity", "kept"),
    [(600.0, [300.0, 600.0, 900.0]), (100.0, [100.0, 900.0]), (900.0, [400.0, 900.0]), (None, [100.0, 900.0])],
)
def test_traces_are_kept_below_the_capacity_at_it_and_beyond(capacity: float | None, kept: list[float]) -> None:
    trace = Trace(ends_s=(1.0,), cpu={"a-1": (0.5,)})
    rows = [row.model_copy(update={"trace": trace}) for row in ratios(*[1.0] * 9)]
    few = with_few_traces(rows, capacity)
    assert [row.load for row in few if row.trace == trace] == kept
    assert [row.load for row in few] == [row.load for row in rows]
    assert "trace" not in ratios(1.0)[0].model_dump()


@pytest.mark.parametrize(
    ("shares", "capacity", "again"),
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
    shares: Sequence[float], capacity: float | None, again: tuple[float, ...]
) -> None:
    rows = ratios(*shares)
    assert capacity_of(rows, 0.9) == capacity
    assert carried_again(rows, 0.9) == again


@given(st.lists(st.floats(0, 1.2), max_size=20), st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_stricter_threshold_never_gives_a_higher_capacity(shares: list[float], one: float, other: float) -> None:
    low, high = sorted((one, other))
    rows = ratios(*shares)
    assert (capacity_of(rows, high) or 0.0) <= (capacity_of(rows, low) or 0.0)


@given(st.lists(st.floats(0, 1.2), max_size=20), st.integers(1, 3), st.floats(0.1, 0.9))
def test_the_stop_rule_does_not_change_the_capacity(shares: list[float], loads: int, below: float) -> None:
    rows = ratios(*shares)
    stop = Stop(below=below, loads=loads)
    until = next((count for count in range(1, len(rows) + 1) if ends(stop, rows[:count])), len(rows))
    assert capacity_of(rows[:until], 0.9) == capacity_of(rows, 0.9)


def test_loads_end_when_so_many_in_a_row_are_below_the_stop_share() -> None:
    rows = ratios(1.0, 0.7, 0.9, 0.7, 0.6)
    assert [ends(Stop(below=0.8, loads=2), rows[:count]) for count in range(1, 6)] == [False] * 4 + [True]
    assert ends(Stop(below=0.8), rows[:2])
    assert not ends(None, rows)


def test_the_busiest_component_is_that_with_the_busiest_instance() -> None:
    row = offered(1.0, 1.0).model_copy(
        update={
            "use": {
                "sp-1": use(0.9, 0.1, 100),
                "sp-2": use(0.3, 0.1, 300),
                "bn-1": use(0.7, 0.2, None),
                "x-y-1": use(None, None, None),
            }
        }
    )
    assert utilization(row, WatchedResource.CPU) == {"sp": 0.9, "bn": 0.7}
    assert busiest(utilization(row, WatchedResource.CPU)) == "sp"
    assert busiest(utilization(row, WatchedResource.MEMORY)) == "bn"
    assert utilization(row, WatchedResource.NETWORK) == {"sp": 300}
    assert busiest({}) is None


def test_the_traces_of_the_capacity_count_or_of_the_lowest_load() -> None:
    rows = ratios(1.0, 0.95, 0.5)
    assert at_capacity(rows, 200) is rows[1]
    assert at_capacity(rows, None) is rows[0]
    assert at_capacity([], None) is None


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
    alarms = sum(overload_from(swinging(seed, 0.05, 0.05)) is not None for seed in range(2000))
    assert 0.005 <= alarms / 2000 <= 0.02


def test_repetitions_that_swing_three_times_as_much_are_found_at_their_load() -> None:
    found = [overload_from(swinging(seed, 0.02, 0.02, 0.02, 0.02, 0.06, 0.06)) for seed in range(200)]
    assert found.count(500) >= 0.85 * len(found)


def test_swinging_repetitions_are_a_sign_of_overload() -> None:
    steady = [offered(load, load, load * 0.998, load * 1.001, load * 0.999) for load in (100.0, 200.0, 300.0)]
    swings = offered(400.0, 390.0, 330.0, 370.0, 300.0)
    assert overload_from([*steady, swings]) == 400
    assert overload_from(steady) is None
    small = offered(400.0, 400.0, 398.0, 402.0, 400.0)
    assert overload_from([*steady[:1], small]) is None  # 0.4 %: nobody would call that swinging
    assert overload_from([offered(100.0, 50.0, 99.0)]) is None  # nothing to compare with
    assert overload_from(ratios(1.0, 0.5)) is None  # nothing was repeated


@pytest.mark.parametrize(("deviation", "found"), [(0.009, None), (0.011, 400)])
def test_repetitions_swing_from_a_deviation_of_one_percent_of_the_load_on(
    deviation: float, found: float | None
) -> None:
    """However steady the loads below are."""
    steady = [offered(load, load * 0.9999, load, load * 1.0001) for load in (100.0, 200.0, 300.0)]
    row = offered(400.0, 400 * (1 - deviation), 400.0, 400 * (1 + deviation))
    assert row.stdev == pytest.approx(400 * deviation)
    assert overload_from([*steady, row]) == found


def test_figures_of_repetitions_are_averaged_where_they_were_said() -> None:
    said = iter(
        [OfferedLoad(9, {}, {"detected": 1.0, "hits": 4}), OfferedLoad(9, {}, {"detected": 0.5}), OfferedLoad(9, {})]
    )
    assert offered_load(10, 3, lambda _: next(said)).figures == {"detected": 0.75, "hits": 4.0}
