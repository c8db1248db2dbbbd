"""A sweep becomes a profile: its break-point, and a function per metric on either side of it (Algorithm 2)."""

from collections.abc import Mapping, Sequence

from resources.libraries.python.studies.sweep.analysis.fitting import FEWEST, best_fit, stands_out
from resources.libraries.python.studies.sweep.analysis.points import Observed, observe
from resources.libraries.python.studies.sweep.analysis.profile_queries import value_at
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.model.profile import (
    BreakPoint,
    Fit,
    MetricProfile,
    Profile,
    ProfileMetric,
)
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepPoint

CONSISTENT = 1.0
"""Percentage points by which loss may differ from what throughput leaves over."""
_ENOUGH = 2 * FEWEST
"""Fewest points that permit to detect an outlier among them."""


def profile_of_sweep(sweep: Sweep) -> Profile:
    """The profile of a sweep of constant loads; see `profile_of`."""
    return profile_of(sweep.name, sweep.points, {vnf.name: vnf.vcpus for vnf in sweep.vnfs})


def profile_of(name: str, points: Sequence[SweepPoint], vcpus: Mapping[str, int]) -> Profile:
    """The profile of a service.

    Args:
        name: Of the service.
        points: Its loads, in any order.
        vcpus: CPUs of each of its VNFs, by name.
    """
    observed, notes = observe(points)
    break_point, unknown = find_break_point(observed, vcpus)
    said = [*notes, *unknown]
    metrics = []
    for metric in ProfileMetric:
        row, missing = _metric(metric, observed, break_point)
        metrics.append(row)
        said += missing
    profile = Profile(name=name, break_point=break_point, metrics=tuple(metrics), notes=())
    contradiction = _contradiction(profile, observed)
    return profile.model_copy(update={"notes": (*said, *([contradiction] if contradiction else []))})


def _metric(
    metric: ProfileMetric, observed: Sequence[Observed], break_point: BreakPoint | None
) -> tuple[MetricProfile, list[str]]:
    known = [(each.rate, value) for each in observed if (value := each.values[metric]) is not None]
    if not known:
        return MetricProfile(metric=metric, nonsat=None, sat=None), [f"{metric} was not measured"]
    notes = []

    def fitted(region: str, part: Sequence[tuple[float, float]], edge: int | None = None) -> Fit | None:
        kept = part if edge is None else _without_edge(metric, part, edge)
        fit = best_fit(metric, [rate for rate, _ in kept], [value for _, value in kept])
        if edge is not None and len(kept) < len(part):
            notes.append(f"{metric} at {part[edge][0]:.4g} Gbit/s is an outlier {region}: left out there")
        if fit is None:
            there = len({rate for rate, _ in part})
            notes.append(f"{metric} has no function {region}: {there} loads there, {FEWEST} are needed")
        return fit

    if break_point is None:
        return MetricProfile(metric=metric, nonsat=fitted("of the rate", known), sat=None), notes
    below = [(rate, value) for rate, value in known if rate < break_point.rate]
    above = [(rate, value) for rate, value in known if rate >= break_point.rate]
    row = MetricProfile(
        metric=metric,
        nonsat=fitted("below the break-point", below, -1),
        sat=fitted("from the break-point on", above, 0),
    )
    return row, notes


def _without_edge(
    metric: ProfileMetric, part: Sequence[tuple[float, float]], edge: int
) -> Sequence[tuple[float, float]]:
    """Points of a region without the one next to the break-point, where that one is none of theirs.

    The break-point is known to a step. Where a metric jumps there, a single point on the wrong side would bend the
    function of all others.
    """
    others = [each for each in part if each != part[edge]] if part else []
    if len(others) < _ENOUGH:
        return part
    rates, values = [rate for rate, _ in others], [value for _, value in others]
    fit = best_fit(metric, rates, values)
    return others if fit is not None and stands_out(fit, rates, values, *part[edge]) else part


def inconsistency(profile: Profile, rate: float) -> float | None:
    """Contradiction of loss and throughput of a profile: loss should be 100*(1-throughput/r).

    Returns:
        The difference in percentage points; None where either is unknown.
    """
    throughput, loss = value_at(profile, ProfileMetric.THROUGHPUT, rate), value_at(profile, ProfileMetric.LOSS, rate)
    if throughput is None or loss is None:
        return None
    return abs(max(0.0, 100 * (1 - throughput / rate)) - loss)


def _contradiction(profile: Profile, observed: Sequence[Observed]) -> str | None:
    off = [
        (difference, each.rate) for each in observed if (difference := inconsistency(profile, each.rate)) is not None
    ]
    worst, rate = max(off, default=(0.0, 0.0))
    if worst <= CONSISTENT:
        return None
    return f"loss and throughput contradict each other by up to {worst:.1f} percentage points, at {rate:.4g} Gbit/s"
