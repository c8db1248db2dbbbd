"""One deployment size under a row of loads: repetitions, where the row ends, capacities, the busiest component."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from resources.libraries.python import special_functions
from resources.libraries.python.model.service.spec import Capacity, DeploymentSpec, Offered, Trace, Use, WatchedResource
from resources.libraries.python.model.service.workload import Stop
from resources.libraries.python.studies.sizing.search.capacity_estimate import crossing

NEAR_LIMIT = 0.7
"""Share of its CPUs from which on an instance is near its limit. Cao et al. saw 75 to 85 % at the capacity, which is up
to a step of the loads below the limit."""
_ROUNDING = 1e-9
_SURE = 0.99
_MIN_SWING = 0.01
"""Of the load: smaller deviations are no oscillation, however steady the service was before."""


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
