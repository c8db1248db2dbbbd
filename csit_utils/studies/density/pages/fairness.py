"""Whether all service instances get the same: Jain's index over the matrix, and the shares of instances in overload."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from csit_utils.analysis.grouping import Series, System, series_names
from csit_utils.dataset.rows import InstanceRow, TestRow
from csit_utils.report.cell_maps import CellMaps, MapSquare, Scale
from csit_utils.report.figures import OUTLINED, Figure
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row, Table
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page
from csit_utils.report.units import percent, rate
from csit_utils.studies.density.analysis.density import Place, SeriesLayout
from csit_utils.studies.density.latency_maps import CELL_COLUMNS, MatrixBlock, blocks_of_type, cell_columns, matrix_map


@dataclass(frozen=True)
class Fairness:
    """Fairness among the instances of a test at one load. Rates are sums of both directions."""

    number: str
    """NDR, PDR, SOAK, MRR, ORR, or overload."""
    load_pps: float
    index: float | None
    """Jain's index; None for a single instance."""
    rates_pps: tuple[tuple[int, float], ...]
    """Instances with their forwarded rates."""
    worst_loss_ratio: float
    """The highest loss ratio of an instance and direction."""

    @property
    def lowest(self) -> tuple[int, float]:
        """The first instance with the lowest rate, and its rate."""
        return min(self.rates_pps, key=lambda each: each[1])

    @property
    def highest(self) -> tuple[int, float]:
        """The first instance with the highest rate, and its rate."""
        return max(self.rates_pps, key=lambda each: each[1])

    @property
    def ratio(self) -> float | None:
        """Lowest over highest rate; None if nothing is forwarded."""
        return self.lowest[1] / self.highest[1] if self.highest[1] > 0 else None


def fairness_of(rows: Iterable[InstanceRow]) -> dict[str, Fairness]:
    """By number, for the rows of one test."""
    numbers: dict[str, list[InstanceRow]] = {}
    for row in rows:
        numbers.setdefault(row.number, []).append(row)
    return {number: _fairness(number, own) for number, own in numbers.items()}


def _fairness(number: str, rows: Sequence[InstanceRow]) -> Fairness:
    rates: dict[int, float] = {}
    for row in rows:
        rates[row.instance] = rates.get(row.instance, 0.0) + row.forwarded_pps
    worst = max(row.loss_ratio for row in rows)
    return Fairness(number, rows[0].load_pps, rows[0].fairness, tuple(sorted(rates.items())), worst)


_LISTED = 100
_GROUPS = (
    ("Fairness at the bounds of the search and beyond", "NDRPDR", "Shares of instances in overload"),
    ("Fairness in trials of MRR", "MRR", "Shares of instances in trials of MRR"),
)
NO_COUNTS = "no test of this cell has counts per instance"
FAIR = 0.999
"""Jain's index from which a series of cells takes a sentence instead of a map."""
OVERLOAD = ("overload", "MRR", "ORR")
"""Numbers that are measured beyond what the system can take."""
_EQUAL = 0.9
_ORDER = ("overload", "MRR", "ORR", "PDR", "NDR", "SOAK")

Found = Mapping[str, Mapping[str, Fairness]]
"""By anchor of the test and number."""


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    found = {anchor: fairness_of(rows) for anchor, rows in shown.evidence.instances.items()}
    blocks: dict[tuple[System, str], MatrixBlock] = {}
    lines: dict[tuple[str, str], tuple[TestRow, str, str, Fairness]] = {}
    fair: list[tuple[bool, str]] = []
    for group, (title, test_type, shares) in enumerate(_GROUPS):
        for number, heading, own in blocks_of_type(shown, found, NO_COUNTS, test_type):
            system = own[0].series.system
            called = series_names([layout.series for layout in own])
            lines |= {
                (row.anchor, each.number): (row, cell, sizes, each)
                for layout in own
                for row, cell, sizes in layout.named()
                for each in found[row.anchor].values()
                if each.index is not None
            }
            least = {layout.series: _least(layout, found) for layout in own}
            equal = [layout for layout in own if FAIR <= least[layout.series] < inf]
            if equal:
                cells = sum(bool(_indices(found[test.anchor])) for layout in equal for _, test in layout.found())
                of = ", ".join(called[layout.series] for layout in equal)
                fair.append((system.simulated, f"{title}, {heading}: all {cells} cells of {of}"))
            uneven = [layout for layout in own if least[layout.series] < FAIR]
            if not uneven:
                continue
            maps = fairness_maps(f"fairness-{number}-{group}", title, uneven, called, found)
            figure = shares_figure(f"shares-{number}-{group}", f"{shares}, {heading}", uneven, called, found)
            old = blocks.get((system, heading), MatrixBlock(system, heading, (), ()))
            plots = (*old.plots, figure) if figure else old.plots
            blocks[system, heading] = MatrixBlock(system, heading, (*old.maps, maps), plots)
    if not lines:
        return None
    worst = sorted(lines.values(), key=lambda line: line[-1].index or 0.0)
    return {
        "blocks": list(blocks.values()),
        "fair": fair,
        "mixed": shown.simulated and shown.measured,
        "limit": FAIR,
        "of": len({(row.testbed, cell, sizes) for row, cell, sizes, _ in lines.values()}),
        "worst": _WORST.draw(RecordTables("all", shown.simulated, worst[:_LISTED])),
        "listed": min(_LISTED, len(worst)),
        "cells": len(worst),
        "figures": [figure for block in blocks.values() for figure in block.figures],
    }


def _rows(worst: Iterable[tuple[TestRow, str, str, Fairness]]) -> Iterator[Row]:
    for row, cell, sizes, each in worst:
        (low, low_pps), (high, high_pps) = each.lowest, each.highest
        yield {
            **cell_columns(row, cell, sizes),
            "at": f"{each.number}, {rate(each.load_pps)}",
            "jain_index": each.index,
            "least_pps": low_pps,
            "least": f"instance {low}: {rate(low_pps)}",
            "most_pps": high_pps,
            "most": f"instance {high}: {rate(high_pps)}",
            "least_over_most": each.ratio,
            "worst_loss_ratio": each.worst_loss_ratio,
        }


_WORST = Table(
    "fairness",
    _rows,
    (
        *CELL_COLUMNS,
        Column("at", text=True),
        Column("jain_index", "Jain's index", "{:.5f}".format),
        Column("least_pps", "least", words="least"),
        Column("most_pps", "most", words="most"),
        Column("least_over_most", "least / most", percent),
        Column(
            "worst_loss_ratio",
            "worst loss",
            percent,
            about="Of the instance and direction that lost most of what it was offered",
        ),
    ),
    filter=True,
    rows_are="lines",
)


def _indices(found: Mapping[str, Fairness]) -> list[float]:
    """Jain's index of each number of a test; empty for a single instance."""
    return [each.index for each in found.values() if each.index is not None]


def _least(layout: SeriesLayout, found: Found) -> float:
    """The least index of a series; infinite without one."""
    return min((index for _, test in layout.found() for index in _indices(found[test.anchor])), default=inf)


PAGE = Page("fairness", "Fairness", _build)


def fairness_maps(
    identity: str, title: str, layouts: Sequence[SeriesLayout], called: Mapping[Series, str], found: Found
) -> CellMaps:
    """Jain's index over the matrix.

    `layouts`: cells that may be compared, some of several instances, with tests that count by instance.
    """
    every = [each for layout in layouts for _, test in layout.found() for each in found[test.anchor].values()]
    numbers = [number for number in _ORDER if any(each.number == number and each.index is not None for each in every)]
    worst = min(each.index for each in every if each.index is not None)

    def square(where: str, _place: Place, row: TestRow, choice: tuple[str, ...]) -> MapSquare:
        return _square(where, found[row.anchor].get(choice[0]), choice[0])

    return CellMaps(
        identity,
        title,
        layouts[0].series.system.simulated,
        (tuple(numbers),),
        (numbers[0],),
        tuple(matrix_map(each, called[each.series], NO_COUNTS, "not counted", square) for each in layouts),
        # Never narrower than this: the last digit of nearly equal shares is no picture.
        lambda _: Scale(min(worst, _EQUAL), 1.0),
        lambda value: f"{value:.4g}",
        ("fairness", "fairness"),
    )


def _square(where: str, each: Fairness | None, number: str) -> MapSquare:
    if each is None:
        return MapSquare("not measured", f"{where}: {number} was not measured per instance", state="not-run")
    if each.index is None:
        return MapSquare("one instance", f"{where}: a single instance, so nothing to compare", state="not-run")
    (lowest, least), (highest, most) = each.lowest, each.highest
    lines = (
        f"{where} · {number} · Jain's index {each.index:.5f}",
        f"least: instance {lowest} with {rate(least)}",
        f"most: instance {highest} with {rate(most)}",
        f"least over most {percent(each.ratio)}, worst loss of one direction {percent(each.worst_loss_ratio)}",
        f"at {rate(each.load_pps)}",
    )
    return MapSquare(f"{each.index:.3f}", "\n".join(lines), each.index, percent(each.ratio))


def shares_figure(
    identity: str, title: str, layouts: Sequence[SeriesLayout], called: Mapping[Series, str], found: Found
) -> Figure | None:
    """Share of each instance in the forwarded rate in overload; None without any cell of several instances."""
    rows = [
        {"series": called[layout.series], **row}
        for layout in layouts
        for place, test in layout.found()
        for number in OVERLOAD
        if (each := found[test.anchor].get(number)) is not None and each.index is not None
        for row in _shares(f"{place[0]}x{place[1]}", each)
    ]
    plot = Plot(
        identity.removeprefix("shares-"),
        title,
        "shares",
        Column("cell", "cell: service instances x NFs per instance", text=True),
        Column("share", "share of the forwarded rate, %", scale=100, options={"range": [0, 100]}),
        colour="instance",
        choose=("series",),
        mark="stack",
        hover=("text",),
        style={"marker": OUTLINED},
        layout={"bargap": 0.25},
    )
    return plot.draw(RecordTables("shares", layouts[0].series.system.simulated, None, {"shares": rows}))


def _shares(cell: str, each: Fairness) -> Iterator[Row]:
    """Share of each instance: the first ones of all cells have one colour, the second ones another, and so on."""
    total, equal = sum(value for _, value in each.rates_pps), percent(1 / len(each.rates_pps))
    for index, (instance, got_pps) in enumerate(each.rates_pps, 1):
        share = got_pps / total if total else 0.0
        text = f"{each.number}: instance {instance} gets {rate(got_pps)}; an equal share is {equal}"
        yield {"cell": cell, "instance": f"instance {index}", "share": share, "text": text}
