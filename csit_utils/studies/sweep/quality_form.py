"""The highest rate that keeps bounds of loss and delay: what the page's form computes, and its first answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from csit_utils.report.study import View
from csit_utils.report.units import DASH
from resources.libraries.python.studies.sweep.analysis.points import GIGA
from resources.libraries.python.studies.sweep.analysis.profile_queries import Highest, QualityBounds, highest_rate
from resources.libraries.python.studies.sweep.analysis.sentences import highest_in_words
from resources.libraries.python.studies.sweep.model.profile import Fit, Profile, ProfileMetric

FIRST = QualityBounds(loss_percent=0.5, delay_ms=1.0)
"""Initial values of the form: the loss of PDR, and a millisecond."""


@dataclass(frozen=True)
class Answered:
    """A profile in the table of the form."""

    view: View
    vcpus: int
    saturates: str
    saturates_raw: float | None
    """bit/s."""
    highest: str
    highest_raw: float | None
    """bit/s."""
    limited_by: str


def answered(found: Sequence[View]) -> list[Answered]:
    """A line for every profile, answered for the first question."""
    return [_line(view, view.record.profile) for view in found if view.record.profile is not None]


def _line(view: View, profile: Profile) -> Answered:
    sweep, point = view.record.sweep, profile.break_point
    best = highest_rate(profile, FIRST)
    return Answered(
        view,
        sum(vnf.vcpus for vnf in sweep.vnfs) if sweep else 0,
        f"{point.rate:.4g} Gbit/s" if point else DASH,
        point.rate * GIGA if point else None,
        highest_in_words(best),
        best.rate * GIGA if best.rate is not None else None,
        limited(best),
    )


def limited(best: Highest) -> str:
    """Metric that limits the rates within bounds."""
    if best.limited_by is None:
        return DASH
    return best.limited_by.value if best.known else f"{best.limited_by.value} is unknown above"


def payload(found: Sequence[View]) -> Mapping[str, object]:
    """Data of all profiles for `script/profiles.js`, by anchor."""
    return {view.anchor: plain(view.record.profile) for view in found if view.record.profile is not None}


def plain(profile: Profile) -> Mapping[str, object]:
    """A profile as the script has it."""
    metrics = {
        row.metric.value: {"nonsat": _fit(row.nonsat), "sat": _fit(row.sat)}
        for row in profile.metrics
        if row.metric is not ProfileMetric.THROUGHPUT
    }
    all_fits = [fit for row in profile.metrics for fit in (row.nonsat, row.sat) if fit is not None]
    return {
        "break": profile.break_point.rate if profile.break_point else None,
        "first": min((fit.first_rate for fit in all_fits), default=None),
        "last": max((fit.last_rate for fit in all_fits), default=None),
        "metrics": metrics,
    }


def _fit(fit: Fit | None) -> Mapping[str, object] | None:
    if fit is None:
        return None
    return {
        "name": fit.function,
        "first": fit.first_rate,
        "last": fit.last_rate,
        "c": fit.coefficients,
    }
