"""Sampled call stacks of the data CPUs of a cell, folded: a line of function names and a number of samples."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, FiniteFloat, StringConstraints

from resources.libraries.python.model.base import Frozen, is_empty
from resources.libraries.python.model.bounds import DEEPEST_STACK, LONGEST_STACK, MAX_NFS, MAX_NODE_COSTS, MAX_STACKS
from resources.libraries.python.model.measurements.node_costs import NodeCost, NodeCosts
from resources.libraries.python.quantities import grouped

SOFTIRQ = "softirq"
"""First frame of work of the kernel on behalf of packets that interrupted a thread of no part of the cell."""
OTHER = "[other stacks]"
"""Innermost frame of samples whose stack is not among the kept ones."""
SEPARATOR = ";"


def _bounded(stack: str) -> str:
    most = DEEPEST_STACK + 2  # with the owner and the mark of functions left out
    if (names := stack.count(SEPARATOR) + 1) > most:
        raise ValueError(f"a stack of {names:,} functions, at most {most} are possible")
    return stack


_Count = Annotated[int, Field(ge=0, le=10**12)]
_Stack = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_STACK, pattern=r"^[^\x00-\x1f\x7f]+$"),
    AfterValidator(_bounded),
]


class NodeStacks(Frozen):
    """Samples of one machine in one trial."""

    node: str
    event: Literal["cycles", "cpu-clock", "sim"]
    """Trigger of a sample: the hardware counter of cycles, the kernel's timer where there is none, or a
    simulation."""
    hz: Annotated[FiniteFloat, Field(gt=0)]
    """Samples per second of a busy CPU."""
    cpus: Annotated[tuple[int, ...], Field(max_length=10_000)]
    """Sampled logical CPUs: those of the data threads of vSwitch and NFs."""
    sampled_s: Annotated[FiniteFloat, Field(ge=0)]
    samples: _Count
    """All of them."""
    idle: _Count
    """Samples of CPUs that had nothing to do."""
    elsewhere: _Count
    """Samples of programs outside the cell, such as a generator on a shared CPU."""
    lost: _Count = 0
    cut: _Count = 0
    """Samples under `OTHER`."""
    stacks: Annotated[dict[_Stack, _Count], Field(max_length=MAX_STACKS + 2 * MAX_NFS)]
    """Samples of the cell by stack: `nf-1-1;ret_from_fork;kthread;...`, the owner first, the running function last."""


class Stacks(Frozen):
    """Stacks in one trial at the rate that was found."""

    label: str
    """Whose rate: `PDR`, `NDR` or `SOAK`."""
    load_pps: Annotated[FiniteFloat, Field(ge=0)]
    """Intended load, aggregate."""
    received: _Count
    """Packets that came back in the trial."""
    trial_s: Annotated[FiniteFloat, Field(gt=0)]
    nodes: Annotated[tuple[NodeStacks, ...], Field(max_length=1000)]
    accounts: Annotated[tuple[NodeCost, ...], Field(max_length=MAX_NODE_COSTS)] = Field(default=(), exclude_if=is_empty)
    """What programs counted of their own work in the trial."""

    @property
    def costs(self) -> NodeCosts:
        """The accounts with the load that they are of."""
        return NodeCosts(
            load=self.label, load_pps=self.load_pps, received=self.received, read_s=0.0, nodes=self.accounts
        )

    @property
    def counts(self) -> dict[str, int]:
        """Samples of the cell by stack, of all machines."""
        found: dict[str, int] = {}
        for node in self.nodes:
            for stack, count in node.stacks.items():
                found[stack] = found.get(stack, 0) + count
        return found

    @property
    def total(self) -> int:
        """Samples of the cell."""
        return sum(sum(node.stacks.values()) for node in self.nodes)

    @property
    def busy_s(self) -> float:
        """CPU time of the cell that the samples stand for, in seconds."""
        return sum(sum(node.stacks.values()) / node.hz for node in self.nodes)


def described(found: Stacks) -> str:
    """Return samples, method, rate and what was left out, in a sentence."""
    events = " and ".join(dict.fromkeys(f"{node.event} at {node.hz:g} Hz" for node in found.nodes))
    text = f"{found.total} sample{'s' if found.total != 1 else ''} by {events}, in {found.trial_s:g} s at {found.label}"
    parts = (("in stacks beyond the kept ones", sum(node.cut for node in found.nodes)),)
    lost = sum(node.lost for node in found.nodes)
    rest = [f"{grouped(100 * count / found.total, 2)} % {what}" for what, count in parts if count and found.total]
    return "; ".join([text, *rest, *([f"{lost} lost"] if lost else [])])
