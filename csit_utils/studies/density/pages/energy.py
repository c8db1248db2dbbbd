"""Power and energy per packet over the load, in columns by how data threads wait for packets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from csit_utils.dataset.rows import TestRow
from csit_utils.report.figures import Figure
from csit_utils.report.record_blocks import Column, Plot, RecordTables, plots
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page

LOADS = ("PDR0", "PDR10", "PDR50", "PDR90")
_WORDS = {"PDR0": "no traffic"}
_MAX_COLUMNS = 6


class EnergyCell:
    """Figures of one system at one load."""

    def __init__(self, row: TestRow, label: str) -> None:
        name, percent = label.lower(), int(label.removeprefix("PDR"))
        self.row = row
        self.received_pps = None if row.pdr_lower_pps is None else row.pdr_lower_pps * percent / 100
        """Share of PDR, aggregate."""
        self.watts: float | None = getattr(row, f"{name}_w")
        self.joules_per_packet: float | None = getattr(row, f"{name}_j_per_packet", None)
        self.busy_cpus: float | None = getattr(row, f"{name}_busy_cpus")
        self.p99_ns: int | None = getattr(row, f"{name}_energy_p99_ns", None)


@dataclass(frozen=True)
class EnergyLine:
    """One load."""

    load: str
    cells: tuple[EnergyCell, ...]
    """One for each column."""


class EnergyBlock:
    """Tests of the same cell that differ in how data threads wait."""

    def __init__(self, number: int, by_column: Mapping[str, TestRow]) -> None:
        shown = dict(list(by_column.items())[-_MAX_COLUMNS:])
        first = next(iter(shown.values()))
        self.title = f"{first.service_type} {first.nf_chains}x{first.nf_nodes} {first.nf_size} {first.frame}"
        self.simulated = bool(first.simulated)
        self.columns = tuple(shown)
        self.lines = tuple(
            EnergyLine(
                _WORDS.get(label, f"{label.removeprefix('PDR')} % of PDR"),
                tuple(EnergyCell(row, label) for row in shown.values()),
            )
            for label in LOADS
        )
        self.metered = any(row.pdr0_w is not None for row in shown.values())
        self.figure = _figure(number, self.title, shown, metered=self.metered)


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    blocks = energy_blocks(shown.rows)
    return {"blocks": blocks, "figures": [block.figure for block in blocks]} if blocks else None


PAGE = Page("energy", "Energy", _build)
"""Shown where energy was measured, of all runs: the newest test of each cell and way of waiting."""


def energy_blocks(rows: Sequence[TestRow]) -> list[EnergyBlock]:
    """Return a block for each cell; its columns are the newest tests by testbed and way of waiting."""
    found: dict[tuple[object, ...], dict[str, TestRow]] = {}
    for row in sorted(rows, key=lambda row: row.started_at or ""):
        if row.pdr0_w is None and row.pdr0_busy_cpus is None:
            continue
        cell = (row.service_type, row.nf_chains, row.nf_nodes, row.nf_size, row.vs_dtc, row.frame, row.simulated)
        found.setdefault(cell, {})[_column(row)] = row
    return [EnergyBlock(number, columns) for number, columns in enumerate(found.values(), 1)]


def _column(row: TestRow) -> str:
    return f"{row.testbed}: {row.waiting}" if row.waiting else str(row.testbed)


def _figure(number: int, title: str, shown: Mapping[str, TestRow], *, metered: bool) -> Figure:
    quantity = Column("watts", "power of the system under test, W") if metered else Column("busy", "data CPUs busy")
    rows = [
        {"column": column, "load": int(label.removeprefix("PDR")), "watts": cell.watts, "busy": cell.busy_cpus}
        for column, row in shown.items()
        for label in LOADS
        for cell in [EnergyCell(row, label)]
    ]
    tables = RecordTables("energy", any(row.simulated for row in shown.values()), None, {"energy": rows})
    plot = Plot(
        f"{number}", f"{title}: {quantity.chosen}", "energy", Column("load", "load, % of PDR"), quantity, "column"
    )
    return plots(tables, plot)[0]
