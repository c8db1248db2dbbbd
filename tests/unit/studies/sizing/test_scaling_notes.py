"""Notes on scaling against the truth of simulated services: said of what cannot use more CPUs, and of nothing else."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.sizing import SimOrchestrator, SimulatedService, VirtualTime
from resources.libraries.python.model.service.spec import DeploymentSpec, MeasuredSize, Sizing
from resources.libraries.python.model.service.workload import WorkloadSpec
from tests.unit.examples import share
from tests.unit.studies.sizing.sizing_runs import run_sizing
from tests.unit.studies.sizing.sizing_specs import service

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
    spec = service(
        list(parts),
        [f"{name}x" for name in parts],
        flavors_there=flavors,
        resources={},
        mode="exhaustive",
        most=instances,
        scaling="hybrid",
    )
    simulated = SimulatedService.model_validate({"components": parts, **truth})
    workload = WorkloadSpec.model_validate(
        {
            "range": {"min": 20, "max": 3000},
            "increase": increase,
            "stop": {"below": 0.8},
            "generator": "g.sh",
            "duration_s": 3,
        }
    )
    time = VirtualTime()
    orchestrator = SimOrchestrator(simulated, spec, workload, time)
    return run_sizing(spec, workload, orchestrator, time=time), simulated


def said(sizing: Sizing) -> list[re.Match[str]]:
    return [found for note in sizing.notes if (found := _NOTE.fullmatch(note))]


def flavor_cpus(spec: DeploymentSpec, size: MeasuredSize, name: str) -> float:
    return spec.flavors[size.size.components[name].flavor].vcpus


def test_a_component_that_uses_all_its_cpus_scales() -> None:
    found, _ = measured({"a": {"cpu_ms": 4.5}})
    small, medium, large = (row.capacity or 0 for row in found.sizes)
    assert 1.5 * small < medium < large / 1.5
    assert said(found) == []


def test_one_with_one_thread_does_not_scale_past_one_vcpu() -> None:
    found, _ = measured({"a": {"cpu_ms": 4.5, "threads": 1}})
    (note,) = said(found)
    assert note.group("name", "verdict", "vcpus", "of") == ("a", "does not scale past", "1", "2")
    assert 0.9 <= float(note["used"]) <= 1.0


def test_one_of_several_components_with_one_thread_does_not_scale() -> None:
    found, _ = measured({"a": {"cpu_ms": 1}, "b": {"cpu_ms": 4.5, "threads": 1}})
    assert [note.group("name", "vcpus") for note in said(found)] == [("b", "1")]


def test_one_that_uses_more_than_the_smaller_flavor_has_gains_nothing_from_the_larger() -> None:
    # What Suricata does in the paper: 250 of 400 % of the CPU, and no more packets than with 200 %.
    found, _ = measured({"a": {"cpu_ms": 8, "cpu_growth": 0.9, "threads": 2.5}}, increase=2, full=1, full_falls=0)
    (note,) = said(found)
    assert note.group("verdict", "vcpus", "of") == ("gains nothing from", "4", "4")
    assert "instead of 2: " in note.string
    assert 2.0 < float(note["used"]) < 2.6


@pytest.mark.parametrize("threads", [None, 1.0])
def test_there_is_no_verdict_on_a_component_after_which_another_one_is_the_limit(threads: float | None) -> None:
    # b has hardly more room than a: a larger a brings nothing, though a uses half of it then.
    found, _ = measured({"a": {"cpu_ms": 4.5}, "b": {"cpu_ms": 4.4, "threads": threads}})
    assert {note["name"] for note in said(found)} <= ({"b"} if threads else set())
    sizes = found.named()
    small, larger = (sizes[name].capacity or 0 for name in ("ax1s-bx1s", "ax1m-bx1s"))
    assert larger < 1.05 * small
    assert (sizes["ax1s-bx1s"].bottleneck, sizes["ax1m-bx1s"].bottleneck) == ("a", "b")


def test_there_is_no_verdict_where_another_component_with_one_thread_may_be_the_limit() -> None:
    # b uses one of four CPUs: it looks idle, and it is the limit.
    found, _ = measured({"a": {"cpu_ms": 4.5}, "b": {"cpu_ms": 4.4, "threads": 1}})
    assert "a" not in {note["name"] for note in said(found)}


@pytest.mark.parametrize("threads", [None, 1.0])
def test_there_is_no_verdict_on_flavors_up_to_one_vcpu(threads: float | None) -> None:
    parts = {"a": {"cpu_ms": 0.45, "threads": threads}, "b": {"cpu_ms": 0.35, "threads": threads}}
    found, _ = measured(parts, (0.05, 0.1, 0.2), increase=50)
    assert len(found.sizes) == 9
    assert said(found) == []


def test_a_flavor_of_parts_of_a_vcpu_is_the_smaller_one_where_one_thread_is_the_limit() -> None:
    found, _ = measured({"a": {"cpu_ms": 4.5, "threads": 1}}, (0.5, 1.5, 3), increase=5)
    (note,) = said(found)
    assert note.group("verdict", "vcpus", "of") == ("does not scale past", "1.5", "3")


def test_there_is_no_verdict_where_loads_are_too_far_apart() -> None:
    found, _ = measured({"a": {"cpu_ms": 4.5, "threads": 1}}, increase=60)
    assert found.sizes[0].capacity == found.sizes[1].capacity
    assert said(found) == []


def test_there_is_no_verdict_where_the_range_was_too_short() -> None:
    found, _ = measured({"a": {"cpu_ms": 0.1, "threads": 1}}, increase=100)
    assert all(row.at_top for row in found.sizes)
    assert said(found) == []


@pytest.mark.slow
def test_noise_makes_no_component_look_as_if_it_did_not_scale() -> None:
    for seed in range(12):
        noisy: dict[str, Any] = {"seed": seed, "noise": 0.1, "drift": 0.05}
        assert said(measured({"a": {"cpu_ms": 6}, "b": {"cpu_ms": 5.5}}, increase=20, **noisy)[0]) == []


@pytest.mark.slow
@settings(max_examples=share(40))
@given(data=st.data())
def test_notes_on_scaling_are_true(data: st.DataObject) -> None:
    """Any service of up to two components, with and without load control, noise, and flavors below one vCPU."""
    scale = data.draw(st.sampled_from([1, 1, 0.5, 0.05]))
    part = st.fixed_dictionaries(
        {
            "cpu_ms": st.floats(2 * scale, 9 * scale),
            "threads": st.sampled_from([None, 1, 2, 2.5]),
            "cpu_growth": st.sampled_from([0, 0.05]),
            "imbalance": st.sampled_from([0, 0.2]),
        }
    )
    parts = data.draw(st.dictionaries(st.sampled_from("ab"), part, min_size=1))
    found, simulated = measured(
        parts,
        [scale * count for count in (1, 2, 4)],
        increase=data.draw(st.sampled_from([10, 20, 50])),
        instances=data.draw(st.sampled_from([1, 1, 2])) if len(parts) == 1 else 1,
        seed=data.draw(st.integers(0, 1000)),
        noise=data.draw(st.sampled_from([0, 0.005, 0.05])),
        drift=data.draw(st.sampled_from([0, 0.01, 0.03])),
        control=data.draw(st.sampled_from([None, {}])),
    )
    spec = found.deployment
    measured_sizes = {size.text: size for size in found.sizes}
    for note in said(found):
        name, threads = note["name"], simulated.components[note["name"]].threads
        small, large = (
            simulated.limit(name, share, spec.flavors[share.flavor], 1.0)
            for share in (measured_sizes[note[size]].size.components[name] for size in ("small", "large"))
        )
        assert threads is not None, note.string
        assert large < 1.1 * small, note.string
        assert simulated.capacity(spec, measured_sizes[note["large"]].size, 1.0) == pytest.approx(large), note.string
        # The CPUs that it is said to use are those of an instance, and go together with the verdict.
        assert float(note["used"]) <= min(1.2 * threads, float(note["of"])), note.string
        assert float(note["of"]) == flavor_cpus(spec, measured_sizes[note["large"]], name)
        if note["verdict"] == "does not scale past":
            of_small = flavor_cpus(spec, measured_sizes[note["small"]], name)
            assert threads <= float(note["vcpus"]) == of_small, note.string
            assert float(note["used"]) <= float(note["vcpus"]), note.string
