"""A sweep: one service under a row of loads, second by second; and its profile, functions of the input rate.

The parameters are those of Algorithm 1 of "Performance Characterization and Profiling of Chained CPU-bound Virtual
Network Functions" (Troia et al.). Traffic goes both ways, the same in each; every rate here is of one way.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen, at_most, is_empty, is_none
from resources.libraries.python.model.bounds import LONGEST_LOAD_S
from resources.libraries.python.model.record import PACKED, Record
from resources.libraries.python.model.request.cell import Cell, Frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Departures, Protocol

GIGA = 1e9
"""Bits per second in a Gbit/s."""


class ProfileMetric(StrEnum):
    """Metrics that a profile describes as functions of the input rate r in Gbit/s (one way, L2 bits with FCS)."""

    THROUGHPUT = "throughput"
    """Gbit/s, one way, L2 bits with FCS."""
    DELAY = "delay"
    """Milliseconds, one way."""
    LOSS = "loss"
    """Percent."""


class Fit(Frozen):
    """A function that was fitted to the points of a region."""

    function: str
    """Its name in the catalogue of curves."""
    formula: str
    """Such as `a*exp(b*r)`."""
    coefficients: dict[str, float]
    standard_error: float
    """Square root of the sum of squared residuals over the degrees of freedom, in the metric's unit."""
    relative_error: float | None
    """Mean of |fitted - measured| / |measured| over points that are not zero; None where all are."""
    points: int
    first_rate: float
    last_rate: float
    """Gbit/s: where the points are; beyond them the function is a guess."""
    covariance: tuple[tuple[float, ...], ...] = Field(default=(), exclude_if=is_empty)
    """Of the coefficients, in their order, from the scatter of the points; empty where it is unknown."""
    rival: "Fit | None" = Field(default=None, exclude_if=is_none)
    """Another function that few points do not exclude: values and their intervals are means over both."""
    rival_weight: float = Field(default=0.0, exclude_if=is_empty)
    """Akaike weight of the rival, that of both being 1."""


class MetricProfile(Frozen):
    """One metric; a region with too few points has no function."""

    metric: ProfileMetric
    nonsat: Fit | None
    """Below the break-point, or the lower one of two."""
    sat: Fit | None
    """From the break-point on, or from the upper one of two."""
    between: Fit | None = Field(default=None, exclude_if=is_none)
    """Between two break-points."""


class Indicator(StrEnum):
    """Figure that shows a break-point."""

    CPU = "CPU"
    MEMORY = "memory"
    THROUGHPUT = "throughput"
    LOSS = "loss"


class BreakPoint(Frozen):
    """Load at which a service saturates, or changes its behaviour."""

    rate: float
    """Gbit/s, where the fitted lines bend."""
    low: float | None = Field(default=None, exclude_if=is_none)
    """Gbit/s: lower end of the 95 % interval; None where it is unknown."""
    high: float | None = Field(default=None, exclude_if=is_none)
    """Gbit/s: its upper end."""
    measured_rate: float | None = Field(default=None, exclude_if=is_none)
    """Gbit/s: the lowest measured rate at which the indicator is at its maximum, which is the break-point of Troia et
    al.; None where only the fitted lines are known."""
    indicator: Indicator = Field(default=Indicator.CPU, exclude_if=lambda indicator: indicator is Indicator.CPU)
    vnf: str | None
    """The VNF whose CPUs or memory it is; None for throughput and loss, which are of the service."""
    cpus_used: float | None
    """At `measured_rate`; 1.0 is one CPU. None where it is not shown by a CPU."""
    cpus_there: int | None
    reason: str
    """In a sentence: all of its CPUs are used, or it uses no more although there are more."""

    @property
    def width(self) -> float | None:
        """Width of the interval relative to the rate; None where it is unknown."""
        return None if self.low is None or self.high is None else (self.high - self.low) / self.rate

    @property
    def is_upper_bound(self) -> bool:
        """Whether the service saturates at the rate or below: the lowest load did already."""
        return self.low is None and self.high is not None


class SmtEstimate(Frozen):
    """A value with its 95 % interval, whose ends are None where they are unknown."""

    value: float
    low: float | None = None
    high: float | None = None


class SmtGain(Frozen):
    """A quantity with SMT on and with SMT off."""

    quantity: Literal["break-point", "saturated throughput"]
    """In Gbit/s, one way, L2 bits with FCS. Throughput is that of the fitted function at the first saturated load."""
    smt_on: SmtEstimate
    smt_off: SmtEstimate
    gain: SmtEstimate
    """What SMT adds, relative to the value without."""


class Profile(Frozen):
    """A service as functions of its input rate."""

    name: str
    break_point: BreakPoint | None
    """None where no load saturated it: then all of the profile is of the region below."""
    second: BreakPoint | None = Field(default=None, exclude_if=is_none)
    """Another load, above or below, at which functions change."""
    metrics: tuple[MetricProfile, ...]
    notes: tuple[str, ...] = ()
    """Sentences: what could not be fitted, points that were left out, where functions contradict each other."""

    @property
    def break_points(self) -> tuple[BreakPoint, ...]:
        """None, one or two of them, by rising rate."""
        return tuple(sorted(filter(None, (self.break_point, self.second)), key=lambda each: each.rate))

    def of(self, metric: ProfileMetric) -> MetricProfile | None:
        """One metric; None where nothing is known of it."""
        return next((row for row in self.metrics if row.metric is metric), None)


class PredictedPoint(Frozen):
    """A chain at one input rate: what its parts let expect, and what was measured. Units as in ProfileMetric."""

    rate: float
    predicted: dict[ProfileMetric, float]
    measured: dict[ProfileMetric, float]
    summed_delay: float | None = Field(default=None, exclude_if=is_none)
    """Beside a delay that counts the path once: the plain sum of the parts' delays, each with a path of its own."""


class Prediction(Frozen):
    """A chain predicted from the profiles of its VNFs alone, and how wrong that was."""

    chain: str
    parts: tuple[str, ...]
    """Names of the profiles, in the order of the chain."""
    model: Literal["hungriest", "shared_cpus"]
    """`hungriest`: throughput and loss of the VNF that saturates first (Troia et al.).
    `shared_cpus`: as that, with VNFs that share a CPU taken as one whose time per packet is the sum of theirs."""
    points: tuple[PredictedPoint, ...]
    errors: dict[ProfileMetric, float]
    """Mean absolute error relative to the measured value; for loss in percentage points. Points that cannot be compared
    are left out."""
    path: str | None = Field(default=None, exclude_if=is_none)
    """The service without VNFs whose delay was counted once; None where none was measured, so that the delay is the
    plain sum of the parts' delays."""
    summed_delay_error: float | None = Field(default=None, exclude_if=is_none)
    """Error of `PredictedPoint.summed_delay`, as in `errors`."""
    notes: tuple[str, ...] = ()


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
    busy: dict[str, tuple[float, ...]] = Field(default_factory=dict, exclude_if=is_empty)
    """As `cpu`, with the time in which a data thread had work and another owner's thread had the CPU. At 1.0 it cannot
    do more, however little it runs. Empty if unknown."""
    memory_mib: dict[str, float] = Field(default_factory=dict, exclude_if=is_empty)
    """Memory in use at the end of the second, by VNF: that of its control group, else the resident memory of its
    processes. Of those in the kernel it is unknown."""
    available_mib: float | None = Field(default=None, exclude_if=is_none)
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
    busy: dict[str, tuple[float, ...]] = Field(default_factory=dict, exclude_if=is_empty)
    """As of SweepSample."""
    memory_mib: dict[str, float] = Field(default_factory=dict, exclude_if=is_empty)
    """As of SweepSample."""
    available_mib: float | None = Field(default=None, exclude_if=is_none)
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
    smt_off: bool = Field(default=False, exclude_if=is_empty)
    """Whether SMT, which is on otherwise, was switched off for it."""
    smt_gains: tuple[SmtGain, ...] = Field(default=(), exclude_if=is_empty)
    """Comparison with the same sweep with SMT on; of quantities that both have."""

    @property
    def kind(self) -> str:
        """Pattern of the loads, or a chain."""
        return self.pattern
