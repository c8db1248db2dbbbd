"""Features of the parts of a chain each second, and their state transitions (Probius, Nam et al.)."""

from typing import Literal

from resources.libraries.python.model.base import Frozen

HOST = "host"
"""Instead of a VNF: the machine as a whole."""
CHAIN = "chain"
"""Instead of a VNF: the chain from end to end."""
VSWITCH = "vswitch"
"""Instead of a VNF: the virtual switch."""


class FeatureSeries(Frozen):
    """One feature, one value a second. Names, units and meanings are those of `studies/chains/analysis/features`."""

    owner: str
    """A VNF of the chain, CHAIN, HOST or VSWITCH."""
    feature: str
    values: tuple[float | None, ...]


class Edge(Frozen):
    """Two events that followed each other on the threads of one owner."""

    before: str
    after: str
    """An event and its data: `kvm_exit:HLT`, `sched_switch:out:R`."""
    count: int
    seconds: float
    """Between the two, summed over all times."""


class StateGraph(Frozen):
    """State transitions of one owner: vertices are events, edges are pairs with count and time."""

    owner: str
    source: Literal["kvm", "kernel", "sim"]
    """`kvm`: events of a virtual machine; `kernel`: scheduling, interrupts, NAPI and network events of a container's
    threads; `sim`: invented by the simulated system."""
    traced_s: float
    events: int
    lost: int
    """Events that the kernel's buffer could not hold."""
    edges: tuple[Edge, ...]
