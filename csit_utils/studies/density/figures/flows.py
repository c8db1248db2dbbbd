"""Throughput by the number of flows, with IPv4 beside IPv6."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import THROUGHPUTS, TestRow
from csit_utils.report.figures import Figure
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row
from csit_utils.report.units import common_unit
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell
from csit_utils.studies.density.sentences import figure_text

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
                sizes = f"{one.nf_name} {one.vswitch_name}"
                frame = _LOADS.sub("", one.frame)
                name = _Service(one.service_type, f"{place[0]}x{place[1]}", sizes, frame, one.profile or one.goals)
                services.setdefault(name, {})[load] = cell
    return services


def _load(row: TestRow) -> tuple[int, int] | None:
    """None where no number of flows was chosen: such packets have no ports, which is less work for some NFs."""
    return None if row.flows is None or row.ip_version is None else (row.ip_version, row.flows)
