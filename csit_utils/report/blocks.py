"""What the page shows of one system: per frame size and profile the matrices and curves, and sentences on top."""

from collections.abc import Sequence
from dataclasses import dataclass

from csit_utils.analysis.answers import Evidence
from csit_utils.analysis.density import Matrix, matrices, scale
from csit_utils.analysis.grouping import Metric, Series, System, all_series
from csit_utils.analysis.summary import changes
from csit_utils.dataset.items import RefusedCell
from csit_utils.dataset.rows import TestRow
from csit_utils.report.density_tables import DensityTables, density_tables
from csit_utils.report.figures import Figure, density_figure, per_core_figure
from csit_utils.report.heatmap import HeatMap, gradient, heat_map
from csit_utils.report.sentences import names, sentences
from csit_utils.report.units import common_unit, digits3


@dataclass(frozen=True)
class MetricView:
    """The heat maps of one metric, with the colour scale they share."""

    metric: str
    definition: str
    unit: str
    top: str
    gradient: str
    maps: tuple[HeatMap, ...]

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


@dataclass(frozen=True)
class SystemView:
    """One section of the page."""

    anchor: str
    system: System
    blocks: tuple[Block, ...]
    tests: int
    oversubscribed: int


def system_views(
    rows: Sequence[TestRow], refused: Sequence[RefusedCell] = (), seen: Evidence | None = None
) -> list[SystemView]:
    """All systems, measured ones first.

    Args:
        rows: All tests.
        refused: Cells that do not fit.
        seen: Counts by instance and latency of the same tests, for answers.
    """
    series = all_series(rows)
    views = []
    for number, system in enumerate(dict.fromkeys(one.system for one in series), 1):
        own = [one for one in series if one.system == system]
        keys = dict.fromkeys((one.frame, one.profile, one.goals) for one in own)
        blocks = tuple(
            _block(
                rows,
                [one for one in own if (one.frame, one.profile, one.goals) == key],
                f"s{number}b{index}",
                refused,
                seen,
            )
            for index, key in enumerate(keys, 1)
        )
        mine = [row for row in rows if (row.simulated, row.world, row.testbed, row.drivers) == _key(system)]
        marked = sum(bool(row.oversubscribed) for row in mine)
        views.append(SystemView(f"system-{number}", system, blocks, len(mine), marked))
    return views


def _key(system: System) -> tuple[bool, str, str, str]:
    return system.simulated, system.world, system.testbed, system.drivers


def _block(
    rows: Sequence[TestRow],
    series: Sequence[Series],
    identity: str,
    refused: Sequence[RefusedCell],
    seen: Evidence | None,
) -> Block:
    found = [matrix for one in series for matrix in matrices(rows, one, refused)]
    metrics = tuple(
        _metric(metric, [matrix for matrix in found if matrix.metric is metric])
        for metric in Metric
        if any(matrix.metric is metric for matrix in found)
    )
    one, called = series[0], names(series)
    where = f"{one.frame}, {_sizes(series)}" if _sizes(series) else one.frame
    curves = density_figure(f"density-{identity}", f"Throughput against density, {where}", found, called)
    cores = per_core_figure(f"cores-{identity}", f"Throughput per data core, {where}", found, called)
    figures = tuple(figure for figure in (curves, cores) if figure is not None)
    said = sentences(changes(found), called)
    tables = density_tables(found, series, seen)
    return Block(one.frame, one.profile, one.goals, _sizes(series), metrics, figures, said, tables)


def _sizes(series: Sequence[Series]) -> str:
    """The sizes that all series of a block have in common."""
    nf_sizes = {one.nf_size for one in series}
    vswitches = {one.vs_dtc for one in series}
    common = [f"NF-{size}" for size in nf_sizes if len(nf_sizes) == 1]
    return ", ".join([*common, *(f"vSwitch-{cores}c" for cores in vswitches if len(vswitches) == 1)])


def _metric(metric: Metric, found: Sequence[Matrix]) -> MetricView:
    _, top = scale(found) or (0.0, 0.0)
    factor, unit = common_unit([top])
    maps = tuple(heat_map(matrix, top, factor, unit) for matrix in found)
    # Cells of one block have the same goals, so every matrix that has runs gives the same definition.
    return MetricView(metric, maps[0].definition, unit, digits3(top / factor), gradient(), maps)
