"""Features of the parts of a chain each second, their state transitions (Probius, Nam et al.), and delays by part."""

from typing import Literal

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.measurements.trial import Direction

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


LINK = "link"
"""Owner of the time from the last port of the system under test to the port of the generator."""
JOINT = " + "
"""Joins the owners of a part in which no packet could be seen between them."""


class HopDelay(Frozen):
    """Delay of one part, of packets that were seen at all visible hops of their path.

    The time before a packet is seen at a port belongs to the owner of that port: from its receiving port to its sending
    one it is inside, and from the sending port of the owner before to its receiving one it waits in its queue. So the
    parts of a direction add up to the time between the first and the last hop.
    """

    owner: str
    """An NF or a vSwitch by its name in the plan, LINK, or several of them joined by JOINT."""
    direction: Direction
    mean_s: float
    """Of all visits of a packet together: a packet crosses the vSwitch several times."""
    median_s: float
    packets: int
