"""Sweeps and their profiles: plots against the input rate, functions, and the highest rate within bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from csit_utils.dataset.papers import PublishedFigure
from csit_utils.report.characterizations import warnings
from csit_utils.report.figures import Figure
from csit_utils.report.published import sections
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page, View
from csit_utils.report.units import digits3, percent
from csit_utils.studies.sweep.comparison import comparisons
from csit_utils.studies.sweep.figures import sweep_figures
from csit_utils.studies.sweep.published_functions import functions_of_routers
from csit_utils.studies.sweep.quality_form import FIRST, answered, payload
from resources.libraries.python.studies.sweep.analysis.sentences import UNITS
from resources.libraries.python.studies.sweep.analysis.tables import functions_of
from resources.libraries.python.studies.sweep.model.profile import Fit, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import SweepRecord

_NOTHING = 1e-13
"""Rounding error of zero."""


@dataclass(frozen=True)
class Function:
    """A line of the table of functions."""

    metric: ProfileMetric
    region: str
    fit: Fit

    @property
    def coefficients(self) -> str:
        """For people."""
        return ", ".join(
            f"{name} = {value if abs(value) > _NOTHING else 0.0:.5g}" for name, value in self.fit.coefficients.items()
        )

    @property
    def standard_error(self) -> str:
        """With its unit."""
        return (
            f"{digits3(self.fit.standard_error)} {UNITS[self.metric]}" if self.fit.standard_error > _NOTHING else "none"
        )

    @property
    def relative_error(self) -> str:
        """In percent; none where all values are zero."""
        error = self.fit.relative_error
        return percent(error if error is None or error > _NOTHING else 0.0)


@dataclass(frozen=True)
class Profiled:
    """A sweep on the page."""

    view: View
    anchor: str
    figures: tuple[Figure, ...]
    functions: tuple[Function, ...]
    warnings: Sequence[str]


_REGIONS = {"nonsat": "below", "sat": "saturated"}


def profile_anchor(view: View) -> str:
    """Id of a sweep's section here; a chain's own section is on another page."""
    return f"{view.anchor}-profile" if view.record.kind == "chain" else view.anchor


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    found = [view for view in shown.characterizations if view.record.kind in ("sweep", "chain")]
    if not found:
        return None
    profiled = [_profiled(view) for view in found]
    compared = comparisons(found)
    papers = sections(shown.papers, "sweep", found, _saturation, partial(functions_of_routers, found))
    figures = [figure for each in profiled for figure in each.figures]
    beside = [figure for each in papers for figure in each.figures]
    return {
        "answered": answered(found),
        "profile_anchor": profile_anchor,
        "first": FIRST,
        "compared": compared,
        "profiled": profiled,
        "papers": papers,
        "data": payload(found),
        "simulated": any(view.record.simulated for view in found),
        "measured": any(not view.record.simulated for view in found),
        "figures": [*(figure for each in compared for figure in (each.figure, *each.more)), *figures, *beside],
    }


def _profiled(view: View) -> Profiled:
    profile = view.record.profile
    functions = functions_of(profile) if profile else ()
    whole = profile is not None and profile.break_point is None
    return Profiled(
        view,
        profile_anchor(view),
        tuple(sweep_figures(profile_anchor(view), view.record)),
        tuple(Function(metric, "all rates" if whole else _REGIONS[region], fit) for metric, region, fit in functions),
        warnings(view.record),
    )


def _saturation(record: SweepRecord, figure: PublishedFigure) -> float | None:
    """Of a VNF of the same kind alone, Gbit/s."""
    sweep, profile = record.sweep, record.profile
    if sweep is None or [vnf.kind for vnf in sweep.vnfs] != [figure.match] or profile is None:
        return None
    return profile.break_point.rate if profile.break_point else None


PAGE = Page("profiles", "Profiles", _build)
"""Shown where there is a sweep or a chain."""
