"""Cells as bars, grouped by service type or by size, as on the slides of IETF 105; as throughput and per core."""

from collections.abc import Mapping, Sequence
from html import escape

from csit_utils.analysis.grouping import Metric, Series
from csit_utils.analysis.verdicts import verdict_of_runs
from csit_utils.report.figures import FACETS, Figure, Json, facets
from csit_utils.report.units import common_unit, rate
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell

_TOTAL, _PER_CORE = "throughput", "per data core"


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
    variants: Json = {}
    metrics = [metric for metric in Metric if any(matrix.metric is metric for matrix in found)]
    for metric in metrics:
        chosen = [matrix for matrix in found if matrix.metric is metric]
        for kind in (_TOTAL, _PER_CORE):
            variants[f"{metric}|{kind}"] = _variant(chosen, called, kind)
    simulated = found[0].series.system.simulated
    return Figure(identity, title, simulated, (tuple(metrics), (_TOTAL, _PER_CORE)), variants, FACETS)


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
            "xaxis": {
                "title": {"text": "cell: service instances x NFs per instance"},
                "type": "category",
                "categoryorder": "array",
                "categoryarray": [f"{services}x{nfs}" for services, nfs in places],
            },
            "yaxis": {"title": {"text": f"{chosen[0].metric} {what}{unit}"}, "rangemode": "tozero"},
        },
    }


def _bars(matrix: Matrix, called: Mapping[Series, str], kind: str, factor: float) -> Json:
    name = called[matrix.series]
    bars = [
        (f"{place[0]}x{place[1]}", height / factor, _hover(matrix, name, place, cell), cell.oversubscribed)
        for place, cell in sorted(matrix.cells.items())
        if (height := _height(cell, kind)) is not None
    ]
    pattern = {"shape": ["/" if bar[3] else "" for bar in bars], "size": 5, "solidity": 0.35}
    return {
        "type": "bar",
        "name": escape(name),
        "x": [bar[0] for bar in bars],
        "y": [bar[1] for bar in bars],
        "text": [bar[2] for bar in bars],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"pattern": pattern},
        "meta": {"colour": list(called).index(matrix.series), "facets": facets(matrix.series)},
    }


def _height(cell: MatrixCell, kind: str) -> float | None:
    if cell.value_pps is None or cell.state is CellState.BELOW:
        return None
    if kind == _TOTAL:
        return cell.value_pps
    cores = cell.runs[-1].data_cores if cell.runs else None
    return cell.value_pps / cores if cores else None


def _hover(matrix: Matrix, name: str, place: tuple[int, int], cell: MatrixCell) -> str:
    run = cell.runs[-1]
    text = f"{name} {place[0]}x{place[1]}: {rate(cell.value_pps)}"
    if run.data_cores and run.vswitch_data_cores is not None and run.nf_data_cores is not None:
        text += (
            f" / {run.data_cores:g} cores ({run.vswitch_data_cores:g} vSwitch + {run.nf_data_cores:g} NF)"
            f" = {rate((cell.value_pps or 0.0) / run.data_cores)} per core"
        )
    mark = "<br>OVERSUBSCRIBED: fewer cores than requested" if cell.oversubscribed else ""
    return escape(f"{text} [{', '.join(verdict_of_runs(cell.runs, matrix.metric))}]") + mark
