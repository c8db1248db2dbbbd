"""Notes on sizes: no scaling where there is none, by the truth of simulated services; no verdict without ground."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.sizing import SimulatedService
from resources.libraries.python.model.service.spec import (
    DeploymentSpec,
    MeasuredSize,
    Offered,
    Share,
    Size,
    Sizing,
    Use,
)
from resources.libraries.python.studies.sizing.search.size_search import notes
from tests.unit.examples import share
from tests.unit.studies.sizing.sizing_runs import offered, run_simulated, service, workload

ALL: dict[str, Any] = {"resources": {}, "mode": "exhaustive", "scaling": "hybrid"}
_NOTE = re.compile(
    r"(?P<name>\w+) (?P<verdict>does not scale past|gains nothing from) (?P<vcpus>[\d.]+) vCPUs?\b.*: "
    r"(?P<large>.+) carries \S+ \S+, (?P<small>.+) \S+, "
    r"where an instance uses at most (?P<used>[\d.]+) of (?P<of>[\d.]+) vCPUs?\."
)


def measured(
    parts: Mapping[str, Mapping[str, Any]],
    vcpus: Sequence[float] = (1, 2, 4),
    *,
    increase: float = 10,
    instances: int = 1,
    **truth: Any,
) -> tuple[Sizing, SimulatedService]:
    """All sizes of a service of these parts, with flavors of these vCPUs."""
    flavors = {
        name: {"vcpus": count, "memory_mb": 100 * number}
        for number, (name, count) in enumerate(zip(("small", "medium", "large"), vcpus, strict=True), 1)
    }
    shorts = [f"{name}x" for name in parts]
    spec = service(list(parts), shorts, flavors_there=flavors, most=instances, **ALL)
    simulated = SimulatedService.model_validate({"components": parts, **truth})
    load = workload(20, 3000, increase, stop={"below": 0.8}, duration_s=3)
    return run_simulated(spec, load, simulated), simulated


def said(sizing: Sizing) -> list[re.Match[str]]:
    return [found for note in sizing.notes if (found := _NOTE.fullmatch(note))]


@pytest.mark.parametrize("others", [{}, {"a": {"cpu_ms": 1}}])
@pytest.mark.parametrize(("vcpus", "smaller", "larger"), [((1, 2, 4), "1", "2"), ((0.5, 1.5, 3), "1.5", "3")])
def test_one_with_one_thread_does_not_scale_past_one_vcpu(
    others: Mapping[str, Any], vcpus: Sequence[float], smaller: str, larger: str
) -> None:
    found, _ = measured({**others, "b": {"cpu_ms": 4.5, "threads": 1}}, vcpus, increase=5)
    (note,) = said(found)
    assert note.group("name", "verdict", "vcpus", "of") == ("b", "does not scale past", smaller, larger)
    assert 0.9 <= float(note["used"]) <= 1.0


def test_one_that_uses_more_than_the_smaller_flavor_has_gains_nothing_from_the_larger() -> None:
    # What Suricata does in the paper: 250 of 400 % of the CPU, and no more packets than with 200 %.
    found, _ = measured({"a": {"cpu_ms": 8, "cpu_growth": 0.9, "threads": 2.5}}, increase=2, full=1, full_falls=0)
    (note,) = said(found)
    assert note.group("verdict", "vcpus", "of") == ("gains nothing from", "4", "4")
    assert "instead of 2: " in note.string
    assert 2.0 < float(note["used"]) < 2.6


@pytest.mark.parametrize("threads", [None, 1.0])
def test_there_is_no_verdict_on_flavors_up_to_one_vcpu_nor_where_loads_are_too_far_apart(threads: float | None) -> None:
    parts = {"a": {"cpu_ms": 0.45, "threads": threads}, "b": {"cpu_ms": 0.35, "threads": threads}}
    small, _ = measured(parts, (0.05, 0.1, 0.2), increase=50)
    far_apart, _ = measured({"a": {"cpu_ms": 4.5, "threads": 1}}, increase=60)
    assert said(small) == said(far_apart) == []


@pytest.mark.slow
@settings(max_examples=share(40))
@given(data=st.data())
def test_notes_on_scaling_are_true(data: st.DataObject) -> None:
    """Any service of up to two components, with and without load control, noise, and flavors below one vCPU."""
    scale = data.draw(st.sampled_from([1, 1, 0.5, 0.05]))
    part = {"cpu_ms": st.floats(2 * scale, 9 * scale), "threads": st.sampled_from([None, 1, 2, 2.5])}
    part |= {"cpu_growth": st.sampled_from([0, 0.05]), "imbalance": st.sampled_from([0, 0.2])}
    parts = data.draw(st.dictionaries(st.sampled_from("ab"), st.fixed_dictionaries(part), min_size=1))
    choices = {"increase": [10, 20, 50], "noise": [0, 0.005, 0.05], "drift": [0, 0.01, 0.03], "control": [None, {}]}
    choices |= {"instances": [1, 1, 2] if len(parts) == 1 else [1], "seed": range(1000)}
    drawn = data.draw(st.fixed_dictionaries({name: st.sampled_from(each) for name, each in choices.items()}))
    found, simulated = measured(parts, [scale * count for count in (1, 2, 4)], **drawn)
    spec, sizes = found.deployment, {size.text: size.size for size in found.sizes}
    for note in said(found):
        name, threads = note["name"], simulated.components[note["name"]].threads
        shares = [sizes[note[size]].components[name] for size in ("small", "large")]
        flavors = [spec.flavors[share.flavor] for share in shares]
        small, large = (simulated.limit(name, *each, 1.0) for each in zip(shares, flavors, strict=True))
        assert threads is not None, note.string
        assert large < 1.1 * small, note.string
        assert simulated.capacity(spec, sizes[note["large"]], 1.0) == pytest.approx(large), note.string
        # The CPUs that it is said to use are those of an instance, and go together with the verdict.
        assert float(note["used"]) <= min(1.2 * threads, float(note["of"])), note.string
        assert float(note["of"]) == flavors[1].vcpus
        if note["verdict"] == "does not scale past":
            assert threads <= float(note["vcpus"]) == flavors[0].vcpus, note.string
            assert float(note["used"]) <= float(note["vcpus"]), note.string


LOAD = workload(50, 2000, 50)
IDS = service(("ids",), ("ids",), most=4, **ALL)
CLEARWATER = service(most=4, **ALL)


def sized(
    spec: DeploymentSpec, words: str, capacity: float, cpu: dict[str, float], *, top: bool = False,
    beyond: dict[str, float] | None = None,
) -> MeasuredSize:  # fmt: skip
    """A size such as `1m 2s 2s`, what its components used at the capacity, and at a load beyond it."""
    flavors = {"s": "small", "m": "medium", "l": "large"}
    shares = [Share(flavor=flavors[word[1]], instances=int(word[0])) for word in words.split()]
    rows = [used(capacity, capacity, cpu), *([] if top else [used(capacity + 10, 1, beyond or cpu)])]
    size = Size(components=dict(zip((row.name for row in spec.components), shares, strict=True)))
    return MeasuredSize(
        size=size, name=words, vcpus=spec.vcpus(size), memory_mb=spec.memory_mb(size), offered=rows,
        capacity=capacity, at_top=top, bottleneck=max(cpu, key=cpu.__getitem__),
    )  # fmt: skip


def used(load: float, carried: float, cpu: dict[str, float]) -> Offered:
    use = {f"{name}-1": Use(cpu=value, memory=None, network_bps=None) for name, value in cpu.items()}
    return offered(load, carried, use=use)


def test_no_verdict_where_another_component_is_the_limit_or_is_not_watched() -> None:
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
    other = sized(CLEARWATER, "1m 1s 1s", 350, {**busy, "sprout": 0.7, "homestead": 0.7})
    assert not notes(CLEARWATER, LOAD, [sizes[0], other])
    alone = {"bono": 0.3, "sprout": 0.5, "homestead": 0.4}
    first = sized(CLEARWATER, "1s 1s 1s", 350, {**alone, "sprout": 0.98})
    (note,) = notes(CLEARWATER, LOAD, [first, sized(CLEARWATER, "1s 1m 1s", 350, alone)])
    assert "sprout does not scale past 1 vCPU" in note
    del alone["homestead"]
    assert not notes(CLEARWATER, LOAD, [first, sized(CLEARWATER, "1s 1m 1s", 350, alone)])


def test_no_verdict_where_the_range_was_too_short_or_the_cpu_is_not_what_limits() -> None:
    short = [sized(IDS, "1s", 2000, {"ids": 0.9}, top=True), sized(IDS, "1m", 2000, {"ids": 0.4}, top=True)]
    assert not notes(IDS, LOAD, short)
    assert not notes(IDS, LOAD, [short[0], sized(IDS, "1m", 1950, {"ids": 0.45})])
    # Half of a CPU is no limit, be it half of one or a quarter of two: it waits for something.
    waiting = [sized(IDS, "1s", 230, {"ids": 0.5}), sized(IDS, "1m", 230, {"ids": 0.25})]
    assert not notes(IDS, LOAD, waiting)


@pytest.mark.parametrize(
    ("small", "medium", "used", "verdicts"),
    [(230, 240, 0.75, 1), (230, 240, 0.85, 0), (250, 264, 0.6, 1), (250, 266, 0.6, 0)],
)
def test_a_component_that_is_busy_or_a_load_that_may_be_a_tenth_more_is_no_verdict(
    small: float, medium: float, used: float, verdicts: int
) -> None:
    """Cao et al. saw CPUs of 75 to 85 % at the capacity: only what is less busy than all of that range is idle.

    The larger size does not carry 10 calls/s more than its capacity: it may carry anything up to that.
    """
    sizes = [sized(IDS, "1s", small, {"ids": 0.98}), sized(IDS, "1m", medium, {"ids": used})]
    assert len(notes(IDS, LOAD, sizes)) == verdicts


def test_scaling_out_is_compared_with_the_same_vcpus_in_fewer_instances() -> None:
    cpu = {"bono": 0.5, "sprout": 0.8, "homestead": 0.7}
    capacities = {"1s 1s 1s": 350, "1m 1m 1m": 600, "1m 2s 2s": 350, "1m 2s 1m": 650}
    sizes = [sized(CLEARWATER, words, capacity, cpu) for words, capacity in capacities.items()]
    _, one, small, mixed = (size.text for size in sizes)
    cost, gain = notes(CLEARWATER, LOAD, sizes)
    assert cost.startswith(f"{small} carries 350 calls/s, {one} ") and cost.endswith(" cost 42 %.")
    assert gain.startswith(f"{mixed} carries 650 calls/s, {one} ") and gain.endswith(" bring 8 %.")


def test_the_size_for_a_workload_is_named_and_a_load_that_is_carried_again() -> None:
    asked = LOAD.model_copy(update={"workload": 500.0})
    sizes = [sized(IDS, words, capacity, {"ids": 0.95}) for words, capacity in (("1s", 300), ("1l", 900), ("1m", 600))]
    assert notes(IDS, asked, sizes)[0].startswith("ids 1 medium carries 500 calls/s with the fewest vCPUs")
    assert notes(IDS, asked, sizes[:1]) == ("No measured size carries 500 calls/s.",)
    again = offered(100, 100), offered(150, 90), offered(200, 190)
    (note,) = notes(IDS, LOAD, [sized(IDS, "1s", 100, {"ids": 0.9}).model_copy(update={"offered": again})])
    assert note.startswith("ids 1 small carries 200 calls/s above one that it does not carry")
