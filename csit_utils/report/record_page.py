"""Pages that show all records of a kind by declared blocks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from csit_utils.dataset.papers import PublishedFigure
from csit_utils.report.cell_maps import CellMaps
from csit_utils.report.figures import Figure
from csit_utils.report.published_figures import sections
from csit_utils.report.record_blocks import Block, RecordTables, tables_by_name
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page, View
from csit_utils.studies.registry import kind_of

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
