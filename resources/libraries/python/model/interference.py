"""What network functions on one server do to each other (Zeng et al.)."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.cell import Frame, misfit
from resources.libraries.python.model.chains import VnfName
from resources.libraries.python.model.function import Program
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nf_size import NfSize


class NfType(StrEnum):
    """Network functions by what they do to a packet (R reads, W writes)."""

    GATEWAY = "I"
    """IP addresses R."""
    MONITOR = "II"
    """IP addresses and ports R: firewall, flow monitor."""
    INSPECTION = "III"
    """Addresses, ports and payload R: intrusion detection, deep packet inspection, cache."""
    BALANCER = "IV"
    """IP addresses R/W: load balancer, proxy."""
    NAT = "V"
    """Addresses and ports R/W."""
    TRANSFORMATION = "VI"
    """All R/W: VPN, compression, encryption."""


class Contender(Frozen):
    """A network function of the study."""

    name: VnfName
    type: NfType
    kind: NfKind
    stand_in: NfKind | None = Field(default=None, exclude_if=lambda kind: kind is None)
    """What takes its place on a testbed where its kind, or its program, is not installed."""
    stand_in_for: str | None = None
    """What it takes the place of, where that is not installed."""
    program: Program | None = Field(default=None, exclude_if=lambda program: program is None)
    """Of kind `process` only: the user's own."""

    @model_validator(mode="after")
    def _program_fits(self) -> Self:
        if reason := misfit(self.kind, self.program) or misfit(self.stand_in, None):
            raise ValueError(f"{self.name}: {reason}")
        return self

    def replaced(self) -> Self:
        """Its stand-in, which says so; it has one."""
        original = self.program.start[0] if self.program else self.kind
        changes = {"kind": self.stand_in, "stand_in": None, "stand_in_for": f"{original}", "program": None}
        return self.model_copy(update=changes)


class InterferenceSpec(Frozen):
    """All that a study of interference is asked."""

    name: str
    contenders: Annotated[tuple[Contender, ...], Field(min_length=1)]
    size: NfSize = NfSize.ONE
    """Of each: they are compared on equal terms."""
    frame: Frame
    load_pps: Annotated[float, Field(gt=0)] | None = None
    """Offered to each network function, one way; None for more than the fastest carries alone."""
    duration_s: Annotated[float, Field(gt=0)] = 1.0
    repetitions: Annotated[int, Field(ge=1)] = 10
    together: Annotated[int, Field(ge=2)] = 2
    """So many at once at most: 2 for pairs."""
    guarantee: bool = False
    """Measure all once more with an equal share of the network I/O guaranteed to each."""
    seed: int = 1
    """Of the order of measurements, which are interleaved against drift."""

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        names = [one.name for one in self.contenders]
        if doubled := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"network functions named {', '.join(sorted(doubled))} more than once")
        return self


class Meeting(Frozen):
    """One measurement of one network function, alone or beside others."""

    target: str
    against: tuple[str, ...]
    """Those beside it, its own name where it met another of its kind; empty when it was alone."""
    repetition: int
    turn: int
    """Its place in the order of all measurements, from 0."""
    load_pps: float
    frame: str
    guaranteed: bool
    throughput_pps: float
    """What it processed, one way: forwarded, or for a monitor what it has looked at."""
    loss_ratio: float | None
    response_s: float | None
    """Mean, there and through; None where it was not measured."""
    cpu: float | None
    """CPUs used, 1.0 for one."""
    memory_bytes: int | None
    cache_misses: int | None
    """None where the machine has no counters for it."""


class Normalized(Frozen):
    """Throughput beside others over throughput alone: 1.0 is no interference."""

    target: str
    against: tuple[str, ...]
    mean: float
    stdev: float | None
    low: float | None
    high: float | None
    """Confidence interval, 95 %; None with one repetition."""
    samples: int


class Placement(Frozen):
    """Which network functions share a server."""

    servers: tuple[tuple[str, ...], ...]
    capacity: float
    """Sum of normalized throughputs."""


class Advice(Frozen):
    """Where one more network function is put best, or how all are placed best."""

    sentence: str
    best: Placement
    others: tuple[Placement, ...]
    """Worse ones, best first."""


class Interference(Frozen):
    """Part of a record: network functions that met each other."""

    spec: InterferenceSpec
    meetings: tuple[Meeting, ...]
    matrix: tuple[Normalized, ...]
    guaranteed: tuple[Normalized, ...] = ()
    """The same with guaranteed network I/O."""
    sensitivity: dict[str, float] = Field(default_factory=dict)
    """Row mean by target: low is sensitive."""
    aggressiveness: dict[str, float] = Field(default_factory=dict)
    """Column mean by competitor: low is aggressive."""
    network_share: float | None = None
    """Share of the degradation that comes from network I/O; None where it was not asked or nothing degraded."""
    advice: tuple[Advice, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be measured, and why; which NF is a stand-in."""
