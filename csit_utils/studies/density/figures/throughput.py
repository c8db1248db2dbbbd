"""Throughput over the density matrix: curves by its size, and bars of cells side by side."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby

from csit_utils.analysis.grouping import Series
from csit_utils.analysis.verdicts import verdict_of_runs
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import THROUGHPUTS
from csit_utils.report.figures import DASHES, SYMBOLS, Figure, Json, axes, axis, bars, matrix_axis, scatter
from csit_utils.report.units import common_unit, rate
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell

_FACETS = ("service type", "NF size", "vSwitch")
_AXES = ("by service instances", "by NFs per instance", "by all NFs")
_TOTAL, _PER_CORE = "throughput", "per data core"


def facets(series: Series) -> dict[str, str]:
    """Return the properties by which a reader filters maps, lines or bars."""
    return {
        "service type": series.service_type,
        "NF size": series.nf_size or "unknown",
        "vSwitch": f"{series.vs_dtc}c" if series.vs_dtc is not None else "unknown",
    }


def density_figure(identity: str, title: str, found: Sequence[Matrix], called: Mapping[Series, str]) -> Figure | None:
    """Return throughput against density, a line per service length or per number of services."""
    if not found:
        return None
    variants: Json = {}
    colours = list(called)
    by_metric = _by_metric(found)
    for metric, chosen in by_metric.items():
        factor, unit = common_unit([value for matrix in chosen for value in matrix.values()])
        for across in _AXES:
            layout = axes(across.removeprefix("by "), f"{metric}, {unit}")
            layout["xaxis"]["dtick"] = 1
            lines = [
                line
                for matrix in chosen
                for line in _lines(matrix, called[matrix.series], colours.index(matrix.series), across, factor)
            ]
            variants[f"{metric}|{across}"] = {"data": lines, "layout": layout}
    return Figure(identity, title, found[0].series.system.simulated, (tuple(by_metric), _AXES), variants, _FACETS)


def _lines(matrix: Matrix, name: str, colour: int, across: str, factor: float) -> Iterator[Json]:
    """One line per value of the other axis."""
    along = 1 if across == _AXES[1] else 0
    valued = [
        (place, cell)
        for place, cell in matrix.cells.items()
        if cell.value_pps is not None and cell.state is not CellState.BELOW
    ]
    valued.sort(key=lambda pair: (pair[0][1 - along], pair[0][along]))
    for index, (fixed, group) in enumerate(groupby(valued, key=lambda pair: pair[0][1 - along])):
        points = list(group)
        label = f"{name}, {fixed} NF{'s' if fixed > 1 else ''} each"
        if along:
            label = f"{name}, {fixed} instance{'s' if fixed > 1 else ''}"
        symbol = SYMBOLS[index % len(SYMBOLS)]
        upper = [((cell.upper_pps or cell.value_pps or 0) - (cell.value_pps or 0)) / factor for _, cell in points]
        yield scatter(
            label,
            [
                (place[0] * place[1] if across == _AXES[2] else place[along], (cell.value_pps or 0) / factor)
                for place, cell in points
            ],
            colour,
            texts=[_point_words(matrix, name, place, cell) for place, cell in points],
            facets=facets(matrix.series),
            error_y={"type": "data", "symmetric": False, "array": upper, "arrayminus": [0] * len(points)}
            | {"thickness": 1, "width": 3},
            marker={"size": 9, "symbol": [symbol + "-open" * bool(cell.oversubscribed) for _, cell in points]},
            line={"dash": DASHES[index % 4], "width": 2},
        )


def _point_words(matrix: Matrix, name: str, place: tuple[int, int], cell: MatrixCell) -> str:
    mark = "<br>OVERSUBSCRIBED" if cell.oversubscribed else ""
    upper = f" … {rate(cell.upper_pps)}" if cell.upper_pps not in (None, cell.value_pps) else ""
    text = f"{name} {place[0]}x{place[1]}: {matrix.metric} {rate(cell.value_pps)}{upper}"
    return escape(f"{text} [{', '.join(verdict_of_runs(cell.runs, matrix.metric))}]") + mark


def bars_figure(identity: str, title: str, found: Sequence[Matrix], called: Mapping[Series, str]) -> Figure | None:
    """A bar per cell and series; None without any cell that has a figure.

    Args:
        identity: Of the figure.
        title: Of the figure.
        found: Matrices that may be compared.
        called: Names and order of their series.
    """
    if not found:
        return None
    by_metric = _by_metric(found)
    variants = {
        f"{metric}|{kind}": _variant(chosen, called, kind)
        for metric, chosen in by_metric.items()
        for kind in (_TOTAL, _PER_CORE)
    }
    simulated = found[0].series.system.simulated
    return Figure(identity, title, simulated, (tuple(by_metric), (_TOTAL, _PER_CORE)), variants, _FACETS)


def _by_metric(found: Sequence[Matrix]) -> dict[Measure, list[Matrix]]:
    """Matrices by metric, in the order in which a reader chooses among metrics."""
    by_metric = {metric: [matrix for matrix in found if matrix.metric == metric] for metric in THROUGHPUTS}
    return {metric: chosen for metric, chosen in by_metric.items() if chosen}


def _variant(chosen: Sequence[Matrix], called: Mapping[Series, str], kind: str) -> Json:
    heights = {(matrix.series, place): _height(cell, kind) for matrix in chosen for place, cell in matrix.cells.items()}
    factor, unit = common_unit([height for height in heights.values() if height is not None])
    places = sorted({place for (_, place), height in heights.items() if height is not None})
    what = "per data core, " if kind == _PER_CORE else ""
    return {
        "data": [_bars(matrix, called, kind, factor) for matrix in chosen],
        "layout": {
            "barmode": "group",
            "bargap": max(0.2, 0.8 - 0.06 * sum(height is not None for height in heights.values())),  # one is no wall
            "xaxis": matrix_axis(f"{services}x{nfs}" for services, nfs in places),
            "yaxis": axis(f"{chosen[0].metric} {what}{unit}"),
        },
    }


def _bars(matrix: Matrix, called: Mapping[Series, str], kind: str, factor: float) -> Json:
    name = called[matrix.series]
    shown = [
        (f"{place[0]}x{place[1]}", height / factor, _bar_words(matrix, name, place, cell), cell.oversubscribed)
        for place, cell in sorted(matrix.cells.items())
        if (height := _height(cell, kind)) is not None
    ]
    pattern = {"shape": ["/" if bar[3] else "" for bar in shown], "size": 5, "solidity": 0.35}
    return bars(
        name,
        [bar[:2] for bar in shown],
        list(called).index(matrix.series),
        texts=[bar[2] for bar in shown],
        facets=facets(matrix.series),
        marker={"pattern": pattern},
    )


def _height(cell: MatrixCell, kind: str) -> float | None:
    if cell.value_pps is None or cell.state is CellState.BELOW:
        return None
    if kind == _TOTAL:
        return cell.value_pps
    cores = cell.runs[-1].data_cores if cell.runs else None
    return cell.value_pps / cores if cores else None


def _bar_words(matrix: Matrix, name: str, place: tuple[int, int], cell: MatrixCell) -> str:
    run = cell.runs[-1]
    text = f"{name} {place[0]}x{place[1]}: {rate(cell.value_pps)}"
    if run.data_cores and run.vswitch_data_cores is not None and run.nf_data_cores is not None:
        text += (
            f" / {run.data_cores:g} cores ({run.vswitch_data_cores:g} vSwitch + {run.nf_data_cores:g} NF)"
            f" = {rate((cell.value_pps or 0.0) / run.data_cores)} per core"
        )
    mark = "<br>OVERSUBSCRIBED: fewer cores than requested" if cell.oversubscribed else ""
    return escape(f"{text} [{', '.join(verdict_of_runs(cell.runs, matrix.metric))}]") + mark
