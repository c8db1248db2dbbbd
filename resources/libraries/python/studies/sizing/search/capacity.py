"""One deployment size under a row of loads, and two sizes compared.

Of one: repetitions, where the row ends, capacities, the busiest component. Of two: how much more one carries, with a
confidence interval, and what scaling costs. Components that do not scale with the CPUs of their instances are those to
which a larger flavor brings nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean, stdev

from resources.libraries.python import special_functions
from resources.libraries.python.model.service.spec import (
    Capacity,
    DeploymentSpec,
    MeasuredSize,
    Offered,
    Overhead,
    Scaling,
    Trace,
    Use,
    WatchedResource,
    vcpus_text,
)
from resources.libraries.python.model.service.workload import Stop, WorkloadSpec
from resources.libraries.python.quantities import grouped, signed
from resources.libraries.python.search.ratio_interval import IntervalEstimate, relative_gain
from resources.libraries.python.studies.sizing.search.capacity_estimate import crossing

NEAR_LIMIT = 0.7
"""Share of its CPUs from which on an instance is near its limit. Cao et al. saw 75 to 85 % at the capacity, which is up
to a step of the loads below the limit."""
_ROUNDING = 1e-9
_SURE = 0.99
_MIN_SWING = 0.01
"""Of the load: smaller deviations are no oscillation, however steady the service was before."""
MIN_GAIN = 0.10
"""Something larger that brings less than this, and not surely anything, brings nothing."""
_UNKNOWN = 0.5
"""An interval that reaches up to this gain does not show that there is none."""
IDLE = 0.8
"""A component that uses less than this share of its CPUs has some left."""


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """A load, offered once."""

    indicator: float
    """Values reported by the generator script."""
    use: Mapping[str, Use]
    """By instance."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """More that it said, by name."""
    trace: Trace | None = None


def offered_load(load: float, repeat: int, offer: Callable[[float], OfferedLoad]) -> Offered:
    """Offer one load so many times."""
    runs = [offer(load) for _ in range(repeat)]
    indicators = tuple(run.indicator for run in runs)
    return Offered(
        load=load,
        indicators=indicators,
        mean=fmean(indicators),
        stdev=stdev(indicators) if repeat > 1 else None,
        figures={
            name: fmean(run.figures[name] for run in runs if name in run.figures)
            for name in dict.fromkeys(name for run in runs for name in run.figures)
        },
        use={name: _mean_use([run.use[name] for run in runs if name in run.use]) for name in runs[0].use},
        trace=runs[0].trace,
    )


def with_few_traces(offered: Sequence[Offered], capacity: float | None) -> tuple[Offered, ...]:
    """The same loads with traces of three of them: nearest to half of the capacity, at the capacity, the highest.

    Without a capacity these are the lowest and the highest. Traces of all loads would be most of a record.
    """
    loads = [row.load for row in offered]
    below = [load for load in loads if capacity is not None and load < capacity]
    half = min(below, key=lambda load: abs(load - (capacity or 0.0) / 2), default=None)
    kept = {half, capacity, *loads[-1:], *(loads[:1] if capacity is None else ())}
    return tuple(row if row.load in kept else row.model_copy(update={"trace": None}) for row in offered)


def _mean_use(rows: Sequence[Use]) -> Use:
    return Use(
        cpu=_mean(row.cpu for row in rows),
        memory=_mean(row.memory for row in rows),
        network_bps=_mean(row.network_bps for row in rows),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def ends(stop: Stop | None, offered: Sequence[Offered]) -> bool:
    """Whether no higher load needs to be offered: the last ones, so many as the rule says, were below its share."""
    if stop is None or len(offered) < stop.loads:
        return False
    return all(not _carried(row, stop.below) for row in offered[-stop.loads :])


def _carried(row: Offered, threshold: float) -> bool:
    return row.ratio >= threshold - _ROUNDING


def capacity_of(offered: Sequence[Offered], threshold: float) -> float | None:
    """The highest offered load whose indicator is at least `threshold` of it, as of all loads below it.

    A load that is carried above one that was not does not count: the service cannot be relied on there. So the capacity
    does not depend on how far beyond it loads were offered. None where not even the lowest load was carried.
    """
    capacity = None
    for row in offered:
        if not _carried(row, threshold):
            break
        capacity = row.load
    return capacity


def capacities_of(offered: Sequence[Offered], thresholds: Iterable[float]) -> tuple[Capacity, ...]:
    """Capacity at each threshold, with its estimate and confidence interval."""
    found = []
    for threshold in thresholds:
        at = crossing(offered, threshold)
        load, low, high = at or (None, None, None)
        carried = capacity_of(offered, threshold)
        found.append(Capacity(threshold=threshold, carried=carried, estimate=load, low=low, high=high))
    return tuple(found)


def carried_again(offered: Sequence[Offered], threshold: float) -> tuple[float, ...]:
    """Loads that were carried above one that was not."""
    capacity = capacity_of(offered, threshold)
    return tuple(row.load for row in offered if (capacity is None or row.load > capacity) and _carried(row, threshold))


def at_capacity(offered: Sequence[Offered], capacity: float | None) -> Offered | None:
    """Measurement at the capacity, or at the lowest load without one."""
    return next((row for row in offered if capacity is None or row.load == capacity), None)


def utilization(offered: Offered, watch: WatchedResource) -> dict[str, float]:
    """Use of each component by its busiest instance; a component of which nothing is known is left out.

    Load is not always spread evenly, and the instance that has most of it is the first to refuse calls. The network has
    no share that could be used up: there it is bits per second of an instance.
    """
    found = {}
    for name, rows in offered.by_component().items():
        known = [value for use in rows if (value := _watched(use, watch)) is not None]
        if known:
            found[name] = max(known)
    return found


def _watched(use: Use, watch: WatchedResource) -> float | None:
    match watch:
        case WatchedResource.CPU:
            return use.cpu
        case WatchedResource.MEMORY:
            return use.memory
        case WatchedResource.NETWORK:
            return use.network_bps


def busiest(use: Mapping[str, float]) -> str | None:
    """The component that is used most; of two alike the first one."""
    return max(use, key=lambda name: use[name], default=None)


def most_used(offered: Sequence[Offered]) -> dict[str, float]:
    """Share of the CPUs of each component's busiest instance in use, under the load that uses most of them."""
    found: dict[str, float] = {}
    for row in offered:
        for name, cpu in utilization(row, WatchedResource.CPU).items():
            found[name] = max(cpu, found.get(name, cpu))
    return found


def is_near_limit(spec: DeploymentSpec, offered: Sequence[Offered]) -> bool | None:
    """Whether any component is near the limit of its CPUs; None where one is not known, or CPU does not decide."""
    most = most_used(offered)
    if spec.watch is not WatchedResource.CPU or len(most) < len(spec.components):
        return None
    return max(most.values()) >= NEAR_LIMIT


def overload_from(offered: Sequence[Offered]) -> float | None:
    """The lowest load at which repetitions differ clearly more than at all loads below it.

    A service that sheds load by additive increase and multiplicative decrease swings as soon as it is overloaded,
    before its mean falls much. Clearly: the variance of indicator over load is larger by an F test on the level of 1 %,
    and the deviation is at least 1 % of the load. None where nothing swings or nothing was repeated.
    """
    freedom, squares = 0, 0.0
    for row in offered:
        own = len(row.indicators) - 1
        swing = (row.stdev or 0.0) / row.load
        if own and freedom and swing >= _MIN_SWING:
            bound = float(special_functions.fdtri(own, freedom, _SURE))
            if swing**2 > bound * squares / freedom:
                return row.load
        freedom, squares = freedom + own, squares + own * swing**2
    return None


class Gain(IntervalEstimate):
    """Capacity of a size over that of another one, less 1, with its 95 % confidence interval."""

    @property
    def is_nothing(self) -> bool:
        """Whether it may be none, and cannot be large."""
        return self.low <= 0 and self.value < MIN_GAIN and self.high < _UNKNOWN

    def __str__(self) -> str:
        return f"{signed(100 * self.value)} %, 95 % interval {signed(100 * self.low)} to {signed(100 * self.high)} %"


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
        capacity_ratio=1 + more.value,
        overhead_ratio=1 - (1 + more.value) / factor,
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
