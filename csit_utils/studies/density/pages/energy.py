"""Power and energy per packet over the load, by how data threads wait for packets."""

from collections.abc import Mapping, Sequence

from csit_utils.dataset.rows import TestRow
from csit_utils.report.links import test_href
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row, Table, plots
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page
from csit_utils.report.units import joules, latency, rate

LOADS = ("PDR0", "PDR10", "PDR50", "PDR90")
_MAX_WAYS = 6
_TABLE = Table(
    "energy",
    lambda rows: rows,
    (
        Column("load", text=True),
        Column("way", "testbed and waiting", text=True),
        Column("received_pps", "rate", rate, href="href"),
        Column("watts", "power", "{:.2f} W".format),
        Column("joules_per_packet", "energy per packet", joules),
        Column("busy", "CPUs busy", "{:.2f}".format, about="Data CPUs of vSwitch and NFs, mean number"),
        Column("p99_ns", "p99", latency, about="Worst p99 one-way latency in the same trial"),
    ),
)


def _row(way: str, row: TestRow, label: str) -> Row:
    """Figures of a system at one load."""
    name, percent = label.lower(), int(label.removeprefix("PDR"))
    return {
        "load": f"{percent} % of PDR" if percent else "no traffic",
        "percent": percent,
        "way": way,
        "href": test_href(row),
        "received_pps": None if row.pdr_lower_pps is None else row.pdr_lower_pps * percent / 100,
        "watts": getattr(row, f"{name}_w"),
        "joules_per_packet": getattr(row, f"{name}_j_per_packet", None),
        "busy": getattr(row, f"{name}_busy_cpus"),
        "p99_ns": getattr(row, f"{name}_energy_p99_ns", None),
    }


class EnergyBlock:
    """Tests of the same cell that differ in how data threads wait."""

    def __init__(self, number: int, by_way: Mapping[str, TestRow]) -> None:
        shown = dict(list(by_way.items())[-_MAX_WAYS:])
        first = next(iter(shown.values()))
        self.title = f"{first.service_type} {first.nf_chains}x{first.nf_nodes} {first.nf_size} {first.frame}"
        self.simulated = bool(first.simulated)
        self.rows = [_row(way, row, label) for label in LOADS for way, row in shown.items()]
        self.table = _TABLE.draw(RecordTables(f"{number}", self.simulated, self.rows))
        self.metered = any(row.pdr0_w is not None for row in shown.values())
        quantity = Column("watts", "power of the system under test, W")
        if not self.metered:
            quantity = Column("busy", "data CPUs busy")
        title, load = f"{self.title}: {quantity.chosen}", Column("percent", "load, % of PDR")
        tables = RecordTables("energy", self.simulated, None, {"energy": self.rows})
        (self.figure,) = plots(tables, Plot(f"{number}", title, "energy", load, quantity, "way"))


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    blocks = energy_blocks(shown.rows)
    return {"blocks": blocks, "figures": [block.figure for block in blocks]} if blocks else None


PAGE = Page("energy", "Energy", _build)
"""Shown where energy was measured, of all runs: the newest test of each cell and way of waiting."""


def energy_blocks(rows: Sequence[TestRow]) -> list[EnergyBlock]:
    """Return a block for each cell; with the newest tests by testbed and way of waiting."""
    found: dict[tuple[object, ...], dict[str, TestRow]] = {}
    for row in sorted(rows, key=lambda row: row.started_at or ""):
        if row.pdr0_w is None and row.pdr0_busy_cpus is None:
            continue
        cell = (row.service_type, row.nf_chains, row.nf_nodes, row.nf_size, row.vs_dtc, row.frame, row.simulated)
        found.setdefault(cell, {})[_way(row)] = row
    return [EnergyBlock(number, ways) for number, ways in enumerate(found.values(), 1)]


def _way(row: TestRow) -> str:
    return f"{row.testbed}: {row.waiting}" if row.waiting else str(row.testbed)
