"""Comparison of two sizes: how much more one carries, with a confidence interval, and what scaling costs."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resources.libraries.python.model.service.spec import DeploymentSpec, MeasuredSize, Overhead, Scaling
from resources.libraries.python.search.ratio_interval import IntervalEstimate, relative_gain

MIN_GAIN = 0.10
"""Something larger that brings less than this, and not surely anything, brings nothing."""
_UNKNOWN = 0.5
"""An interval that reaches up to this gain does not show that there is none."""


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
        return f"{100 * self.ratio:+.0f} %, 95 % interval {100 * self.low:+.0f} to {100 * self.high:+.0f} %"


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
