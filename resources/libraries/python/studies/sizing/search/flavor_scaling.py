"""Components that do not scale with the CPUs of their instances: larger flavors that bring nothing."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from resources.libraries.python.model.service.spec import DeploymentSpec, MeasuredSize, WatchedResource
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.search.capacity import at_capacity, busiest, utilization
from resources.libraries.python.studies.sizing.search.size_gains import MIN_GAIN

IDLE = 0.8
"""A component that uses less than this share of its CPUs has some left."""


def not_scaling(spec: DeploymentSpec, workload: WorkloadSpec, sizes: Sequence[MeasuredSize]) -> Iterator[str]:
    """Components to which a larger flavor brings nothing: at most one sentence each, for the smallest such flavor.

    Two sizes are compared that differ in the flavor of one component. That the capacity stays as it is has many causes:
    another component limits it now, loads are too far apart to show the gain, the service waits for something else. So
    a sentence needs all of this:

    - Before and after the step that component is the busiest one.
    - The first load that the larger size does not carry is less than 10 % above the capacity of the smaller one.
    - At no load, overload included, does an instance of the component use all its CPUs (80 %), but one of them it does:
      a program with one thread can, so flavors up to one CPU limit no program by its threads.
    - At no load does another component use one CPU, or all that it has: one with one thread would be the limit by that.
    """
    for component in spec.components:
        steps = [(a, b) for a, b in _pairs(sizes) if _only_flavor_grows(spec, a, b, component.name)]
        for a, b in sorted(steps, key=lambda pair: (pair[0].vcpus, pair[1].vcpus)):
            if _gains_nothing(a, b) and _limits(spec, component.name, a, b):
                yield _sentence(spec, workload, component.name, a, b)
                break


def _pairs(sizes: Sequence[MeasuredSize]) -> Iterator[tuple[MeasuredSize, MeasuredSize]]:
    """All pairs, the one with fewer vCPUs first."""
    yield from combinations(sorted(sizes, key=lambda row: row.vcpus), 2)


def _only_flavor_grows(spec: DeploymentSpec, a: MeasuredSize, b: MeasuredSize, component: str) -> bool:
    here, there = a.size.components[component], b.size.components[component]
    others = all(share == b.size.components[name] for name, share in a.size.components.items() if name != component)
    return others and here.instances == there.instances and _vcpus(spec, a, component) < _vcpus(spec, b, component)


def _gains_nothing(a: MeasuredSize, b: MeasuredSize) -> bool:
    """Whether all that the larger size may carry, up to the first load that it does not, is hardly more."""
    if a.at_top or a.capacity is None or b.capacity is None:
        return False
    beyond = [row.load for row in b.offered if row.load > b.capacity]
    return bool(beyond) and min(beyond) < (1 + MIN_GAIN) * a.capacity


def _limits(spec: DeploymentSpec, component: str, a: MeasuredSize, b: MeasuredSize) -> bool:
    """Whether it is that component which keeps the larger size from carrying more, by not using all its CPUs."""
    if not _is_busiest(component, a) or not _is_busiest(component, b):
        return False
    for other in spec.components:
        there, most = _vcpus(spec, b, other.name), _most_used(spec, b, other.name)
        if most is None:
            return False
        one = IDLE * min(1.0, there)
        if not (one <= most < IDLE * there if other.name == component else most < one):
            return False
    return True


def _is_busiest(component: str, sized: MeasuredSize) -> bool:
    point = at_capacity(sized.offered, sized.capacity)
    return point is not None and busiest(utilization(point, WatchedResource.CPU)) == component


def _vcpus(spec: DeploymentSpec, sized: MeasuredSize, component: str) -> float:
    """Return the vCPUs of one instance."""
    return spec.flavors[sized.size.components[component].flavor].vcpus


def _most_used(spec: DeploymentSpec, sized: MeasuredSize, component: str) -> float | None:
    """CPUs that the busiest instance used at the load at which it used most; None where that is not known."""
    rows = [use.cpu for load in sized.offered for use in load.by_component().get(component, [])]
    known = [cpu for cpu in rows if cpu is not None]
    return max(known) * _vcpus(spec, sized, component) if rows and len(known) == len(rows) else None


def _sentence(spec: DeploymentSpec, workload: WorkloadSpec, component: str, a: MeasuredSize, b: MeasuredSize) -> str:
    low, high = (_vcpus(spec, row, component) for row in (a, b))
    most = round(_most_used(spec, b, component) or 0.0, 2)
    # One that uses more than the smaller flavor has, at the same capacity, does scale past it: to no effect.
    verdict = (
        f"does not scale past {_in_words(low)}"
        if most <= low
        else f"gains nothing from {_in_words(high)} instead of {low:g}"
    )
    return (
        f"{component} {verdict}: {b.name} carries {b.capacity:g} {workload.unit}, {a.name} {a.capacity:g}, "
        f"where an instance uses at most {most:.2f} of {_in_words(high)}."
    )


def _in_words(vcpus: float) -> str:
    return f"{vcpus:g} vCPU{'' if vcpus == 1 else 's'}"
