"""What each service type carries on each testbed, in a sentence, with small heat maps; for the overview."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from csit_utils.analysis.cells import CellMetric
from csit_utils.analysis.trends.trend import Trend
from csit_utils.dataset.measures import Measure
from csit_utils.report.links import cell_href
from csit_utils.report.units import percent
from csit_utils.studies.density.analysis.density import CellState, MatrixCell
from csit_utils.studies.density.analysis.summary import BEST_FIRST, HAVE_FIGURES, Headline, headlines
from csit_utils.studies.density.blocks import Block, HeatMap, MetricView, SystemView
from csit_utils.studies.density.sentences import figure_text
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.quantities import counted

_MAX_MAPS = 12
"""Of a block on the overview."""
_LIMITS = {"vswitch-bound": "the vSwitch", "nf-bound": "the NFs", "generator-bound": "the generator"}
_STATES = {
    CellState.VALUE: "measured",
    CellState.AT_LEAST: "limited by the generator",
    CellState.BELOW: "below range",
    CellState.DOES_NOT_FIT: "do not fit",
}


@dataclass(frozen=True)
class Carried:
    """What a service type carries in its densest cell, as parts of a sentence."""

    service: str
    verb: str
    rate: str
    """Empty if no cell has a figure."""
    href: str
    rest: str
    oversubscribed: bool

    @property
    def text(self) -> str:
        """The sentence."""
        return " ".join(part for part in (self.service, self.verb, self.rate, self.rest) if part)


@dataclass(frozen=True)
class GlanceView:
    """Small heat maps of the most informative metric of a block."""

    heading: str
    metric: MetricView
    maps: Sequence[HeatMap]
    more: int
    """Maps that are on the page of the matrix only."""


@dataclass(frozen=True)
class BlockView:
    """All that may be compared on a testbed, in sentences and heat maps."""

    name: str
    """Frame size and profile; empty where the testbed has one block."""
    carried: tuple[Carried, ...]
    glance: GlanceView | None


@dataclass(frozen=True)
class TestbedView:
    """One testbed."""

    __test__ = False  # not a pytest class

    name: str
    simulated: bool
    published: bool
    href: str
    oversubscribed: int
    blocks: tuple[BlockView, ...]


Trends = Mapping[CellMetric, Trend]


def testbed_views(systems: Sequence[SystemView], trends: Trends) -> list[TestbedView]:
    """A view per system, in their order.

    `trends`: of cells with earlier runs, for the change against the run before.
    """
    return [
        TestbedView(
            view.system.title,
            view.system.simulated,
            view.published,
            f"#{view.anchor}",
            view.oversubscribed,
            tuple(
                BlockView(
                    block.name if len(view.blocks) > 1 else "",
                    tuple(_carried(block, trends, named=len(view.blocks) > 1)),
                    _glance(block) if block.metrics else None,
                )
                for block in view.blocks
            ),
        )
        for view in systems
    ]


def _glance(block: Block) -> GlanceView:
    metric = min(block.metrics, key=lambda each: BEST_FIRST.index(Measure(each.metric)))
    heading = f"{metric.metric}, {metric.definition}, {block.frame}"
    if block.profile:
        heading += f", search profile {block.profile}"
    return GlanceView(heading, metric, metric.maps[:_MAX_MAPS], len(metric.maps[_MAX_MAPS:]))


def _carried(block: Block, trends: Trends, *, named: bool) -> Iterator[Carried]:
    """Yield a sentence per service type, of all sizes: on its cell with the most NFs that has a figure.

    `named`: a heading states the frame.
    """
    by_type: dict[str, list[Headline]] = {}
    for each in headlines(block.matrices):
        by_type.setdefault(each.series.service_type, []).append(each)
    for service, own in sorted(by_type.items()):
        dense = max(own, key=_density)
        cell = dense.cell(dense.metric, dense.most)
        if dense.most is None or cell is None:
            yield Carried(service, "has no figure:", "", "", f"{_states(own)}.", oversubscribed=False)
            continue
        services, nfs = dense.most
        change = _change(trends.get(CellMetric(dense.series, Dimensions(services, nfs), dense.metric)), cell)
        nodes, instances = (counted(services * nfs, "NF"), counted(services, "instance"))
        frame = "" if named else f", {dense.series.frame}"
        sizes = f" ({dense.series.sizes})" if dense.series.sizes else ""
        rest = f"({dense.metric}{frame}{change}) with {nodes} in {instances}{sizes}{_limited(own)}."
        href = cell_href(dense.series, dense.metric, dense.most)
        yield Carried(service, "carries", figure_text(cell), href, rest, cell.oversubscribed)


def _density(headline: Headline) -> tuple[int, int, float]:
    services, nfs = headline.most or (0, 0)
    cell = headline.cell(headline.metric, headline.most)
    return services * nfs, services, (cell.value_pps if cell else None) or 0.0


def _states(own: Sequence[Headline]) -> str:
    found = sum((Counter(dict(each.states)) for each in own), Counter[CellState]())
    return ", ".join(f"{number} {_STATES.get(state, state)}" for state, number in found.items())


def _limited(own: Sequence[Headline]) -> str:
    found = sum((Counter(dict(each.limits)) for each in own), Counter[str]())
    cells = sum(number for each in own for state, number in each.states if state in HAVE_FIGURES)
    limits = " and ".join(f"by {_LIMITS[kind]} in {number}" for kind, number in found.most_common())
    return f"; limited {limits} of {counted(cells, 'cell')}" if limits else ""


def _change(trend: Trend | None, cell: MatrixCell) -> str:
    """The change against the run before, where the cell's figure is the newest of its trend."""
    *_, before, now = (None, None, *trend.figures) if trend else (None, None)
    if before is None or now is None or now.value_pps != cell.value_pps or now.row.run == before.row.run:
        return ""
    return f", {percent(now.value_pps / before.value_pps - 1, signed=True)} from the run before"
