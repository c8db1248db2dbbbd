"""Published figures beside the user's own: a table and bars."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from csit_utils.dataset.papers import Paper, PublishedFigure
from csit_utils.report.figures import Figure
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row
from csit_utils.report.study import View
from csit_utils.report.units import digits3, percent


@dataclass(frozen=True)
class OwnFigure:
    """A figure of the report's own records."""

    view: View
    value: float
    unit: str

    @property
    def text(self) -> str:
        """The figure with its unit."""
        return f"{digits3(self.value)} {self.unit}".strip()


@dataclass(frozen=True)
class PublishedRow:
    """A published figure, and comparable own figures."""

    figure: PublishedFigure
    own: tuple[OwnFigure, ...]

    @property
    def text(self) -> str:
        """The published figure with its unit."""
        return f"{digits3(self.figure.value)} {self.figure.unit}".strip()

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
        rows = tuple(PublishedRow(figure, tuple(_own(figure, found, value))) for figure in paper.of(kind))
        if rows:
            bars = _bars(paper, kind, rows)
            made.append(PublishedSection(paper, rows, (*([] if bars is None else [bars]), *figures(paper))))
    return made


def _own(
    figure: PublishedFigure,
    found: Sequence[View],
    value_of: Callable[[Any, PublishedFigure], float | None],
) -> Iterator[OwnFigure]:
    if figure.match:
        for view in found:
            if (value := value_of(view.record, figure)) is not None:
                yield OwnFigure(view, value, figure.unit)


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
