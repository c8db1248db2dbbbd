"""Parts of a record: what was asked, where it was measured, rates, latency, and the verdict."""

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Self, TypeVar

from pydantic import Field

from resources.libraries.python.model.base import Frozen, is_empty, is_none
from resources.libraries.python.model.measurements.trial import FlowLatency, FlowLosses
from resources.libraries.python.model.request.cell import Cell, Frame, TestType
from resources.libraries.python.model.request.goal import SearchProfile


class MeasurementRequest(Frozen):
    """What a test of a cell is to measure."""

    test_type: TestType
    cell: Cell
    frame: Frame
    profile: SearchProfile
    repetition: int = Field(default=0, exclude_if=is_empty)
    """Number of the repetition, from 0: simulated ones differ by their noise."""
    generator: str | None = Field(default=None, exclude_if=is_none)
    """Driver of the generator where that is not the testbed's: a peer that opens connections."""


class VerdictKind(StrEnum):
    """The one-word answer to: may I trust this number, and what limits it?"""

    meaning: str

    def __new__(cls, word: str, meaning: str) -> Self:
        """Return a word with what it means."""
        member = str.__new__(cls, word)
        member._value_, member.meaning = word, meaning
        return member

    MEASURED = "measured", "Nothing suspicious was seen; what limits the rate is not determined."
    GENERATOR_BOUND = (
        "generator-bound",
        "The highest load that could be offered still met the goal, or the generator could not offer the load.",
    )
    OVERSUBSCRIBED = "oversubscribed", "Data threads shared cores: good for trying things out, not a density figure."
    BELOW_RANGE = "below-range", "No load was low enough for the goal."
    INCOMPLETE = "incomplete", "The search ended before its bounds were close enough."
    NO_TRAFFIC = (
        "no-traffic",
        "Packets of an instance and direction did not arrive; the evidence names the last hop that saw them.",
    )
    VSWITCH_BOUND = (
        "vswitch-bound",
        "The vSwitch drops what the NFs do not get to see, or its data threads have no time left.",
    )
    NF_BOUND = (
        "nf-bound",
        "An NF drops what the vSwitch delivered, or its data threads have no time left; the evidence names it.",
    )
    HOST_NOISE = (
        "host-noise",
        "Interruptions of the data CPUs, as observed when idle, explain the losses above the rate: the host limits it.",
    )
    UNQUALIFIED = (
        "unqualified",
        "Beyond what the generator can do by itself, as measured with its ports joined to each other: the result may "
        "be about the generator.",
    )
    DECAYING = (
        "decaying",
        "A repeated load was forwarded less each time, which ended the search: its bounds hold for a moment only.",
    )
    UNSTABLE = (
        "unstable",
        "Repeated trials at one load disagree, or NDR is far below PDR: the system runs in two bands.",
    )
    EMULATED = (
        "emulated",
        "Virtual machines ran in software emulation (TCG): good for trying things out, not a density figure.",
    )
    AFFINITY_LOST = "affinity-lost", "A data thread may run elsewhere than planned."
    QUARANTINED = "quarantined", "The cell broke the system under test in every attempt; its other tests are left out."
    SKIPPED = "skipped", "The testbed lacks what the test needs: nothing was measured."
    FAILED = "failed", "The test ended with an error."


class Finding(Frozen):
    """One thing that was found out about a test, in a sentence with numbers."""

    kind: VerdictKind
    text: str
    numbers: tuple[str, ...] = ()
    """Its subject: NDR, PDR, SOAK, MRR, ORR, LATENCY. Empty: all numbers of the test."""

    def about(self, number: str) -> bool:
        """Whether it is about that number."""
        return not self.numbers or number in self.numbers


KindT = TypeVar("KindT", bound=str)


def distinct(kinds: Iterable[KindT]) -> tuple[KindT, ...]:
    """Return kinds of verdicts, each once; `measured` only where it is the only one."""
    found = tuple(dict.fromkeys(kinds))
    return tuple(kind for kind in found if kind != VerdictKind.MEASURED) or found


class Verdict(Frozen):
    """A verdict never comes without its evidence."""

    findings: Annotated[tuple[Finding, ...], Field(min_length=1)]
    """Most important first."""

    @property
    def kinds(self) -> tuple[VerdictKind, ...]:
        """Most important first, never empty."""
        return distinct(finding.kind for finding in self.findings)

    @property
    def evidence(self) -> tuple[str, ...]:
        """Sentences with numbers, one per line."""
        return tuple(dict.fromkeys(finding.text for finding in self.findings))

    def of(self, number: str) -> tuple[VerdictKind, ...]:
        """Return the kinds of one figure, most important first, never empty."""
        found = {finding.kind for finding in self.findings if finding.about(number)}
        return tuple(kind for kind in self.kinds if kind in found) or (VerdictKind.MEASURED,)

    def evidence_of(self, number: str) -> tuple[str, ...]:
        """Sentences about one number."""
        return tuple(finding.text for finding in self.findings if finding.about(number))


class ReceiveRate(Frozen):
    """Receive rate at a load beyond the limit, at any loss."""

    offered_pps: float
    """Mean over the trials of what was really offered, aggregate."""
    receive_rates_pps: tuple[float, ...]
    """One per trial, aggregate of all instances and both directions."""
    mean_pps: float
    stdev_pps: float | None
    """Sample standard deviation; None for a single trial."""


class LatencyAtLoad(Frozen):
    """Latency at one load, itemized by instance and direction."""

    label: str
    """`PDR0`, `PDR10`, `PDR50`, `PDR90`: percent of PDR; 0 sends probe frames only. `SOAK90` and so on: percent of the
    soak rate. `RATE`: a rate that was asked for."""
    load_pps: float
    flows: tuple[FlowLatency, ...]


class AtRate(Frozen):
    """Trials at a rate that was asked for, of every instance."""

    load_pps: float
    """Aggregate: that rate times the service instances."""
    sustained: dict[str, bool]
    """By goal, whether all instances together, and each in either direction, lost no more than it allows. A goal that
    the trials do not decide is left out."""
    trials: int
    note: str = ""
    """Why a goal is not decided."""
    text: str
    """All of it in a sentence."""


class LossesAtLoad(Frozen):
    """Losses, duplicates and reordering at one load, by instance and direction."""

    label: str
    """`NDR`, `PDR` or `OVERLOAD`."""
    load_pps: float
    flows: tuple[FlowLosses, ...]
    lost_at: dict[str, int] = Field(default_factory=dict)
    """Packets lost by owner of the hop, most first, where the counters of hops locate them."""
    remarks: tuple[str, ...] = ()
    """Why the losses may not be those of the system under test at this load."""


class BackToBack(Frozen):
    """The longest bursts of which no frame was lost (RFC 9004)."""

    offered_pps: float
    """Mean rate at which they were sent, aggregate of all flows."""
    flows: int
    """Instances times directions; each got a burst."""
    frames: tuple[int, ...]
    """Frames of a flow's longest burst, in each repetition."""
    mean_frames: float
    stdev_frames: float | None
    """Sample standard deviation; None for a single repetition."""
    endless: bool
    """A burst of 2 s, the longest that is tried, lost nothing in some repetition."""
    implied_buffer_s: float
    """Mean burst over the rate at which it was sent."""
    corrected_buffer_s: float
    """The same without what is forwarded meanwhile at NDR."""
    trials: int
    """Bursts sent in all repetitions."""


class Environment(Frozen):
    """Testbed on which it was measured: what to look at when two results differ."""

    hostname: str
    cpu_model: str
    microcode: str | None
    cpus_online: int
    memory_bytes: int | None
    kernel: str
    command_line: str | None
    distribution: str | None
    virtualization: str | None
    python: str
    versions: dict[str, str]
    """Packages and programs that took part."""
    settings: dict[str, str] = Field(default_factory=dict)
    """Facts by which equal machines differ: settings of the kernel by path, of the machine and its ports by name."""
    git_revision: str | None
    git_dirty: bool | None
    program_version: str | None = Field(default=None, exclude_if=is_none)
    """Version of this project."""
    nodes: dict[str, "Environment"] = Field(default_factory=dict)
    """Nodes of a lab: the other machines that took part, by node; what is above is of the (first) DUT."""

    @property
    def digest(self) -> str:
        """The same for equal environments."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    @property
    def revision(self) -> str | None:
        """Short git revision, with a `+` where there were uncommitted changes."""
        return None if self.git_revision is None else self.git_revision[:12] + ("+" if self.git_dirty else "")


class Affinity(Frozen):
    """Planned and real placement of the data thread that polls a receive queue."""

    owner: str
    interface: str
    queue: int = Field(default=0, exclude_if=is_empty)
    """Counts from 0 within the interface."""
    planned_cpu: int
    actual_cpus: tuple[int, ...]
    """Empty when the thread could not be found."""

    @property
    def name(self) -> str:
        """Name of the receive queue, as the plan has it."""
        return f"{self.interface} queue {self.queue}" if self.queue else self.interface


class DeploymentTimes(Frozen):
    """Time to deploy and remove the cell, in seconds."""

    deploy_s: float
    remove_s: float | None = None


class Rerun(Frozen):
    """Everything required to repeat a test, besides the requested cell and frame."""

    suite: str
    """Robot's file of the test; relative to the project where it is part of it."""
    topology: str
    """The testbed's file; relative to the project where it is part of it."""
    topology_digest: str
    """SHA-256 of what that file said. It holds no secrets."""
    variables: dict[str, str]
    """Name to value of the run's variables that choose cells, frames and search, defaults included."""


def l2_bps(rate_pps: float, frame: Frame) -> float:
    """L2 bandwidth, FCS included, of a packet rate."""
    return rate_pps * frame.mean_bytes * 8


def l1_bps(rate_pps: float, frame: Frame) -> float:
    """L1 bandwidth of a packet rate: L2 plus preamble, start delimiter and interframe gap (20 bytes)."""
    return rate_pps * (frame.mean_bytes + 20) * 8
