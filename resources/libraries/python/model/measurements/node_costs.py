"""Cost of packets by node: what programs count of their own work, or samples show, by graph node, stage or hook."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, StringConstraints

from resources.libraries.python.model.base import Frozen, is_none
from resources.libraries.python.model.bounds import MAX_NODE_COSTS
from resources.libraries.python.model.measurements.features import VSWITCH

_Name = Annotated[str, StringConstraints(max_length=200)]
_Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
_Amount = Annotated[FiniteFloat, Field(ge=0)]
Unit = Literal["clocks", "ns"]


class NodeCost(Frozen):
    """Work of one thread in one node."""

    part: _Name
    """Owner in the plan: `vswitch`, `nf-1-1`."""
    thread: _Name = ""
    """As its program calls it; empty where it tells threads not apart."""
    node: _Name
    """Graph node of VPP, stage of an Open vSwitch thread, or stage of the kernel."""
    packets: _Count
    """Packets that passed the node."""
    calls: _Count | None = None
    """Batches in which they came; None if unknown."""
    cost: _Amount | None = None
    """Time for each of them; None where only packets are counted."""
    unit: Unit = "clocks"
    """Of the cost."""
    error: _Amount = 0.0
    """Half of the resolution in which the cost is printed, or of its 95 % confidence interval where it was sampled."""


@dataclass(frozen=True, slots=True)
class CostByNode:
    """A node of one part, all threads together, as tables have it."""

    load: str
    """`PDR`, `MRR` or the like."""
    part: str
    node: str
    packets: int
    packets_per_call: float | None
    """Vectors per call; few where a thread is starved: each packet then carries more of what a call costs."""
    cost: float | None
    """Time for each of its packets, in the unit."""
    unit: str
    """`clocks` of the CPU's time-stamp counter, or `ns`."""
    error: float
    """See `NodeCost.error`."""


class NodeCosts(Frozen):
    """One reading, of one or more trials at a load."""

    load: str
    """Whose load: `PDR`, `NDR`, `SOAK` or `MRR`."""
    load_pps: _Amount
    """Intended load, aggregate."""
    received: _Count
    """Packets that came back in these trials."""
    loss_ratio: _Amount | None = Field(default=None, exclude_if=is_none)
    """Of these trials: packets that were lost took time, too. None where it is not known."""
    read_s: _Amount
    """Time that reading took, between trials."""
    nodes: Annotated[tuple[NodeCost, ...], Field(max_length=MAX_NODE_COSTS)]

    def by_node(self, most: int) -> tuple[CostByNode, ...]:
        """Return the nodes, all threads of a part together; the `most` that took the most time."""
        groups: dict[tuple[str, str, Unit], list[NodeCost]] = {}
        for row in self.nodes:
            groups.setdefault((row.part, row.node, row.unit), []).append(row)
        kept = set(sorted(groups, key=lambda key: -_total(groups[key]))[:most])
        return tuple(_together(self.load, rows) for key, rows in groups.items() if key in kept)

    @property
    def vswitch_clocks(self) -> float | None:
        """Clocks of the vSwitch, of all DUTs, for each packet that came back; None where none are counted."""
        own = [row for row in self.nodes if row.part.partition("-")[0] == VSWITCH and row.unit == "clocks"]
        return _total(own) / self.received if self.received and any(row.cost is not None for row in own) else None


def _total(rows: Iterable[NodeCost]) -> float:
    return sum(row.packets * (row.cost or 0.0) for row in rows)


def _together(load: str, rows: Sequence[NodeCost]) -> CostByNode:
    first, packets = rows[0], sum(row.packets for row in rows)
    calls = 0 if any(row.calls is None for row in rows) else sum(row.calls or 0 for row in rows)
    known = packets > 0 and all(row.cost is not None for row in rows)
    return CostByNode(
        load=load,
        part=first.part,
        node=first.node,
        packets=packets,
        packets_per_call=packets / calls if calls else None,
        cost=_total(rows) / packets if known else None,
        unit=first.unit,
        error=sum(row.packets * row.error for row in rows) / packets if known else 0.0,
    )


def heaviest(rows: Iterable[NodeCost]) -> tuple[NodeCost, ...]:
    """Return as many rows as a record may have, without those that took the least time."""
    every = tuple(rows)
    if len(every) <= MAX_NODE_COSTS:
        return every
    return tuple(sorted(every, key=lambda row: -_total((row,)))[:MAX_NODE_COSTS])
