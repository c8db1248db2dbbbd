"""Throughput by the number of flows, with IPv4 beside IPv6."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import THROUGHPUTS, TestRow
from csit_utils.report.figures import Figure, Json, axis, scatter
from csit_utils.report.units import common_unit, rate
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell

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

    Args:
        identity: Of the figure.
        title: Of the figure.
        found: Matrices of one system, of all frames.
    """
    variants: Json = {}
    for metric in THROUGHPUTS:
        services = {name: points for name, points in _services(found, metric).items() if len(points) > 1}
        if services:
            variants[metric] = _variant(metric, services)
    if not variants:
        return None
    metrics = tuple(variants)
    return Figure(identity, title, found[0].series.system.simulated, (metrics,), variants, ("service type", "cell"))


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


def _variant(metric: Measure, services: dict[_Service, _Points]) -> Json:
    rates = [cell.value_pps or 0.0 for points in services.values() for cell in points.values()]
    factor, unit = common_unit(rates)
    counts = sorted({flows for points in services.values() for _, flows in points})
    return {
        "data": [
            line
            for number, (name, points) in enumerate(services.items())
            for line in _lines(name, points, number, factor)
        ],
        "layout": {
            "xaxis": {
                "title": {"text": "flows of each instance and direction"},
                "type": "log",
                "tickvals": counts,
                "ticktext": [f"{count:,}" for count in counts],
            },
            "yaxis": axis(f"{metric}, {unit}"),
        },
    }


def _lines(name: _Service, points: _Points, number: int, factor: float) -> Iterator[Json]:
    for version in sorted({version for version, _ in points}):
        own = sorted((flows, cell) for (of, flows), cell in points.items() if of == version)
        label = f"{name.name}, IPv{version}"
        yield scatter(
            label,
            [(flows, (cell.value_pps or 0.0) / factor) for flows, cell in own],
            number,
            texts=[
                f"{escape(label)}<br>{flows:,} flows: "
                f"{'at least ' * (cell.state is CellState.AT_LEAST)}{rate(cell.value_pps)}"
                f"{'<br>OVERSUBSCRIBED' * cell.oversubscribed}"
                for flows, cell in own
            ],
            facets={"service type": name.service_type, "cell": name.cell},
            marker={"size": 9, "symbol": ["circle-open" if cell.oversubscribed else "circle" for _, cell in own]},
            line={"width": 2, "dash": "solid" if version == 4 else "dash"},
        )
