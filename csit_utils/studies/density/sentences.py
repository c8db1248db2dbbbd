"""How throughput changes with density, in plain words."""

from collections.abc import Iterable, Mapping, Sequence

from csit_utils.analysis.grouping import Series, series_of
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import MRR, NDR, TestRow
from csit_utils.report.units import percent, rate
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell, matrices, verdict_of_runs
from csit_utils.studies.density.analysis.summary import AxisChange
from resources.libraries.python.quantities import counted

FAR_BELOW = 0.5
"""Share of MRR that NDR is below of where losses are rare at any load. Where a load that is too high is what loses
packets, the two differ by the precision of the search and by what overload costs."""
_MAX_CELLS = 6
"""Cells that a sentence lists."""


def sentences(changes: Iterable[AxisChange], called: Mapping[Series, str]) -> tuple[str, ...]:
    """One sentence per series and axis; metrics that were found in the same two cells share it."""

    def key(change: AxisChange) -> tuple[str, str, tuple[int, int], tuple[int, int]]:
        return called[change.matrix.series], change.axis, change.start, change.end

    groups: dict[tuple[str, str, tuple[int, int], tuple[int, int]], list[AxisChange]] = {}
    for change in changes:
        groups.setdefault(key(change), []).append(change)
    # Instances before NFs: the first question of a density test. Metrics keep their order.
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] != "instances"))
    return tuple(_sentence(name, found) for (name, *_), found in ordered)


def _sentence(name: str, found: Sequence[AxisChange]) -> str:
    change = found[0]
    (from_s, from_n), (to_s, to_n) = change.start, change.end
    added = f"{from_s} to {to_s} instances" if change.axis == "instances" else f"{from_n} to {to_n} NFs per instance"
    parts: list[str] = []
    for one in found:
        verb = " goes" if not parts else ""
        if one.resolved:
            share = f" ({percent(one.ratio, signed=True)})" if one.ratio is not None else ""
            start, end = (figure_text(one.matrix.cells[at]) for at in (one.start, one.end))
            moved = f"{verb} from {start} to {end}{share}"
        else:
            what = "noise of its trials" if one.matrix.metric.stdev else "resolution of the search"
            moved = f" stays at {rate(one.start_pps)}, within the {what}"
        parts.append(f"{one.matrix.metric}{moved}")
    text = f"{name}, {added}: from {from_s}x{from_n} to {to_s}x{to_n} {', '.join(parts)}."
    figures = {
        place: dict.fromkeys(
            kind for one in found for kind in verdict_of_runs(one.matrix.cells[place].runs, one.matrix.metric)
        )
        for place in (change.start, change.end)
    }
    text += " Verdict: " + "; ".join(f"{s}x{n} {', '.join(kinds)}" for (s, n), kinds in figures.items()) + "."
    marked = [at for at in (change.start, change.end) if change.matrix.cells[at].oversubscribed]
    if marked:
        text += f" Oversubscribed: {', '.join(f'{s}x{n}' for s, n in marked)}."
    return text


def figure_text(cell: MatrixCell) -> str:
    """The figure of a cell: `at least 29.8 Mpps`."""
    sign = {CellState.AT_LEAST: "at least ", CellState.BELOW: "below "}.get(
        cell.state, "" if cell.complete else "about "
    )
    return sign + rate(cell.value_pps)


def far_below(rows: Iterable[TestRow]) -> tuple[str, ...]:
    """Return the sentences of `rare_losses` on tests of any systems and frames."""
    by_series: dict[Series, list[TestRow]] = {}
    for row in rows:
        if (series := series_of(row)) is not None:
            by_series.setdefault(series, []).append(row)
    several = len({series.system for series in by_series}) > 1
    called = {
        series: f"{f'{series.system.name}, ' if several else ''}{series.name}, {series.frame}"
        for series in sorted(by_series)
    }
    return rare_losses([matrix for series in called for matrix in matrices(by_series[series], series)], called)


def rare_losses(found: Iterable[Matrix], called: Mapping[Series, str]) -> tuple[str, ...]:
    """One sentence per series of which cells have an NDR that is far below what the same cells forward at fixed loads.

    `called`: names of their series.
    """
    by_series: dict[Series, dict[Measure, Matrix]] = {}
    for matrix in found:
        by_series.setdefault(matrix.series, {})[matrix.metric] = matrix
    return tuple(
        text
        for series, own in by_series.items()
        if NDR in own and MRR in own and (text := _rare_losses(called[series], own[NDR], own[MRR]))
    )


def _rare_losses(name: str, ndr: Matrix, mrr: Matrix) -> str:
    both = {
        place: (cell, mrr.cells[place])
        for place, cell in sorted(ndr.cells.items())
        if cell.value_pps is not None and mrr.cells[place].value_pps is not None
    }
    low = {
        place: f"{place[0]}x{place[1]} {figure_text(cell)} of {figure_text(fixed)}"
        for place, (cell, fixed) in both.items()
        if cell.state is not CellState.AT_LEAST and _highest(cell) < FAR_BELOW * _lowest(fixed)
    }
    if not low:
        return ""
    listed = [*low.values()][:_MAX_CELLS]
    more = f" and {len(low) - len(listed)} more" if len(low) > len(listed) else ""
    cells = f"{len(low)} of {counted(len(both), 'cell')}"
    return f"{name}: NDR far below MRR in {cells}, rare loss at any load: {', '.join(listed)}{more}."


def _highest(cell: MatrixCell) -> float:
    return max(cell.upper_pps or 0.0, cell.value_pps or 0.0)


def _lowest(cell: MatrixCell) -> float:
    return (cell.value_pps or 0.0) - 2 * cell.noise_pps
