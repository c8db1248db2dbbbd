"""A sweep on systems that are one function: which loads are offered, what becomes a point, what is flagged."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.studies.sweep.load_steps import (
    LoadStep,
    MeasuredLoad,
    capacity,
    duration_s,
    is_lossy,
    loads,
    point,
    rates_around,
    steps_of,
)
from resources.libraries.python.studies.sweep.model.record import Bursts, Rates, SweepPoint, SweepSample, SweepSpec

B64 = Frame(name="64B", parts=(FramePart(frame_bytes=64),))
CAPACITY_PPS = 50_000.0


def spec(**given: object) -> SweepSpec:
    default = {} if "bursts" in given else {"rates": Rates(start_pps=1e4, stop_pps=1e5, step_pps=1e4)}
    return SweepSpec.model_validate({"frame": B64, "duration_s": 3, **default, **given})


def run(
    asked: SweepSpec,
    most_pps: float = float("inf"),
    sender: Callable[[float], float | None] = lambda counted_pps: counted_pps,
) -> list[MeasuredLoad]:
    """Of a system that forwards up to its capacity; its generator offers no more than this, its interface counts so."""

    def measure(load: LoadStep) -> MeasuredLoad:
        offered = min(load.rate_pps * asked.flows, most_pps)
        arrived = min(offered, CAPACITY_PPS)
        samples = tuple(
            SweepSample(
                rate_pps=load.rate_pps,
                second=second,
                input_pps=offered,
                output_pps=arrived,
                loss_ratio=1 - arrived / offered if offered else None,
                delay_s=None if second % 2 else 1e-4 * (1 + second),
                cpu={"nf-1-1": (arrived / CAPACITY_PPS,)},
                memory_mib={} if second % 3 == 2 else {"nf-1-1": 10.0 + second},
                available_mib=None if second % 3 == 2 else 100.0 - second,
            )
            for second in range(load.begin_s, load.begin_s + load.duration_s)
        )
        return MeasuredLoad(samples=samples, sender_pps=sender(offered))

    return [measure(load) for group in steps_of(asked) for load in group]


def points(asked: SweepSpec, **system: Any) -> list[SweepPoint]:
    return [point(each, asked) for each in run(asked, **system)]


def test_loads_go_up_each_second_is_a_sample_and_points_are_their_means() -> None:
    done, made = run(spec()), points(spec())
    assert [each.rate_pps for each in made] == [1e4 * step for step in range(1, 11)]
    assert all([sample.second for sample in each.samples] == [0, 1, 2] for each in done)
    assert [point.loss_ratio for point in made[:5]] == [0.0] * 5, "loss begins at the capacity"
    assert made[9].loss_ratio == pytest.approx(0.5)
    assert [made[9].input_bps, made[9].output_bps] == pytest.approx([1e5 * 512, 5e4 * 512])
    assert made[0].used("nf-1-1") == pytest.approx(0.2)
    assert made[0].delay_s == pytest.approx(2e-4), "the mean of seconds 0 and 2; nobody knows that of second 1"
    assert (made[0].memory_mib, made[0].available_mib) == ({"nf-1-1": 10.5}, 99.5), "of seconds 0 and 1"
    assert all(point.flagged is None for point in made)
    lossy = [is_lossy(made[:count], 0.2) for count in range(1, 11)]
    assert lossy == [False] * 8 + [True] * 2, "three loads in a row, 70, 80 and 90 kpps, lose more than a fifth"


def test_a_load_beyond_the_generator_is_flagged_and_the_sweep_goes_on() -> None:
    made = points(spec(rates=Rates(start_pps=200, stop_pps=1000, step_pps=400)), most_pps=288.0)
    assert [point.flagged for point in made] == [
        None,
        "the generator offered 288 pps of 600 pps",
        "the generator offered 288 pps of 1.00 kpps",
    ]


def test_all_flows_together_are_what_the_sender_must_reach() -> None:
    made = points(spec(flows=4))
    assert [point.input_pps for point in made[:2]] == [4e4, 8e4]
    assert all(point.flagged is None for point in made)


def test_an_interface_that_counts_less_than_the_generator_is_flagged() -> None:
    made = points(spec(), sender=lambda counted_pps: 0.9 * counted_pps)
    assert made[0].flagged == "its interface saw 9.00 kpps, and it counted 10.0 kpps"
    assert made[0].sender_pps == pytest.approx(9000)
    assert {(each.flagged, each.sender_pps) for each in points(spec(), sender=lambda _: None)} == {(None, None)}


@given(share=st.floats(0.0, 0.2), tolerance=st.floats(0.01, 0.15))
def test_only_what_is_off_by_more_than_the_tolerance_is_flagged(share: float, tolerance: float) -> None:
    assume(abs(share - tolerance) > 1e-6)
    one = spec(rates=Rates(start_pps=1e4, stop_pps=1e4, step_pps=1), tolerance=tolerance)
    (made,) = points(one, most_pps=1e4 * (1 - share))
    assert (made.flagged is not None) == (share > tolerance)


def test_bursts_come_and_go_and_give_no_points() -> None:
    asked = spec(bursts=Bursts(rate_pps=6e4, on_s=2, off_s=1), duration_s=7)
    done = run(asked)
    rates = [(sample.second, sample.rate_pps) for each in done for sample in each.samples]
    assert rates == list(enumerate([6e4, 6e4, 0.0, 6e4, 6e4, 0.0, 6e4]))
    assert [sample.loss_ratio for sample in done[1].samples] == [None]
    assert [(load.rate_pps, load.duration_s) for load in loads(asked, whole_bursts=True)] == [(6e4, 7)]


@given(on_s=st.integers(1, 9), off_s=st.integers(1, 9), seconds=st.integers(1, 60))
def test_bursts_fill_their_time_to_the_second(on_s: int, off_s: int, seconds: int) -> None:
    asked = spec(bursts=Bursts(rate_pps=1.0, on_s=on_s, off_s=off_s), duration_s=seconds)
    row = loads(asked)
    assert sum(load.duration_s for load in row) == seconds == duration_s(asked)
    assert [load.rate_pps > 0 for load in row] == [index % 2 == 0 for index in range(len(row))]


@given(capacity_pps=st.floats(2000.0, 5e6), sag=st.floats(0.0, 0.5))
def test_a_quick_look_finds_the_capacity_of_a_service_that_sags_in_overload(capacity_pps: float, sag: float) -> None:
    def offer(load_pps: float) -> tuple[float, float]:
        excess = max(0.0, load_pps - capacity_pps)
        return load_pps, min(load_pps, max(0.1 * capacity_pps, capacity_pps - sag * excess))

    found = capacity(offer, 1e7, 1000.0)
    assert 0.45 * capacity_pps <= found <= capacity_pps


def test_a_dead_service_has_no_capacity() -> None:
    assert capacity(lambda load_pps: (load_pps, 0.0), 1e6, 1000.0) == 0.0


@given(st.floats(100.0, 1e7))
def test_loads_around_a_capacity_are_twelve_and_go_well_beyond_it(capacity_pps: float) -> None:
    row = rates_around(capacity_pps).each()
    assert len(row) == 12
    assert row[0] < 0.2 * capacity_pps
    assert 1.5 * capacity_pps < row[-1] < 1.7 * capacity_pps
