"""A sweep: one service under a row of loads, second by second.

The parameters are those of Algorithm 1 of "Performance Characterization and Profiling of Chained CPU-bound Virtual
Network Functions" (Troia et al.). Traffic goes both ways, the same in each; every rate here is of one way.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen, at_most
from resources.libraries.python.model.bounds import LONGEST_LOAD_S
from resources.libraries.python.model.record import PACKED, Record
from resources.libraries.python.model.request.cell import Cell, Frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Departures, Protocol
from resources.libraries.python.studies.sweep.model.profile import Prediction, Profile, SmtGain

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Rates(Frozen):
    """Loads from `start_pps` to `stop_pps`, both included, one after the other; packets per second of each flow."""

    start_pps: Positive
    stop_pps: Positive
    step_pps: Positive

    @model_validator(mode="after")
    def _upward(self) -> Self:
        if self.stop_pps < self.start_pps:
            raise ValueError(f"rates go up to {self.stop_pps:g} pps, but start at {self.start_pps:g} pps")
        return self

    def each(self) -> tuple[float, ...]:
        """All loads, lowest first."""
        count = int((self.stop_pps - self.start_pps) / self.step_pps + 1e-9) + 1
        return tuple(self.start_pps + index * self.step_pps for index in range(count))


class Bursts(Frozen):
    """One load that comes and goes."""

    rate_pps: Positive
    """Rate of each flow, while it is on."""
    on_s: Annotated[int, Field(ge=1), at_most(LONGEST_LOAD_S)]
    off_s: Annotated[int, Field(ge=1), at_most(LONGEST_LOAD_S)]
    """The duty cycle, whole seconds: samples are one second long."""


class SweepSpec(Frozen):
    """Traffic and its duration. Exactly one of `rates` and `bursts` is given."""

    rates: Rates | None = None
    bursts: Bursts | None = None
    duration_s: Annotated[int, Field(ge=1)] = 30
    """Duration of each load; of all bursts together."""
    flows: Annotated[int, Field(ge=1, le=1000)] = 1
    protocol: Protocol = Protocol.UDP
    departures: Departures = Field(
        default=Departures.CONSTANT, exclude_if=lambda departures: departures is Departures.CONSTANT
    )
    frame: Frame
    tolerance: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """A point whose real input rate is further off than this share of what was asked is flagged."""

    @model_validator(mode="after")
    def _one_pattern(self) -> Self:
        if (self.rates is None) == (self.bursts is None):
            raise ValueError("a sweep has either rates (constant loads) or bursts, and one of them")
        return self


class Vnf(Frozen):
    """A network function of the service under test."""

    name: str
    kind: NfKind
    vcpus: int
    """Data threads, each with a logical CPU."""
    shares_cpus_with: tuple[str, ...] = ()
    """Others of the plan with a data thread on one of its CPUs."""


MIB = 2**20
"""Bytes in a MiB."""
CpuUse = Mapping[str, tuple[float, ...]]
"""By VNF: the share of a second that each of its data threads ran, in [0, 1]. Their sum times 100 is percent of a
vCPU, as `top` shows it."""


def _is_empty(value: object) -> bool:
    """Omitted in JSON if unknown."""
    return not value


def _is_none(value: object) -> bool:
    """The same of a number."""
    return value is None


class SweepSample(Frozen):
    """One second of a load: a row of S_allsamples."""

    rate_pps: float
    """Asked, of each flow."""
    second: int
    """From the beginning of this load, counting from 0."""
    input_pps: float
    """Offered, as the sender counted it."""
    output_pps: float
    """Arrived."""
    loss_ratio: float | None
    """In [0, 1]; None where nothing was offered."""
    delay_s: float | None
    """Mean one-way delay; None where it was not measured."""
    cpu: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """See CpuUse."""
    busy: dict[str, tuple[float, ...]] = Field(default_factory=dict, exclude_if=_is_empty)
    """As `cpu`, with the time in which a data thread had work and another owner's thread had the CPU. At 1.0 it cannot
    do more, however little it runs. Empty if unknown."""
    memory_mib: dict[str, float] = Field(default_factory=dict, exclude_if=_is_empty)
    """Memory in use at the end of the second, by VNF: that of its control group, else the resident memory of its
    processes. Of those in the kernel it is unknown."""
    available_mib: float | None = Field(default=None, exclude_if=_is_none)
    """Memory that its node can still give to programs; in a lab the least of all DUTs. None if unknown."""


class SweepPoint(Frozen):
    """One load, means over its seconds: a row of S_statistics."""

    rate_pps: float
    """Asked, of each flow."""
    samples: int
    input_pps: float
    sender_pps: float | None
    """The input rate once more, from the sender's network interface; None where it cannot be read."""
    output_pps: float
    input_bps: float
    output_bps: float
    """L2 bits, FCS included."""
    loss_ratio: float | None
    delay_s: float | None
    cpu: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """See CpuUse."""
    busy: dict[str, tuple[float, ...]] = Field(default_factory=dict, exclude_if=_is_empty)
    """As of SweepSample."""
    memory_mib: dict[str, float] = Field(default_factory=dict, exclude_if=_is_empty)
    """As of SweepSample."""
    available_mib: float | None = Field(default=None, exclude_if=_is_none)
    """As of SweepSample."""
    flagged: str | None = None
    """Reason why this point differs from the requested load; None where it is."""

    def used(self, vnf: str) -> float | None:
        """Return the CPUs that a VNF used, 1.0 for one; None if unknown."""
        return sum(self.cpu[vnf]) if vnf in self.cpu else None


class Sweep(Frozen):
    """A service under a row of loads."""

    name: str
    """Name of the service in messages: `firewall`, `router-firewall`."""
    cell: Cell
    spec: SweepSpec
    vnfs: tuple[Vnf, ...]
    samples: tuple[SweepSample, ...]
    points: tuple[SweepPoint, ...] = ()
    """By rising load; none of bursts."""


class SweepRecord(Record):
    """A sweep: constant loads with a profile, bursts, or a chain with predictions."""

    study: Literal["sweep"] = "sweep"
    pattern: Literal["sweep", "bursts", "chain"]
    """`sweep` has a profile, `chain` also predictions from profiles of its parts."""
    sweep: Annotated[Sweep | None, PACKED] = None
    profile: Profile | None = None
    predictions: tuple[Prediction, ...] = ()
    smt_off: bool = Field(default=False, exclude_if=_is_empty)
    """Whether SMT, which is on otherwise, was switched off for it."""
    smt_gains: tuple[SmtGain, ...] = Field(default=(), exclude_if=_is_empty)
    """Comparison with the same sweep with SMT on; of quantities that both have."""

    @property
    def kind(self) -> str:
        """Pattern of the loads, or a chain."""
        return self.pattern
