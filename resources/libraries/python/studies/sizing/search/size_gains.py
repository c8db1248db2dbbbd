"""Comparison of two sizes: how much more one carries, with a confidence interval, and what scaling costs.

Components that do not scale with the CPUs of their instances are those to which a larger flavor brings nothing.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from resources.libraries.python.model.service.spec import (
    DeploymentSpec,
    MeasuredSize,
    Overhead,
    Scaling,
    WatchedResource,
    vcpus_text,
)
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.quantities import grouped, signed
from resources.libraries.python.search.ratio_interval import IntervalEstimate, relative_gain
from resources.libraries.python.studies.sizing.search.capacity import at_capacity, busiest, utilization

MIN_GAIN = 0.10
"""Something larger that brings less than this, and not surely anything, brings nothing."""
_UNKNOWN = 0.5
"""An interval that reaches up to this gain does not show that there is none."""
IDLE = 0.8
"""A component that uses less than this share of its CPUs has some left."""


class Gain(NamedTuple):
    """Capacity of a size over that of another one, less 1, with its 95 % confidence interval."""

    ratio: float
    low: float
    high: float

    @property
    def is_nothing(self) -> bool:
        """Whether it may be none, and cannot be large."""
        return self.low <= 0 and self.ratio < MIN_GAIN and self.high < _UNKNOWN

    def __str__(self) -> str:
        return f"{signed(100 * self.ratio)} %, 95 % interval {signed(100 * self.low)} to {signed(100 * self.high)} %"


def gain(a: MeasuredSize, b: MeasuredSize) -> Gain | None:
    """Compare the capacity of `b` with that of `a`; None where one of them is not known, or only a lower bound."""
    before, after = _estimate(a), _estimate(b)
    if before is None or after is None:
        return None
    return Gain(*relative_gain(before, after))


def _estimate(sized: MeasuredSize) -> IntervalEstimate | None:
    """Capacity with its interval; without an estimate, between the last load that is carried and the next one."""
    for row in sized.capacities[:1]:
        if row.estimate is not None and row.low is not None and row.high is not None:
            return IntervalEstimate(row.estimate, row.low, row.high)
    if sized.capacity is None or sized.at_top:
        return None
    beyond = next((row.load for row in sized.offered if row.load > sized.capacity), sized.capacity)
    return IntervalEstimate((sized.capacity + beyond) / 2, sized.capacity, beyond)


def best_of(sizes: Sequence[MeasuredSize], workload: float | None = None) -> str | None:
    """Name of the size with the fewest vCPUs of those over which the one with the highest capacity gains nothing.

    Where any size carries the workload, it is one of these. None where no size has a capacity.
    """
    known = [row for row in sizes if row.capacity is not None]
    known = [row for row in known if workload is not None and (row.capacity or 0.0) >= workload] or known
    highest = max(known, key=lambda row: (row.capacity or 0.0, -row.vcpus), default=None)
    if highest is None:
        return None
    alike = [row for row in known if row is highest or ((more := gain(row, highest)) is not None and more.is_nothing)]
    return min(alike, key=lambda row: row.vcpus).name


def overheads(spec: DeploymentSpec, sizes: Sequence[MeasuredSize]) -> Iterator[Overhead]:
    """Yield the overhead of each size over the next smaller one that becomes it by scaling up, and by scaling out.

    All components that differ are scaled by the same factor, and those that limit the two sizes in this way: otherwise
    the vCPUs that carry nothing are not those of scaling.
    """
    for size in sizes:
        for scaling in (Scaling.UP, Scaling.OUT):
            found = [each for base in sizes if (each := _overhead(spec, scaling, base, size)) is not None]
            if found:
                yield min(found, key=lambda each: each.vcpus_ratio)


def _overhead(spec: DeploymentSpec, scaling: Scaling, base: MeasuredSize, size: MeasuredSize) -> Overhead | None:
    factors, more = _factors(spec, base, size), gain(base, size)
    factor = min(factors.values(), default=1.0)
    limits = {(row.bottleneck, scaling) if row.near_limit else None for row in (base, size)}
    if more is None or not limits <= factors.keys() or set(factors.values()) != {factor} or factor <= 1:
        return None
    return Overhead(
        scaling=scaling,
        base=base.name,
        size=size.name,
        components=tuple(name for name, _ in factors),
        vcpus_ratio=factor,
        capacity_ratio=1 + more.ratio,
        overhead_ratio=1 - (1 + more.ratio) / factor,
        low=1 - (1 + more.high) / factor,
        high=1 - (1 + more.low) / factor,
    )


def _factors(spec: DeploymentSpec, base: MeasuredSize, size: MeasuredSize) -> dict[tuple[str, Scaling], float]:
    """Factor of the vCPUs of each component that differs, with the way in which it is scaled: by both is hybrid."""
    found = {}
    for name, share in size.size.components.items():
        before = base.size.components[name]
        if share != before:
            up, out = share.flavor != before.flavor, share.instances != before.instances
            scaling = Scaling.HYBRID if up and out else Scaling.UP if up else Scaling.OUT
            vcpus = [row.instances * spec.flavors[row.flavor].vcpus for row in (before, share)]
            found[name, scaling] = round(vcpus[1] / vcpus[0], 6)
    return found


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
        pairs = combinations(sorted(sizes, key=lambda row: row.vcpus), 2)
        steps = [(a, b) for a, b in pairs if _only_flavor_grows(spec, a, b, component.name)]
        for a, b in sorted(steps, key=lambda pair: (pair[0].vcpus, pair[1].vcpus)):
            if _gains_nothing(a, b) and _limits(spec, component.name, a, b):
                yield _sentence(spec, workload, component.name, a, b)
                break


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
        f"does not scale past {vcpus_text(low)}"
        if most <= low
        else f"gains nothing from {vcpus_text(high)} instead of {low:g}"
    )
    return (
        f"{component} {verdict}: {b.text} carries {grouped(b.capacity or 0.0)} {workload.unit}, {a.text} "
        f"{grouped(a.capacity or 0.0)}, where an instance uses at most {most:.2f} of {vcpus_text(high)}."
    )
