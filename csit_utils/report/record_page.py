"""Pages that show all records of a kind by declared blocks, with published figures beside the user's own."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from csit_utils.dataset.reference import Paper, PublishedFigure
from csit_utils.report.cell_maps import CellMaps
from csit_utils.report.figures import Figure
from csit_utils.report.record_blocks import Block, Column, Plot, RecordTables, Row, tables_by_name
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page, View
from csit_utils.report.units import digits3, percent
from csit_utils.studies.registry import kind_of


@dataclass(frozen=True)
class OwnFigure:
    """A figure of the report's own records."""

    view: View
    value: float
    text: str
    """With its unit."""


@dataclass(frozen=True)
class PublishedRow:
    """A published figure, and comparable own figures."""

    figure: PublishedFigure
    own: tuple[OwnFigure, ...]

    @property
    def text(self) -> str:
        """The published figure with its unit."""
        return _with_unit(self.figure.value, self.figure)

    def change(self, own: OwnFigure) -> str:
        """Return an own figure relative to the published one."""
        return percent(own.value / self.figure.value - 1, signed=True)


@dataclass(frozen=True)
class PublishedSection:
    """The figures of a paper on a page."""

    paper: Paper
    rows: tuple[PublishedRow, ...]
    figures: tuple[Figure, ...]


def sections(
    papers: Sequence[Paper],
    kind: str,
    found: Sequence[View],
    value: Callable[[Any, PublishedFigure], float | None],
    figures: Callable[[Paper], Sequence[Figure]] = lambda _: (),
) -> list[PublishedSection]:
    """Return every paper that has figures for a page, with the page's own figures beside them.

    `papers`: all papers.
    `value`: returns a record's own figure; None if it has no comparable one.
    """
    made = []
    for paper in papers:
        rows = tuple(
            PublishedRow(
                figure,
                tuple(
                    OwnFigure(view, own, _with_unit(own, figure))
                    for view in (found if figure.match else ())
                    if (own := value(view.record, figure)) is not None
                ),
            )
            for figure in paper.of(kind)
        )
        if rows:
            bars = _bars(paper, kind, rows)
            made.append(PublishedSection(paper, rows, (*([] if bars is None else [bars]), *figures(paper))))
    return made


def _with_unit(value: float, of: PublishedFigure) -> str:
    return f"{digits3(value)} {of.unit}".strip()


def _bars(paper: Paper, kind: str, rows: Sequence[PublishedRow]) -> Figure | None:
    """Published and own figures side by side; None without comparable ones."""
    own = [(row, each) for row in rows for each in row.own]
    if not own:
        return None
    views = {each.view.anchor: each.view for _, each in own}
    names = {anchor: called(view, list(views.values())) for anchor, view in views.items()}
    shown: list[Row] = [_row(f"published, {paper.title}", row, row.figure.value, row.text) for row in rows]
    for anchor in views:
        shown += [_row(names[anchor], row, each.value, each.text) for row, each in own if each.view.anchor == anchor]
    first = rows[0].figure
    plot = Plot(
        f"{paper.name}-{kind}",
        f"{first.quantity.capitalize()}: published by {paper.title} and measured here",
        kind,
        Column("where", text=True),
        Column("value", f"{first.quantity}, {first.unit}" if first.unit else first.quantity),
        colour="line",
        mark="bars",
        hover=("text",),
        layout={"meta": {"width": 90 + 90 * len(rows)}},
    )
    simulated = any(view.simulated for view in views.values())
    return plot.draw(RecordTables("published", simulated, None, {kind: shown}))


def _row(line: str, row: PublishedRow, value: float, text: str) -> Row:
    where = ", ".join(filter(None, (row.figure.subject, row.figure.condition)))
    where = where.replace(", ", "\n").replace(" beside ", "\nbeside ")
    return {"line": line, "where": where, "value": value, "text": text}


def called(view: View, among: Sequence[View]) -> str:
    """Return the name in a legend; the test's name if titles are equal."""
    same = sum(other.title == view.title for other in among) > 1
    name = view.record.test_name if same else view.title
    return f"{name} on {view.record.testbed}{', simulated' * view.simulated}"


Blocks = Sequence[Block] | Callable[[Any], Iterable[Block]]
"""Blocks of every record, or a function that declares them for its content, such as its units."""
Groups = Sequence[tuple[str, Sequence[Any]]]
"""Kind of blocks that follow each other, and these as drawn."""


@dataclass(frozen=True)
class Overview:
    """What a page shows of all its records before each of them."""

    title: str
    explain: tuple[str, str]
    blocks: Callable[[Sequence[View]], Iterable[tuple[RecordTables, Block]]]


@dataclass(frozen=True)
class DrawnRecord:
    """A record on its page."""

    view: View
    groups: Groups

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All that the page's script needs."""
        return tuple(_figures(self.groups))


def _figures(groups: Groups) -> Iterable[Figure]:
    for _, group in groups:
        for each in group:
            if isinstance(each, CellMaps):
                yield each.figure
            elif isinstance(each, Figure):
                yield each


def _grouped(blocks: Iterable[tuple[RecordTables, Block]]) -> Groups:
    """Draw blocks that have something to show."""
    made = [(block.kind, shown) for tables, block in blocks if (shown := block.draw(tables)) is not None]
    return [(kind, [shown for _, shown in group]) for kind, group in groupby(made, key=itemgetter(0))]


def drawn(view: View, blocks: Blocks, records: int = 1) -> DrawnRecord:
    """Draw a record, one of several on its page."""
    kind = kind_of(view.item)
    content = kind.content(view.record)
    if content is None:
        return DrawnRecord(view, ())
    tables = RecordTables(
        view.anchor, view.simulated, content, tables_by_name(kind.tables(view.record)), records=records
    )
    declared = blocks(content) if callable(blocks) else blocks
    return DrawnRecord(view, _grouped((tables, block) for block in declared))


def record_page(
    page: str,
    title: str,
    kind: str,
    blocks: Blocks,
    *,
    overview: Overview | None = None,
    published: Callable[[Any, PublishedFigure], float | None] | None = None,
) -> Page[ReportContents]:
    """Return the page of all records of a kind, shown where there are any.

    `blocks`: what it shows of each record, in order.
    `overview`: of all records; a list of links otherwise.
    `published`: returns a record's own figure beside a published one; None without published ones.
    """

    def build(shown: ReportContents) -> Mapping[str, object] | None:
        found = [view for view in shown.characterizations if view.record.kind == kind]
        if not found:
            return None
        papers = sections(shown.papers, kind, found, published) if published is not None else ()
        records = [drawn(view, blocks, len(found)) for view in found]
        groups = () if overview is None else _grouped(overview.blocks(found))
        return {
            "page": page,
            "overview": overview,
            "overview_groups": groups,
            "records": records,
            "papers": papers,
            "figures": [*_figures(groups), *(figure for each in (*records, *papers) for figure in each.figures)],
        }

    return Page(page, title, build, "records")
