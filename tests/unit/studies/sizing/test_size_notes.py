"""What sizes say of each other: no scaling where there is none, what scaling out costs; no verdict without ground."""

import pytest

from resources.libraries.python.model.service.spec import DeploymentSpec, MeasuredSize, Offered, Share, Size, Use
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.search.size_search import notes
from tests.unit.studies.sizing.sizing_specs import service

LOAD = WorkloadSpec.model_validate({"range": {"min": 50, "max": 2000}, "increase": 50, "generator": "g"})
IDS = service(("ids",), ("ids",), resources={}, mode="exhaustive", scaling="hybrid", most=4)
CLEARWATER = service(resources={}, mode="exhaustive", scaling="hybrid", most=4)


def sized(
    spec: DeploymentSpec,
    words: str,
    capacity: float | None,
    cpu: dict[str, float],
    *,
    top: bool = False,
    beyond: dict[str, float] | None = None,
) -> MeasuredSize:
    """A size such as `1m 2s 2s`, what its components used at the capacity, and at a load beyond it."""
    flavors = {"s": "small", "m": "medium", "l": "large"}
    shares = {
        row.name: Share(flavor=flavors[word[1]], instances=int(word[0]))
        for row, word in zip(spec.components, words.split(), strict=True)
    }
    carried = capacity or 50
    offered = [_offered(carried, carried, cpu)]
    if not top:
        offered.append(_offered(carried + 10, 1, beyond or cpu))
    size = Size(components=shares)
    return MeasuredSize(
        size=size,
        name=words,
        vcpus=spec.vcpus(size),
        memory_mb=spec.memory_mb(size),
        offered=tuple(offered),
        capacity=capacity,
        at_top=top,
        bottleneck=max(cpu, key=lambda name: cpu[name]),
    )


def _offered(load: float, mean: float, cpu: dict[str, float]) -> Offered:
    use = {f"{name}-1": Use(cpu=value, memory=None, network_bps=None) for name, value in cpu.items()}
    return Offered(load=load, indicators=(mean,), mean=mean, stdev=None, use=use)


def test_no_verdict_where_another_component_is_the_limit() -> None:
    busy = {"bono": 0.5, "sprout": 0.98, "homestead": 0.9}
    after = {"bono": 0.5, "sprout": 0.5, "homestead": 0.95}
    sizes = [sized(CLEARWATER, "1s 1s 1s", 350, busy), sized(CLEARWATER, "1s 1m 1s", 370, after)]
    assert not notes(CLEARWATER, LOAD, sizes)
    # Busy in overload only: the capacity lies between two loads, and homestead ends it.
    later = sized(CLEARWATER, "1s 1m 1s", 350, {**busy, "sprout": 0.5, "homestead": 0.4}, beyond={**after})
    assert not notes(CLEARWATER, LOAD, [sizes[0], later])
    # Homestead is not busy, and busier than sprout: the bottleneck has moved.
    moved = sized(CLEARWATER, "1s 1m 1s", 350, {**busy, "sprout": 0.5, "homestead": 0.7})
    assert not notes(CLEARWATER, LOAD, [sizes[0], moved])
    # Bono grows, which was not busy: no gain is to be expected.
    other = [
        sized(CLEARWATER, "1s 1s 1s", 350, busy),
        sized(CLEARWATER, "1m 1s 1s", 350, {**busy, "sprout": 0.7, "homestead": 0.7}),
    ]
    assert not notes(CLEARWATER, LOAD, other)


def test_no_verdict_where_another_component_is_not_watched() -> None:
    alone = {"bono": 0.3, "sprout": 0.5, "homestead": 0.4}
    sizes = [sized(CLEARWATER, "1s 1s 1s", 350, {**alone, "sprout": 0.98}), sized(CLEARWATER, "1s 1m 1s", 350, alone)]
    assert "sprout does not scale past 1 vCPU" in notes(CLEARWATER, LOAD, sizes)[0]
    del alone["homestead"]
    assert not notes(CLEARWATER, LOAD, [sizes[0], sized(CLEARWATER, "1s 1m 1s", 350, alone)])


def test_no_verdict_where_cpus_are_used_up_or_the_range_was_too_short() -> None:
    used = [sized(IDS, "1s", 230, {"ids": 0.98}), sized(IDS, "1m", 230, {"ids": 0.95})]
    assert not notes(IDS, LOAD, used)
    short = [sized(IDS, "1s", 2000, {"ids": 0.9}, top=True), sized(IDS, "1m", 2000, {"ids": 0.4}, top=True)]
    assert not notes(IDS, LOAD, short)
    assert not notes(IDS, LOAD, [short[0], sized(IDS, "1m", 1950, {"ids": 0.45})])


def test_no_verdict_where_the_cpu_is_not_what_limits() -> None:
    # Half of a CPU is no limit, be it half of one or a quarter of two: it waits for something.
    waiting = [sized(IDS, "1s", 230, {"ids": 0.5}), sized(IDS, "1m", 230, {"ids": 0.25})]
    assert not notes(IDS, LOAD, waiting)


@pytest.mark.parametrize(("used", "verdicts"), [(0.75, 1), (0.85, 0)])
def test_a_component_as_busy_as_those_of_the_paper_at_their_capacity_may_be_the_limit(
    used: float, verdicts: int
) -> None:
    """Cao et al. saw CPUs of 75 to 85 % at the capacity: only what is less busy than all of that range is idle."""
    sizes = [sized(IDS, "1s", 230, {"ids": 0.98}), sized(IDS, "1m", 240, {"ids": used})]
    assert len(notes(IDS, LOAD, sizes)) == verdicts


def test_a_flavor_that_brings_a_fifth_more_scales_though_cpus_stay_unused() -> None:
    grows = [sized(IDS, "1s", 250, {"ids": 0.98}), sized(IDS, "1m", 300, {"ids": 0.6})]
    assert not notes(IDS, LOAD, grows)


@pytest.mark.parametrize(("capacity", "verdicts"), [(264, 1), (266, 0)])
def test_the_first_load_that_is_not_carried_counts_as_a_gain_from_a_tenth_on(capacity: float, verdicts: int) -> None:
    """The larger size does not carry 10 calls/s more than its capacity: it may carry anything up to that."""
    sizes = [sized(IDS, "1s", 250, {"ids": 0.98}), sized(IDS, "1m", capacity, {"ids": 0.6})]
    assert len(notes(IDS, LOAD, sizes)) == verdicts


def test_scaling_out_is_compared_with_the_same_vcpus_in_fewer_instances() -> None:
    cpu = {"bono": 0.5, "sprout": 0.8, "homestead": 0.7}
    sizes = [
        sized(CLEARWATER, "1s 1s 1s", 350, cpu),
        sized(CLEARWATER, "1m 1m 1m", 600, cpu),
        sized(CLEARWATER, "1m 2s 2s", 350, cpu),
        sized(CLEARWATER, "1m 2s 1m", 650, cpu),
    ]
    _, one, small, mixed = (size.text for size in sizes)
    assert notes(CLEARWATER, LOAD, sizes) == (
        f"{small} carries 350 calls/s, {one} with the same vCPUs 600: more instances cost 42 %.",
        f"{mixed} carries 650 calls/s, {one} with the same vCPUs 600: they bring 8 %.",
    )


def test_the_size_for_a_workload_is_the_one_with_the_fewest_vcpus() -> None:
    asked = LOAD.model_copy(update={"workload": 500.0})
    sizes = [
        sized(IDS, "1s", 300, {"ids": 0.98}),
        sized(IDS, "1l", 900, {"ids": 0.9}),
        sized(IDS, "1m", 600, {"ids": 0.9}),
    ]
    assert notes(IDS, asked, sizes) == ("ids 1 medium carries 500 calls/s with the fewest vCPUs of all measured, 2.",)
    assert notes(IDS, asked, sizes[:1]) == ("No measured size carries 500 calls/s.",)


def test_a_load_that_is_carried_again_is_reported() -> None:
    one = sized(IDS, "1s", 100, {"ids": 0.9})
    again = tuple(
        Offered(load=load, indicators=(mean,), mean=mean, stdev=None)
        for load, mean in ((100, 100), (150, 90), (200, 190))
    )
    assert notes(IDS, LOAD, [one.model_copy(update={"offered": again})]) == (
        "ids 1 small carries 200 calls/s above one that it does not carry; these do not count.",
    )
