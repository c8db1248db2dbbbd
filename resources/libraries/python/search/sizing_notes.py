"""What sizes say of each other: a component that does not scale, what scaling out costs, the smallest that will do."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from resources.libraries.python.model.sizing import DeploymentSpec, Sized, Watched
from resources.libraries.python.model.workload import WorkloadSpec
from resources.libraries.python.search.capacity import at_capacity, carried_again, utilization

LEAST_GAIN = 0.10
"""A larger flavor that brings less than this brings nothing."""
IDLE = 0.8
"""A component that uses less than this share of its CPUs has some left."""


def notes(spec: DeploymentSpec, workload: WorkloadSpec, sizes: Sequence[Sized]) -> tuple[str, ...]:
    """Everything worth saying, a sentence each."""
    whole = [row for row in sizes if not row.failed]
    return (
        *not_scaling(spec, workload, whole),
        *scale_out_costs(spec, workload, whole),
        *_enough(workload, whole),
        *_carried_again(workload, whole),
    )


def not_scaling(spec: DeploymentSpec, workload: WorkloadSpec, sizes: Sequence[Sized]) -> Iterator[str]:
    """Components to which a larger flavor brings nothing: at most one sentence each, for the smallest such flavor.

    Two sizes that differ in one component's flavor are compared, where that component is busiest in the smaller one. It
    does not scale if the capacity grows by less than 10 %, it leaves CPUs idle in the larger size, and no other
    component is busy there, which would be the limit instead.
    """
    for component in spec.components:
        steps = [(a, b) for a, b in _pairs(sizes) if _only_flavor_grows(spec, a, b, component.name) and not a.at_top]
        for a, b in sorted(steps, key=lambda pair: (pair[0].vcpus, pair[1].vcpus)):
            if a.bottleneck != component.name or not a.capacity or not b.capacity or b.at_top:
                continue
            gain = b.capacity / a.capacity - 1
            point = at_capacity(b.offered, b.capacity)
            use = utilization(point, Watched.CPU) if point else {}
            if gain >= LEAST_GAIN or component.name not in use or max(use.values()) >= IDLE:
                continue
            low, high = (spec.flavors[row.size.components[component.name].flavor].vcpus for row in (a, b))
            yield (
                f"{component.name} does not scale past {_vcpus(low)}: {b.name} carries {b.capacity:g} {workload.unit}, "
                f"{a.name} {a.capacity:g}, and of {_vcpus(high)} {use[component.name] * high:.2f} are used."
            )
            break


def _vcpus(count: float) -> str:
    return f"{count:g} vCPU{'' if count == 1 else 's'}"


def _pairs(sizes: Sequence[Sized]) -> Iterator[tuple[Sized, Sized]]:
    """All pairs, the one with fewer vCPUs first."""
    yield from combinations(sorted(sizes, key=lambda row: row.vcpus), 2)


def _only_flavor_grows(spec: DeploymentSpec, a: Sized, b: Sized, component: str) -> bool:
    here, there = a.size.components[component], b.size.components[component]
    others = all(share == b.size.components[name] for name, share in a.size.components.items() if name != component)
    return others and here.instances == there.instances and _cpus(spec, a, component) < _cpus(spec, b, component)


def _cpus(spec: DeploymentSpec, sized: Sized, component: str) -> float:
    share = sized.size.components[component]
    return share.instances * spec.flavors[share.flavor].vcpus


def _instances(sized: Sized) -> int:
    return sum(share.instances for share in sized.size.components.values())


def scale_out_costs(spec: DeploymentSpec, workload: WorkloadSpec, sizes: Sequence[Sized]) -> Iterator[str]:
    """What several small instances cost against fewer large ones, where every component has the same vCPUs in both."""
    for size in sizes:
        alike = [
            row
            for row in sizes
            if _instances(row) < _instances(size)
            and all(_cpus(spec, row, part.name) == _cpus(spec, size, part.name) for part in spec.components)
        ]
        base = min(alike, key=_instances, default=None)
        if base is None or not base.capacity or size.capacity is None or size.at_top:
            continue
        cost = 1 - size.capacity / base.capacity
        least = "at least " if base.at_top else ""
        verdict = f"more instances cost {least}{100 * cost:.0f} %" if cost >= 0 else f"they bring {-100 * cost:.0f} %"
        yield (
            f"{size.name} carries {size.capacity:g} {workload.unit}, {base.name} with the same vCPUs "
            f"{base.capacity:g}: {verdict}."
        )


def _enough(workload: WorkloadSpec, sizes: Sequence[Sized]) -> Iterator[str]:
    """The size that carries the workload with the fewest vCPUs."""
    wanted = workload.workload
    if wanted is None:
        return
    fitting = [row for row in sizes if row.capacity is not None and row.capacity >= wanted]
    least = min(fitting, key=lambda row: row.vcpus, default=None)
    if least is None:
        yield f"No measured size carries {wanted:g} {workload.unit}."
    else:
        yield f"{least.name} carries {wanted:g} {workload.unit} with the fewest vCPUs of all measured, {least.vcpus:g}."


def _carried_again(workload: WorkloadSpec, sizes: Sequence[Sized]) -> Iterator[str]:
    for size in sizes:
        again = carried_again(size.offered, workload.threshold)
        if again:
            loads = ", ".join(f"{load:g}" for load in again)
            yield f"{size.name} carries {loads} {workload.unit} above a load that it does not carry; they do not count."
