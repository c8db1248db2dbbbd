"""Throughput over the density matrix: curves by its size, bars of cells side by side, and numbers of flows."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from csit_utils.analysis.grouping import Series
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import THROUGHPUTS, TestRow
from csit_utils.report.figures import Figure
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row
from csit_utils.report.units import common_unit, rate
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell, Place, verdict_of_runs
from csit_utils.studies.density.sentences import figure_text
from resources.libraries.python.quantities import counted

_FACETS = {"NF size": "NF size", "vSwitch": "vSwitch"}
_ACROSS = tuple(
    Column(name, choice=f"by {name}", title=name, options={"dtick": 1})
    for name in ("service instances", "NFs per instance", "all NFs")
)


def facets(series: Series) -> dict[str, str]:
    """Return the properties by which a reader filters maps, lines or bars."""
    return {
        "service type": series.service_type,
        "NF size": series.nf_size or "unknown",
        "vSwitch": f"{series.vs_dtc}c" if series.vs_dtc is not None else "unknown",
    }


def density_figure(identity: str, title: str, found: Sequence[Matrix], called: Mapping[Series, str]) -> Figure | None:
    """Return throughput against density, a plot per service type, a line per length or number of services."""

    def rows(_found: object) -> Iterator[Row]:
        # Lines of all columns in the order of their numbers, with their points from left to right.
        for matrix, place, cell in sorted(_valued(found, called), key=lambda each: each[1][::-1]):
            row = _row(matrix, place, cell, called)
            nfs, instances = f"{counted(place[1], 'NF')} per instance", counted(place[0], "instance")
            for column, x, others in zip(
                _ACROSS, (place[0], place[1], place[0] * place[1]), (nfs, instances, nfs), strict=True
            ):
                yield {**row, column.name: x, "others": others}

    plot = Plot(
        identity.removeprefix("density-"),
        title,
        rows,
        _ACROSS,
        _columns(found, ""),
        colour="others",
        dash="sizes",
        beside="service type",
        facets=_FACETS,
        hover=("cell", "text"),
        hollow="oversubscribed",
    )
    return plot.draw(_tables("density", found)) if found else None


def bars_figure(identity: str, title: str, found: Sequence[Matrix], called: Mapping[Series, str]) -> Figure | None:
    """Return a bar per cell and series; None without any cell that has a figure.

    `found`: matrices that may be compared.
    `called`: names and order of their series.
    """

    def rows(_found: object) -> Iterator[Row]:
        return (_row(*each, called) for each in _valued(found, called))

    cells = sorted({place for _, place, _ in _valued(found, called)})
    most = sum(1 for matrix in found for _ in matrix.cells) // max(1, len({matrix.metric for matrix in found}))
    plot = Plot(
        identity.removeprefix("bars-"),
        title,
        rows,
        Column("cell", text=True),
        (*_columns(found, ""), *_columns(found, " per data core")),
        colour="series",
        mark="bars",
        facets={"service type": "service type", **_FACETS},
        hover=("text",),
        hollow="oversubscribed",
        layout={
            "xaxis": {
                "title": {"text": "cell: service instances x NFs per instance"},
                "type": "category",
                "categoryorder": "array",
                "categoryarray": [f"{services}x{nfs}" for services, nfs in cells],
            },
            "bargap": max(0.2, 0.8 - 0.06 * most),  # one is no wall
        },
    )
    return plot.draw(_tables("bars", found)) if found else None


def _tables(anchor: str, found: Sequence[Matrix]) -> RecordTables:
    return RecordTables(anchor, found[0].series.system.simulated, found)


def _columns(found: Sequence[Matrix], what: str) -> tuple[Column, ...]:
    """Quantities, each in the unit of its values."""
    columns = []
    for metric in THROUGHPUTS:
        factor, unit = common_unit([value for matrix in found if matrix.metric == metric for value in matrix.values()])
        ends = None if what else (f"{metric} lower", f"{metric} upper")
        columns.append(Column(f"{metric}{what}", f"{metric}{what}, {unit}", scale=1 / factor, ends=ends))
    return tuple(columns)


def _valued(found: Sequence[Matrix], called: Mapping[Series, str]) -> Iterator[tuple[Matrix, Place, MatrixCell]]:
    """Cells that have a figure, series in their order."""
    for matrix in sorted(found, key=lambda matrix: list(called).index(matrix.series)):
        for place, cell in sorted(matrix.cells.items()):
            if cell.value_pps is not None and cell.state is not CellState.BELOW:
                yield matrix, place, cell


def _row(matrix: Matrix, place: Place, cell: MatrixCell, called: Mapping[Series, str]) -> dict[str, object]:
    run, value_pps = cell.runs[-1] if cell.runs else None, cell.value_pps or 0.0
    verdict = f"[{', '.join(verdict_of_runs(cell.runs, matrix.metric))}]"
    cores = run.data_cores if run else None
    parts = ""
    if run and cores and run.vswitch_data_cores is not None and run.nf_data_cores is not None:
        parts = f"{cores:g} cores ({run.vswitch_data_cores:g} vSwitch + {run.nf_data_cores:g} NF)"
    upper = rate(cell.upper_pps) if cell.upper_pps not in {None, cell.value_pps} else ""
    bounds = f"{rate(value_pps)}{f' … {upper}' * bool(upper)}"
    marked = "OVERSUBSCRIBED" if cell.oversubscribed else ""
    return {
        **facets(matrix.series),
        "series": called[matrix.series],
        "sizes": called[matrix.series].removeprefix(matrix.series.service_type).strip(),
        "cell": f"{place[0]}x{place[1]}",
        str(matrix.metric): value_pps,
        f"{matrix.metric} lower": value_pps,
        f"{matrix.metric} upper": cell.upper_pps or value_pps,
        f"{matrix.metric} per data core": value_pps / cores if cores else None,
        "oversubscribed": cell.oversubscribed,
        "text": ", ".join(filter(None, (bounds, parts, verdict, marked))),
    }


_LOADS = re.compile(r"-ip6|-\d+f\b")
"""Parts of a frame's name that say version of IP and number of flows, as in `64B-ip6-1000f`."""


@dataclass(frozen=True)
class _Service:
    """Cells that differ in nothing but the number of flows and the version of IP."""

    service_type: str
    cell: str
    size: str
    frame: str
    profile: str

    @property
    def name(self) -> str:
        return f"{self.service_type} {self.cell}, {self.size}, {self.frame}" + f", {self.profile}" * bool(self.profile)


_Points = dict[tuple[int, int], MatrixCell]
"""By version of IP and number of flows of each instance and direction."""


def flows_figure(identity: str, title: str, found: Sequence[Matrix]) -> Figure | None:
    """A line per cell and version of IP; None where no cell has two numbers of flows or both versions.

    `found`: matrices of one system, of all frames.
    """
    columns, counts = [], set[int]()
    for metric in THROUGHPUTS:
        services = [points for points in _services(found, metric).values() if len(points) > 1]
        counts |= {flows for points in services for _, flows in points}
        factor, unit = common_unit([cell.value_pps or 0.0 for points in services for cell in points.values()])
        columns.append(Column(metric, f"{metric}, {unit}", scale=1 / factor))
    ticks = {"tickvals": sorted(counts), "ticktext": [f"{count:,}" for count in sorted(counts)]}
    plot = Plot(
        identity,
        title,
        _rows,
        Column("flows", "flows of each instance and direction", log=True, options=ticks),
        tuple(columns),
        colour="service",
        dash="version",
        facets={"service type": "service type", "cell": "cell"},
        hover=("text",),
        hollow="oversubscribed",
    )
    return plot.draw(RecordTables("flows", found[0].series.system.simulated, found)) if found else None


def _rows(found: Sequence[Matrix]) -> Iterator[Row]:
    for metric in THROUGHPUTS:
        for service, points in _services(found, metric).items():
            for (version, flows), cell in sorted(points.items()) if len(points) > 1 else ():
                yield {
                    "service": service.name,
                    "service type": service.service_type,
                    "cell": service.cell,
                    "version": f"IPv{version}",
                    "flows": flows,
                    metric: cell.value_pps or 0.0,
                    "oversubscribed": cell.oversubscribed,
                    "text": f"{figure_text(cell)}{', OVERSUBSCRIBED' * cell.oversubscribed}",
                }


def _services(found: Sequence[Matrix], metric: Measure) -> dict[_Service, _Points]:
    services: dict[_Service, _Points] = {}
    for matrix in found:
        for place, cell in matrix.cells.items() if matrix.metric == metric else ():
            load = _load(cell.runs[-1]) if cell.runs and cell.state in (CellState.VALUE, CellState.AT_LEAST) else None
            if load is not None:
                one = matrix.series
                frame = _LOADS.sub("", one.frame)
                name = _Service(one.service_type, f"{place[0]}x{place[1]}", one.sizes, frame, one.profile or one.goals)
                services.setdefault(name, {})[load] = cell
    return services


def _load(row: TestRow) -> tuple[int, int] | None:
    """None where no number of flows was chosen: such packets have no ports, which is less work for some NFs."""
    return None if row.flows is None or row.ip_version is None else (row.ip_version, row.flows)
