"""The verdict of each testbed and service type, for the overview."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import THROUGHPUTS
from csit_utils.report.links import cell_href
from csit_utils.report.units import DASH, percent, rate
from csit_utils.studies.density.analysis.density import CellState, MatrixCell
from csit_utils.studies.density.analysis.summary import BEST_FIRST, Headline, headlines
from csit_utils.studies.density.blocks import Block, MetricView, SystemView
from csit_utils.studies.density.density_tables import QuestionView
from csit_utils.studies.density.figures.heatmap import HeatMap

_MAX_MAPS = 12
"""Of a block on the overview."""
_WORDS = (("PASS", "passed"), ("FAIL", "failed"), ("SKIP", "skipped"))


@dataclass(frozen=True)
class FigureView:
    """One figure of a line."""

    text: str
    raw: float | None
    href: str | None
    oversubscribed: bool


@dataclass(frozen=True)
class HeadlineView:
    """One line: a service type with its sizes on one testbed."""

    service: str
    sizes: str
    frame: str
    alone: str
    alone_figures: tuple[FigureView, ...]
    """One per metric of the table."""
    most: str
    most_figures: tuple[FigureView, ...]
    kept: str
    kept_raw: float | None
    limits: str
    cells: str


@dataclass(frozen=True)
class GlanceView:
    """Small heat maps of the most informative metric of a block."""

    heading: str
    metric: MetricView
    maps: tuple[HeatMap, ...]
    more: int
    """Maps that are on the page of the matrix only."""


@dataclass(frozen=True)
class TestbedView:
    """One testbed."""

    name: str
    simulated: bool
    published: bool
    href: str
    counts: str
    oversubscribed: int
    metrics: tuple[Measure, ...]
    glances: tuple[GlanceView, ...]
    lines: tuple[HeadlineView, ...]
    questions: tuple[tuple[str, QuestionView], ...]
    """Each with the name of its block; empty where there is one block only."""


def testbed_views(systems: Sequence[SystemView]) -> list[TestbedView]:
    """A view per system, in their order."""
    return [_testbed(view) for view in systems]


def _testbed(view: SystemView) -> TestbedView:
    statuses = Counter(str(row.status) for row in view.rows)
    counts = ", ".join(f"{statuses[name]} {word}" for name, word in _WORDS if statuses[name])
    found = {matrix.metric for block in view.blocks for matrix in block.matrices}
    metrics = tuple(metric for metric in THROUGHPUTS if metric in found)
    several = len(view.blocks) > 1
    return TestbedView(
        view.system.name,
        view.system.simulated,
        view.published,
        f"#{view.anchor}",
        f"{view.tests} tests: {counts}",
        view.oversubscribed,
        metrics,
        tuple(_glance(block) for block in view.blocks if block.metrics),
        tuple(_line(each, metrics) for block in view.blocks for each in headlines(block.matrices)),
        tuple((block.name if several else "", each) for block in view.blocks for each in block.tables.questions),
    )


def _glance(block: Block) -> GlanceView:
    metric = min(block.metrics, key=lambda each: BEST_FIRST.index(Measure(each.metric)))
    heading = f"{metric.metric}, {metric.definition}, {block.name}"
    return GlanceView(heading, metric, metric.maps[:_MAX_MAPS], len(metric.maps[_MAX_MAPS:]))


def _line(headline: Headline, metrics: Sequence[Measure]) -> HeadlineView:
    series = headline.series
    kept = headline.kept if headline.most != headline.alone else None
    return HeadlineView(
        series.service_type,
        f"{series.nf_name}, {series.vswitch_name}",
        series.frame,
        _name(headline.alone),
        tuple(_figure(headline, metric, headline.alone) for metric in metrics),
        _name(headline.most),
        tuple(_figure(headline, metric, headline.most) for metric in metrics),
        percent(kept),
        kept,
        _limits(headline),
        ", ".join(f"{count} {_STATES.get(state, state)}" for state, count in headline.states),
    )


_STATES = {
    CellState.VALUE: "measured",
    CellState.AT_LEAST: "limited by the generator",
    CellState.BELOW: "below range",
    CellState.DOES_NOT_FIT: "do not fit",
}


def _name(place: tuple[int, int] | None) -> str:
    return f"{place[0]}x{place[1]}" if place else DASH


def _figure(headline: Headline, metric: Measure, place: tuple[int, int] | None) -> FigureView:
    cell = headline.cell(metric, place)
    if cell is None or place is None or cell.value_pps is None:
        return FigureView(DASH, None, None, oversubscribed=False)
    href = cell_href(headline.series, metric, place)
    return FigureView(_text(cell), cell.value_pps, href, cell.oversubscribed)


def _text(cell: MatrixCell) -> str:
    sign = {CellState.AT_LEAST: "≥ ", CellState.BELOW: "< "}.get(cell.state, "" if cell.complete else "≈ ")
    return sign + rate(cell.value_pps)


def _limits(headline: Headline) -> str:
    with_figures = sum(count for state, count in headline.states if state in (CellState.VALUE, CellState.AT_LEAST))
    return ", ".join(f"{kind} {count} of {with_figures}" for kind, count in headline.limits) or DASH
