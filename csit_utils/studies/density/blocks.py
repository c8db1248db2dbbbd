"""Part of the page for one system: sentences, then matrices and curves by frame size and profile."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from csit_utils.analysis.grouping import Metric, Series, System, all_series, system_of
from csit_utils.analysis.verdicts import verdict_of_runs
from csit_utils.dataset.items import Refusal
from csit_utils.dataset.reference import WORLD as PUBLISHED
from csit_utils.dataset.rows import TestRow
from csit_utils.report.figures import FACETS, Figure, Json, density_figure, facets
from csit_utils.report.units import common_unit, digits3, rate
from csit_utils.studies.density.analysis.answers import AnswerEvidence
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell, matrices, scale
from csit_utils.studies.density.analysis.summary import changes
from csit_utils.studies.density.density_tables import DensityTables, density_tables
from csit_utils.studies.density.figures.flows import flows_figure
from csit_utils.studies.density.figures.heatmap import HeatMap, gradient, heat_map
from csit_utils.studies.density.figures.speedup import SpeedupLimits, speedup_figure
from csit_utils.studies.density.sentences import common_sizes, names, sentences

_TOTAL, _PER_CORE = "throughput", "per data core"


@dataclass(frozen=True)
class MetricView:
    """The heat maps of one metric, with the colour scale they share."""

    metric: str
    definition: str
    unit: str
    factor: float
    """Divisor of the numbers in cells."""
    top_value: float
    """The brightest colour, in `unit`."""
    gradient: str
    maps: tuple[HeatMap, ...]

    @property
    def top(self) -> str:
        """The brightest colour, for people."""
        return digits3(self.top_value)

    @property
    def columns(self) -> int:
        """Columns of the widest heat map."""
        return max(len(shown.nodes) for shown in self.maps)


@dataclass(frozen=True)
class Block:
    """All that may be compared: one system, frame size and profile."""

    frame: str
    profile: str
    goals: str
    sizes: str
    metrics: tuple[MetricView, ...]
    figures: tuple[Figure, ...]
    sentences: tuple[str, ...]
    tables: DensityTables
    matrices: tuple[Matrix, ...]


@dataclass(frozen=True)
class SystemView:
    """One section of the page."""

    anchor: str
    system: System
    blocks: tuple[Block, ...]
    rows: tuple[TestRow, ...]
    flows: Figure | None = None
    """Throughput by flows and version of IP, over all blocks."""

    @property
    def tests(self) -> int:
        """How many."""
        return len(self.rows)

    @property
    def oversubscribed(self) -> int:
        """How many tests ran so."""
        return sum(bool(row.oversubscribed) for row in self.rows)

    @property
    def published(self) -> bool:
        """Whether it is published, not measured."""
        return self.system.world == PUBLISHED


def system_views(
    rows: Sequence[TestRow],
    refused: Sequence[Refusal] = (),
    seen: AnswerEvidence | None = None,
    limits: Callable[[Sequence[TestRow], str], SpeedupLimits] | None = None,
) -> list[SystemView]:
    """All systems: measured ones, simulated ones, published figures.

    Args:
        rows: All tests.
        refused: Cells that do not fit.
        seen: Counts by instance and latency of the same tests, for answers.
        limits: What no figure can be above of, from the tests of a system and the name of a frame.
    """
    by_system: dict[System, list[TestRow]] = {}
    for row in rows:
        system = system_of(row)
        if system is not None:
            by_system.setdefault(system, []).append(row)
    found = {one: matrices(rows, one, refused) for one in all_series(rows)}
    tops = _tops(matrix for own in found.values() for matrix in own)
    views = []
    for number, system in enumerate(dict.fromkeys(one.system for one in found), 1):
        own = [one for one in found if one.system == system]
        keys = dict.fromkeys((one.frame, one.profile, one.goals) for one in own)
        blocks = []
        for index, key in enumerate(keys, 1):
            series = [one for one in own if (one.frame, one.profile, one.goals) == key]
            every = [matrix for one in series for matrix in found[one]]
            line = limits(by_system[system], series[0].frame) if limits else SpeedupLimits()
            blocks.append(_block(every, series, f"s{number}b{index}", seen=seen, tops=tops, line=line))
        every = [matrix for one in own for matrix in found[one]]
        flows = flows_figure(f"flows-s{number}", "Throughput by number of flows and version of IP", every)
        views.append(SystemView(f"system-{number}", system, tuple(blocks), tuple(by_system[system]), flows))
    return sorted(views, key=lambda view: view.published)


_Kind = tuple[Metric, bool, str]


def _tops(found: Iterable[Matrix]) -> dict[_Kind, float]:
    """The brightest colour of each metric: one scale for all maps of the page that are of one kind."""
    kinds: dict[_Kind, list[Matrix]] = {}
    for matrix in found:
        kinds.setdefault(_kind(matrix), []).append(matrix)
    return {kind: (scale(own) or (0.0, 0.0))[1] for kind, own in kinds.items()}


def _kind(matrix: Matrix) -> _Kind:
    """Simulated, measured and published figures are no parts of one scale."""
    return matrix.metric, matrix.series.system.simulated, matrix.series.system.origin


def _block(
    found: Sequence[Matrix],
    series: Sequence[Series],
    identity: str,
    *,
    seen: AnswerEvidence | None,
    tops: Mapping[_Kind, float],
    line: SpeedupLimits,
) -> Block:
    metrics = tuple(
        _metric([matrix for matrix in found if matrix.metric is metric], tops)
        for metric in Metric
        if any(matrix.metric is metric for matrix in found)
    )
    one, called = series[0], names(series)
    where = f"{one.frame}, {common_sizes(series)}" if common_sizes(series) else one.frame
    curves = density_figure(f"density-{identity}", f"Throughput against density, {where}", found, called)
    bars = bars_figure(f"bars-{identity}", f"Cells side by side, {where}", found, called)
    gain = speedup_figure(f"speedup-{identity}", f"Speedup by data cores, {one.frame}", found, line)
    figures = tuple(figure for figure in (curves, bars, gain) if figure is not None)
    summary = sentences(changes(found), called)
    tables = density_tables(found, series, seen)
    sizes = common_sizes(series)
    return Block(one.frame, one.profile, one.goals, sizes, metrics, figures, summary, tables, tuple(found))


def _metric(found: Sequence[Matrix], tops: Mapping[_Kind, float]) -> MetricView:
    top = tops[_kind(found[0])]
    factor, unit = common_unit([top])
    maps = tuple(heat_map(matrix, top, factor, unit) for matrix in found)
    # Cells of one block have the same goals, so every matrix that has runs gives the same definition.
    return MetricView(found[0].metric, maps[0].definition, unit, factor, top / factor, gradient(), maps)


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
