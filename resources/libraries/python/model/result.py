"""The record of one test: what was asked, on what, every trial, the answer and why to trust it."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.cell import Cell, Frame, TestType
from resources.libraries.python.model.evidence import Itemized, Located
from resources.libraries.python.model.goal import GoalResult, LoadEstimate, SearchProfile, SearchRecord
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.topology import World
from resources.libraries.python.model.trial import FlowLatency, TrialResult

SCHEMA_VERSION = "2.0"
"""Minor: a key was added. Major: a key changed its meaning or went away."""
SchemaVersion = Literal["1.0", "1.1", "1.2", "1.3", "2.0"]
"""All that this version reads. What 1.x calls `mrr` is `orr` where its load had been lowered, see `was_lowered`."""
_NOT_LOWERED = 2.0


class Asked(Frozen):
    """The choice of the experiment."""

    test_type: TestType
    cell: Cell
    frame: Frame
    profile: SearchProfile
    repetition: int = Field(default=0, exclude_if=lambda repetition: not repetition)
    """Of the same measurement, from 0: simulated ones differ by their noise."""


class VerdictKind(StrEnum):
    """The one-word answer to: may I trust this number, and what limits it?"""

    MEASURED = "measured"
    """Nothing suspicious was seen; what limits the rate is not determined."""
    GENERATOR_BOUND = "generator-bound"
    """The highest load that could be offered still met the goal, or the generator could not offer the load."""
    OVERSUBSCRIBED = "oversubscribed"
    """Data threads shared cores: good for trying things out, not a density figure."""
    BELOW_RANGE = "below-range"
    """No load was low enough for the goal."""
    INCOMPLETE = "incomplete"
    """The search ended before its bounds were close enough."""
    NO_TRAFFIC = "no-traffic"
    """Packets of an instance and direction did not arrive; the evidence names the last hop that saw them."""
    VSWITCH_BOUND = "vswitch-bound"
    """The vSwitch drops what the NFs do not get to see, or its data threads have no time left."""
    NF_BOUND = "nf-bound"
    """An NF drops what the vSwitch delivered, or its data threads have no time left; the evidence names it."""
    UNSTABLE = "unstable"
    """Repeated trials at one load disagree, or NDR is far below PDR: the system runs in two bands."""
    EMULATED = "emulated"
    """Virtual machines ran in software emulation (TCG): good for trying things out, not a density figure."""
    AFFINITY_LOST = "affinity-lost"
    """A data thread may run elsewhere than planned."""
    QUARANTINED = "quarantined"
    """The cell broke the system under test in every attempt; its other tests are left out."""
    FAILED = "failed"
    """The test ended with an error."""


class Finding(Frozen):
    """One thing that was found out about a test, in a sentence with numbers."""

    kind: VerdictKind
    text: str
    numbers: tuple[str, ...] = ()
    """What it is about: NDR, PDR, SOAK, MRR, ORR, LATENCY. Empty: all numbers of the test."""

    def about(self, number: str) -> bool:
        """Whether it is about that number."""
        return not self.numbers or number in self.numbers


class Verdict(Frozen):
    """A verdict never comes without its evidence."""

    kinds: tuple[VerdictKind, ...]
    """Most important first, never empty."""
    evidence: tuple[str, ...]
    """Sentences with numbers, one per line."""
    findings: tuple[Finding, ...] = ()
    """The same with its kind and the numbers it is about; empty in records before this key."""

    def of(self, number: str) -> tuple[VerdictKind, ...]:
        """Kinds that are about one number, most important first, never empty. Old records do not tell them apart."""
        if not self.findings:
            return self.kinds
        found = {finding.kind for finding in self.findings if finding.about(number)}
        return tuple(kind for kind in self.kinds if kind in found) or (VerdictKind.MEASURED,)

    def evidence_of(self, number: str) -> tuple[str, ...]:
        """Sentences about one number."""
        if not self.findings:
            return self.evidence
        return tuple(finding.text for finding in self.findings if finding.about(number))


class ReceiveRate(Frozen):
    """What comes back at a load beyond the limit, whatever is lost."""

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
    soak rate."""
    load_pps: float
    flows: tuple[FlowLatency, ...]


class Environment(Frozen):
    """Where it was measured: what to look at when two results differ."""

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
    """What decides how threads and packets are scheduled, as it was during the run, by path."""
    git_revision: str | None
    git_dirty: bool | None
    nodes: dict[str, "Environment"] = Field(default_factory=dict)
    """Of a lab: the other machines that took part, by node; what is above is of the (first) DUT."""


class Affinity(Frozen):
    """Planned and real placement of the data thread that polls a receive queue."""

    owner: str
    interface: str
    queue: int = Field(default=0, exclude_if=lambda queue: not queue)
    """Counts from 0 within the interface."""
    planned_cpu: int
    actual_cpus: tuple[int, ...]
    """Empty when the thread could not be found."""

    @property
    def name(self) -> str:
        """Of the receive queue, as the plan has it."""
        return f"{self.interface} queue {self.queue}" if self.queue else self.interface


class DeploymentTimes(Frozen):
    """How long the cell took to come and go, in seconds."""

    deploy_s: float
    remove_s: float | None = None


class Rerun(Frozen):
    """What it takes, beside the cell and frame that were asked for, to run a test again."""

    suite: str
    """Robot's file of the test; relative to the project where it is part of it."""
    topology: str
    """The testbed's file; relative to the project where it is part of it."""
    topology_digest: str
    """SHA-256 of what that file said. It holds no secrets."""
    variables: dict[str, str]
    """Name to value of the run's variables that choose cells, frames and search, defaults included."""


def _is_none(value: object) -> bool:
    """Left out of the JSON of older records, so that their digests stay what they were."""
    return value is None


class Result(Frozen):
    """One test. `simulated` is true for everything that did not come from real packets."""

    schema_version: SchemaVersion = "2.0"
    test_id: str
    """Robot's long name of the test."""
    test_name: str
    tags: tuple[str, ...]
    started_at: str
    finished_at: str
    """UTC, ISO 8601."""
    passed: bool
    message: str
    """Why the test did not pass; empty otherwise."""
    world: World
    simulated: bool
    testbed: str
    asked: Asked
    plan: Plan | None
    """None when planning itself failed."""
    plan_digest: str | None
    """SHA-256 of the plan's canonical JSON."""
    environment: Environment
    drivers: dict[str, str]
    """Role to driver name."""
    simulation: dict[str, Any] | None = None
    """Parameters of the simulated system."""
    facts: dict[str, dict[str, str]] = Field(default_factory=dict)
    """What was found out about the parts while they ran, by role: versions, accelerator, how frames were sent."""
    trials: tuple[TrialResult, ...]
    ndr: GoalResult | None = None
    pdr: GoalResult | None = None
    soak: GoalResult | None = None
    """The load that keeps a small loss ratio over minutes."""
    plr: LoadEstimate | None = Field(default=None, exclude_if=_is_none)
    """The load of a mean loss ratio, estimated by PLRsearch."""
    search: SearchRecord | None = None
    """How the throughput search went about it; None in records before this key."""
    mrr: ReceiveRate | None = None
    """Maximum receive rate: at line rate, or at the most that the generator can send."""
    orr: ReceiveRate | None = Field(default=None, exclude_if=_is_none)
    """Overload receive rate: at the load where a search begins, at most four times the best that was seen to come back.
    None where that is the load of MRR."""
    latency: tuple[LatencyAtLoad, ...] = ()
    affinity: tuple[Affinity, ...] = ()
    itemized: tuple[Itemized, ...] = ()
    """Throughput figures per instance and direction."""
    located: Located | None = None
    """Where packets were lost beyond the limit."""
    deployment: DeploymentTimes | None = None
    broken: tuple[str, ...] = ()
    """Attempts of this test that broke the system under test, as the reason of each; the record is of the last one."""
    quarantined: str | None = None
    """Why no test of this cell is run any more."""
    verdict: Verdict
    rerun: Rerun | None = Field(default=None, exclude_if=_is_none)
    """None in records before this key."""

    @model_validator(mode="after")
    def _renamed_rates(self) -> "Result":
        return self.rates_by_their_name()

    def rates_by_their_name(self) -> "Result":
        """What an older record calls MRR, under what it was."""
        found = self.mrr
        older = found is not None and was_lowered(
            self.schema_version, found.offered_pps, found.mean_pps, simulated=self.simulated
        )
        if not older:
            return self
        verdict = self.verdict.model_copy(update={"findings": tuple(map(_renamed, self.verdict.findings))})
        items = tuple(
            item.model_copy(update={"number": "ORR"}) if item.number == "MRR" else item for item in self.itemized
        )
        return self.model_copy(update={"mrr": None, "orr": found, "itemized": items, "verdict": verdict})

    @property
    def cell(self) -> Cell:
        """The cell that was asked for."""
        return self.asked.cell


def was_lowered(version: str, offered_pps: float, mean_pps: float, *, simulated: bool) -> bool:
    """Whether the load of a record's `mrr` had been lowered, as versions 1.x did with real packets.

    They offered at most four times the best that had come back. Where less than twice of what came back was offered,
    that limit was not reached, and the load was the most that the generator could send.
    """
    return version.startswith("1.") and not simulated and offered_pps >= _NOT_LOWERED * mean_pps


def _renamed(finding: Finding) -> Finding:
    numbers = tuple("ORR" if number == "MRR" else number for number in finding.numbers)
    return finding.model_copy(update={"numbers": numbers})


def l2_bps(rate_pps: float, frame: Frame) -> float:
    """L2 bandwidth, FCS included, of a packet rate."""
    return rate_pps * frame.mean_bytes * 8


def l1_bps(rate_pps: float, frame: Frame) -> float:
    """L1 bandwidth of a packet rate: L2 plus preamble, start delimiter and interframe gap (20 bytes)."""
    return rate_pps * (frame.mean_bytes + 20) * 8
