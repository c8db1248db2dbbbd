"""Cost of packets by node, as a table of the page of a test and below the flame graph of a suspect."""

from dataclasses import dataclass

from csit_utils.report.record_blocks import amounts
from csit_utils.report.units import DASH, rate, seconds
from resources.libraries.python.model.measurements.node_costs import NodeCost, NodeCosts


@dataclass(frozen=True)
class NodeCostView:
    """One node of a thread."""

    part: str
    thread: str
    node: str
    passes: float | None
    """Packets in the node for each packet that came back."""
    packets_per_call: float | None
    cost: str
    """Of a packet in the node, with its unit and error."""
    value: float | None
    total: float | None
    """Cost of the node for each packet that came back."""


@dataclass(frozen=True)
class NodeCostTable:
    """All nodes of a reading, those of a part that cost most first."""

    caption: str
    rows: tuple[NodeCostView, ...]
    simulated: bool
    note: str


def cost_table(found: NodeCosts | None, *, simulated: bool, of: str = "") -> NodeCostTable | None:
    """Return the table of a reading; None without any.

    `of`: what it is of, where a page has several.
    """
    if found is None or not found.nodes:
        return None
    rows = sorted((_view(row, found.received) for row in found.nodes), key=lambda row: (row.part, -(row.total or 0.0)))
    where = f"at {found.load}" if found.load != "MRR" else "in MRR"
    text = f"{rate(found.load_pps)} offered" + (f", read in {seconds(found.read_s)}" if found.read_s else "")
    return NodeCostTable(
        f"Cost of packets by node {where}{f', {of}' if of else ''}", tuple(rows), simulated, f"{text}."
    )


def _view(row: NodeCost, received: int) -> NodeCostView:
    passes = row.packets / received if received else None
    text = DASH
    if row.cost is not None:
        value, error = amounts(row.cost, row.error)
        text = f"{value} ± {error} {row.unit}" if row.error else f"{value} {row.unit}"
    return NodeCostView(
        part=row.part,
        thread=row.thread,
        node=row.node,
        passes=passes,
        packets_per_call=row.packets / row.calls if row.calls else None,
        cost=text,
        value=row.cost,
        total=None if passes is None or row.cost is None else passes * row.cost,
    )
