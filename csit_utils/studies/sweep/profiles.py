"""Sweeps and their profiles: plots against the input rate, functions, and the highest rate within bounds."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from csit_utils.dataset.reference import Paper, PublishedFigure
from csit_utils.report.figures import Figure
from csit_utils.report.record_blocks import Column, DrawnTable, Plot, RecordTables, Row, Table, plots
from csit_utils.report.record_page import called, sections
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page, View
from csit_utils.report.units import DASH, bandwidth, digits3, percent, rate, seconds
from csit_utils.studies.sweep.figures import INPUT, METRICS, ON_A_LINE, comparisons, function_rows, sweep_figures
from resources.libraries.python.model.result import l2_bps
from resources.libraries.python.studies.sweep.analysis.fitting import coefficient_intervals, student
from resources.libraries.python.studies.sweep.analysis.profile import (
    HighestRate,
    QualityBounds,
    edges,
    highest_rate,
    measured_rates,
    regions_of,
)
from resources.libraries.python.studies.sweep.analysis.sentences import (
    UNITS,
    highest_in_words,
    input_words,
    kind_words,
    rate_in_words,
)
from resources.libraries.python.studies.sweep.analysis.tables import functions_of
from resources.libraries.python.studies.sweep.model import GIGA, Fit, Profile, ProfileMetric, Sweep, SweepRecord

_NOTHING = 1e-13
"""Rounding error of zero."""
FIRST = QualityBounds(loss_percent=0.5, delay_ms=1.0)
"""Initial values of the form: the loss of PDR, and a millisecond."""


def _profiled(view: View) -> Mapping[str, Any]:
    """Values of a sweep for the template."""
    anchor = profile_anchor(view)
    tables = RecordTables(anchor, view.simulated, view.record.profile)
    return {
        "view": view,
        "anchor": anchor,
        "figures": sweep_figures(anchor, view.record),
        "functions": _FUNCTIONS.draw(tables),
        "loads": _loads(view.record.sweep, tables),
    }


_REGIONS = {"nonsat": "below", "between": "between", "sat": "saturated"}


def _zero(value: float) -> float:
    """A value without the rounding error of zero."""
    return value if abs(value) > _NOTHING else 0.0


def _coefficients(fit: Fit) -> str:
    """For people, with 95 % intervals."""
    known = coefficient_intervals(fit)
    return ", ".join(
        f"{name} = {_zero(value):.5g}"
        + (f" ({_zero(known[name][0]):.4g} to {_zero(known[name][1]):.4g})" if name in known else "")
        for name, value in fit.coefficients.items()
    )


def _fitted(profile: Profile | None) -> Iterator[Row]:
    """Functions; a relative error is unknown where all values are zero."""
    for metric, region, fit in functions_of(profile) if profile else ():
        standard, relative = fit.standard_error, fit.relative_error
        yield {
            "metric": metric,
            "region": "all rates" if profile is not None and profile.break_point is None else _REGIONS[region],
            "function": f"{fit.function} `{fit.formula}`",
            "coefficients": _coefficients(fit),
            "standard error": standard,
            "standard": f"{digits3(standard)} {UNITS[metric]}" if standard > _NOTHING else "none",
            "relative_error": relative,
            "relative": percent(None if relative is None else _zero(relative)),
            "points": fit.points,
            "of Gbit/s": fit.first_rate,
            "range": f"{fit.first_rate:.3g}\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}{fit.last_rate:.3g}",
        }


_FUNCTIONS = Table(
    "functions",
    _fitted,
    (
        Column("metric", text=True),
        Column("region", text=True),
        Column("function", text=True, code=True),
        Column("coefficients", text=True),
        Column("standard error", words="standard"),
        Column("relative_error", "relative error", words="relative"),
        Column("points", write=str),
        Column("of Gbit/s", words="range"),
    ),
    "Functions of the input rate r in Gbit/s",
    ("profile-error", "errors of a profile"),
)


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
    return {
        "answered": answered(found),
        "profile_anchor": profile_anchor,
        "first": FIRST,
        "compared": compared,
        "profiled": profiled,
        "papers": papers,
        "data": payload(found),
        "figures": [
            *(figure for each in compared for figure in (each["figure"], *each["more"])),
            *(figure for each in profiled for figure in each["figures"]),
            *(figure for each in papers for figure in each.figures),
        ],
    }


def _loads(sweep: Sweep | None, tables: RecordTables) -> DrawnTable | None:
    vnfs = () if sweep is None else sweep.vnfs
    points = () if sweep is None else sweep.points
    rows = [{**dict(point), **{f"{vnf.name}_cpus": point.used(vnf.name) for vnf in vnfs}} for point in points]
    return Table(
        "loads",
        lambda _: rows,
        (
            Column("rate_pps", "asked, each flow", rate),
            Column("input_pps", "input, packets", rate),
            Column("input_bps", "input, bits", bandwidth),
            Column("sender_pps", "sender's interface", rate),
            Column("output_pps", "output", rate),
            Column("loss_ratio", "loss", percent),
            Column("delay_s", "delay", seconds),
            *(Column(f"{vnf.name}_cpus", f"{vnf.name} CPU", percent) for vnf in vnfs),
            Column("samples", "seconds", str),
            Column("flagged", text=True),
        ),
        folded=f"All {len(rows)} loads",
        mark={"flagged": "bad"},
    ).draw(tables)


def _saturation(record: SweepRecord, figure: PublishedFigure) -> float | None:
    """Return the saturation of a VNF of the same kind alone, Gbit/s."""
    sweep, profile = record.sweep, record.profile
    if sweep is None or [vnf.kind for vnf in sweep.vnfs] != [figure.match] or profile is None:
        return None
    return profile.break_point.rate if profile.break_point else None


PAGE = Page("profiles", "Profiles", _build)
"""Shown where there is a sweep or a chain."""


def functions_of_routers(found: Sequence[View], paper: Paper) -> tuple[Figure, ...]:
    """Published functions, and those of VNFs of the same kind here."""
    if not paper.profiles:
        return ()
    drawn = [view for view in found if _is_router(view.record)]
    functions = [
        *((f"published: {profile.name}", "dash", profile) for profile in paper.profiles),
        *((called(view, drawn), "solid", view.record.profile) for view in drawn if view.record.profile),
    ]
    return tuple(
        plots(
            RecordTables(f"published-{paper.name}", any(view.simulated for view in drawn), functions),
            Plot(
                "functions",
                f"Functions of a router: published by {paper.title} and fitted here",
                _functions,
                INPUT,
                METRICS,
                colour="line",
                mark="lines",
                lines={name: {"line": {"width": 2, "dash": dash}} for name, dash, _ in functions},
            ),
        )
    )


def _functions(found: Sequence[tuple[str, str, Profile]]) -> Iterator[Row]:
    for name, _, profile in found:
        rates = measured_rates(profile)
        on_line = np.linspace(*rates, ON_A_LINE).tolist() if rates else []
        yield from ({**row, "line": name} for row in function_rows(profile, on_line, ProfileMetric))


def _is_router(record: SweepRecord) -> bool:
    """Whether it has the functions of a router alone."""
    kinds = [kind_words(vnf) for vnf in record.sweep.vnfs] if record.sweep else []
    return record.profile is not None and kinds == ["router"]


class Answered:
    """A profile in the table of the form."""

    def __init__(self, view: View, profile: Profile) -> None:
        sweep, point, best = view.record.sweep, profile.break_point, highest_rate(profile, FIRST)
        words = partial(input_words, sweep)
        self.view = view
        self.vcpus = sum(vnf.vcpus for vnf in sweep.vnfs) if sweep else 0
        self.saturates = f"{rate_in_words(point, words)}, by {point.indicator}" if point and sweep else DASH
        self.saturates_raw = point.rate * GIGA if point else None
        """bit/s, as the next one."""
        self.highest = highest_in_words(best, words) if sweep else DASH
        self.highest_raw = best.rate * GIGA if best.rate is not None else None
        self.limited_by = limited(best)


def answered(found: Sequence[View]) -> list[Answered]:
    """A line for every profile, answered for the first question."""
    return [Answered(view, view.record.profile) for view in found if view.record.profile is not None]


def limited(best: HighestRate) -> str:
    """Metric that limits the rates within bounds."""
    if best.limited_by is None:
        return DASH
    return best.limited_by.value if best.known else f"{best.limited_by.value} is unknown above"


def payload(found: Sequence[View]) -> Mapping[str, object]:
    """Data of all profiles for `script/profiles.js`, by anchor."""
    return {
        view.anchor: {**plain(view.record.profile), "bits": l2_bps(1, view.record.sweep.spec.frame)}
        for view in found
        if view.record.profile is not None and view.record.sweep is not None
    }


def plain(profile: Profile) -> Mapping[str, object]:
    """A profile as the script has it."""
    metrics = {
        row.metric.value: [_fit(fit) for fit in regions_of(profile, row)]
        for row in profile.metrics
        if row.metric is not ProfileMetric.THROUGHPUT
    }
    first, last = measured_rates(profile) or (None, None)
    return {
        # By side, as `value_at` has it: as they are, lower ends, upper ends.
        "breaks": [edges(profile, side) for side in (0, 1, -1)],
        "first": first,
        "last": last,
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
        "covariance": fit.covariance,
        "times": student(fit),
        "rival": _fit(fit.rival),
        "weight": fit.rival_weight,
    }
