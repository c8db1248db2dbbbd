"""A profile: a service described by functions of its input rate, below and above the load that saturates it."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from resources.libraries.python.model.base import Frozen

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


def _is_none(value: object) -> bool:
    """Left out of the JSON where it is not known."""
    return value is None


def _is_empty(value: object) -> bool:
    """The same where there is nothing."""
    return not value


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
    covariance: tuple[tuple[float, ...], ...] = Field(default=(), exclude_if=_is_empty)
    """Of the coefficients, in their order, from the scatter of the points; empty where it is unknown."""
    rival: "Fit | None" = Field(default=None, exclude_if=_is_none)
    """Another function that few points do not exclude: values and their intervals are means over both."""
    rival_weight: float = Field(default=0.0, exclude_if=_is_empty)
    """Akaike weight of the rival, that of both being 1."""


class MetricProfile(Frozen):
    """One metric; a region with too few points has no function."""

    metric: ProfileMetric
    nonsat: Fit | None
    """Below the break-point, or the lower one of two."""
    sat: Fit | None
    """From the break-point on, or from the upper one of two."""
    between: Fit | None = Field(default=None, exclude_if=_is_none)
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
    low: float | None = Field(default=None, exclude_if=_is_none)
    """Gbit/s: lower end of the 95 % interval; None where it is unknown."""
    high: float | None = Field(default=None, exclude_if=_is_none)
    """Gbit/s: its upper end."""
    measured_rate: float | None = Field(default=None, exclude_if=_is_none)
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
    second: BreakPoint | None = Field(default=None, exclude_if=_is_none)
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
    summed_delay: float | None = Field(default=None, exclude_if=_is_none)
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
    path: str | None = Field(default=None, exclude_if=_is_none)
    """The service without VNFs whose delay was counted once; None where none was measured, so that the delay is the
    plain sum of the parts' delays."""
    summed_delay_error: float | None = Field(default=None, exclude_if=_is_none)
    """Error of `PredictedPoint.summed_delay`, as in `errors`."""
    notes: tuple[str, ...] = ()
