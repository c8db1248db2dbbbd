"""Findings of checks, missing requirements, reasons against cells, coverage of studies, and evidence of results."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.base import Frozen, is_none
from resources.libraries.python.model.measurements.trial import Direction

LeastMeasured = Annotated[float, Field(ge=0, le=1)]
"""Share of what is asked, in [0, 1], below which a study fails. What a policy forbids is not asked."""
_MAX_REASONS = 3


class Coverage(NamedTuple):
    """Measurements made, of those asked for."""

    measured: int
    asked: int

    def __str__(self) -> str:
        """`40 of 58`."""
        return f"{self.measured} of {self.asked}"

    def check(self, what: str, least: float, reasons: Iterable[str | None]) -> None:
        """See that enough was measured.

        `what`: What was done with what: `chains were measured`.
        `least`: Share that the specification asks for.
        `reasons`: Why others were not measured, one for each; the most frequent are in the error.

        Raises:
            CsitError: Less was measured than the specification asks for.
        """
        if self.measured >= least * self.asked:
            return
        frequent = Counter(reason for reason in reasons if reason).most_common(_MAX_REASONS)
        why = "; ".join(f"{count} x {reason}" for reason, count in frequent)
        wanted = "all of them" if least == 1 else f"{100 * least:g} %"
        raise CsitError(
            f"{self} {what}, the specification requires {wanted} (least_measured: {least:g})"
            + (f": {why}" if why else "")
        )


@dataclass(frozen=True, slots=True)
class PreflightProblem:
    """A missing requirement and its fix."""

    what: str
    fix: str = ""
    """How to fix it; empty where only the text says more."""

    def __str__(self) -> str:
        return f"{self.what}; {self.fix}" if self.fix else self.what


class Severity(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    """Runs work; figures may be worse, or some cells left out."""
    PROBLEM = "problem"
    """Runs fail, or their figures are wrong."""


class CheckFinding(Frozen):
    """The result of one check at one place of the topology, and how to fix it."""

    level: Severity
    place: str
    """Where in the topology, such as `nodes.DUT1`."""
    check: str
    """Name of the check, in a word or two."""
    what: str
    """With numbers."""
    fix: str = ""
    """A command or a setting; empty where nothing is wrong."""

    def __str__(self) -> str:
        return f"{self.place}: {self.check}: {self.what}{f'; {self.fix}' if self.fix else ''}"


def ok(place: str, check: str, what: str) -> CheckFinding:
    """Passed."""
    return CheckFinding(level=Severity.OK, place=place, check=check, what=what)


def warning(place: str, check: str, what: str, fix: str) -> CheckFinding:
    """Make a finding that does not stop runs."""
    return CheckFinding(level=Severity.WARNING, place=place, check=check, what=what, fix=fix)


def problem(place: str, check: str, what: str, fix: str) -> CheckFinding:
    """Make a finding that makes runs fail."""
    return CheckFinding(level=Severity.PROBLEM, place=place, check=check, what=what, fix=fix)


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
    machine: str | None = Field(default=None, exclude_if=is_none)
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
    machine: str | None = Field(default=None, exclude_if=is_none)
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


class Limit(StrEnum):
    """The exhausted resource of a cell that does not fit."""

    KIND = "kind"
    """The testbed has no driver for such an NF."""
    TRAFFIC = "traffic"
    """The generator sends nothing that the NFs take."""
    ADDRESSES = "addresses"
    LINKS = "links"
    """A lab has fewer cables than the cell has instances."""
    DISCRIMINATOR = "discriminator"
    """Drivers cannot keep instances apart as the topology says."""
    SMT = "smt"
    CORES = "cores"
    CACHE = "cache"
    """Ways of the last-level cache."""
    MEMORY = "memory"
    HUGEPAGES = "hugepages"


class Reason(Frozen):
    """One limit that a cell goes past."""

    limit: Limit
    text: str
    """A sentence part with its numbers: `needs 33 cores on NUMA 0, 28 available`."""
    needs: int | None = None
    """Cores, or MB; None where the limit is no number."""
    there: int | None = None


def sentence(reasons: Sequence[Reason]) -> str | None:
    """All reasons in one text; None for none."""
    return "; ".join(reason.text for reason in reasons) or None
