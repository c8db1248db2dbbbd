"""Evidence of a result: rates per instance, where packets were lost, how busy threads were."""

from typing import Literal

from pydantic import Field

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.measurements.trial import Direction


class FlowRate(Frozen):
    """One instance in one direction at one load, over all trials of that load that count."""

    instance: int
    direction: Direction
    sent: int
    received: int
    offered_pps: float
    forwarded_pps: float
    loss_ratio: float
    """In [0, 1]."""


class ItemizedFigure(Frozen):
    """A throughput figure, itemized per instance and direction (draft-mkonstan-nf-service-density)."""

    number: str
    """NDR and PDR: the good trials at the goal's lower bound. SOAK: its series there. MRR, ORR: all their trials.
    overload: the trial beyond the bounds that locates losses."""
    load_pps: float
    """Intended, aggregate."""
    trials: int
    flows: tuple[FlowRate, ...]
    fairness: float | None
    """Jain's index over the forwarded rates of the instances, both directions of each together: 1 when all are equal,
    1/n when one of n has everything. None for a single instance."""
    worst_instance: int
    """The instance with the highest loss ratio; of equals, the first."""
    worst_loss_ratio: float
    """Loss ratio of that instance, both directions together."""


class HopLoss(Frozen):
    """Packets of one instance in one direction that were seen at one hop and not at the next."""

    instance: int
    """0 where instances share the ports there, so that only the loss of all of them together is known."""
    direction: Direction
    last: str
    """Interface that still saw them."""
    next: str
    """Interface that did not."""
    owner: str
    """Owner of the loss: `vswitch` (`vswitch-2` on a second DUT), `generator`, or the name of an NF."""
    cause: Literal["queue", "inside", "link"]
    """queue: the owner's receive queue was full, by the drop counters of either end. inside: the owner received them
    and did not send them. link: they left for the owner, and no counter saw them arrive or be dropped."""
    lost: int


class ThreadLoad(Frozen):
    """Time of a data thread while sending. Shares of it, in [0, 1]."""

    owner: str
    interface: str
    cpu: int
    """Planned logical CPU."""
    running: float
    """Share of the time in which it ran."""
    waiting: float
    """Share of the time in which it had work and no CPU."""
    machine: str | None = Field(default=None, exclude_if=lambda machine: machine is None)
    """The node whose CPU that is; None where it is that of the (first) DUT."""


class CpuLoad(Frozen):
    """Time of a planned logical CPU while sending. Shares of it, in [0, 1]."""

    cpu: int
    user: float
    system: float
    """In the kernel outside of interrupts; threads of the kernel count here."""
    softirq: float
    """In soft and hard interrupts."""
    stolen: float
    """Taken by the hypervisor."""
    machine: str | None = Field(default=None, exclude_if=lambda machine: machine is None)
    """The node whose CPU it is; None where it is that of the (first) DUT."""


class Usage(Frozen):
    """Use of CPUs during some trials."""

    threads: tuple[ThreadLoad, ...] = ()
    """Empty where the world cannot tell: then `cpus` is all there is."""
    cpus: tuple[CpuLoad, ...] = ()
    backlog_dropped: int = 0
    """Packets dropped because a CPU's backlog was full, on the whole machine (softnet)."""
    squeezed: int = 0
    """Times that a CPU had to stop receiving with work left, on the whole machine (softnet)."""


class LocatedLosses(Frozen):
    """Located losses at a load slightly above the limit."""

    purpose: Literal["locate", "mrr"]
    """The trials whose counters these are: one beyond the bounds of the search, or those of MRR."""
    load_pps: float
    """Intended, aggregate."""
    offered_pps: float
    """The rate actually offered, aggregate."""
    trials: int
    sent: int
    received: int
    hops: tuple[HopLoss, ...]
    """Most packets first."""
    usage: Usage | None = None
