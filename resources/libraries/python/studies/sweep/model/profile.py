"""A profile: a service described by functions of its input rate, below and above the load that saturates its CPUs."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from resources.libraries.python.model.base import Frozen


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


class MetricProfile(Frozen):
    """One metric; a region with too few points has no function."""

    metric: ProfileMetric
    nonsat: Fit | None
    """Below the break-point."""
    sat: Fit | None
    """From the break-point on."""


class BreakPoint(Frozen):
    """Saturation point of a service's CPUs."""

    rate: float
    """Gbit/s: the lowest measured rate at which the CPU of `vnf` is at its maximum."""
    vnf: str
    cpus_used: float
    """There; 1.0 is one CPU."""
    cpus_there: int
    reason: str
    """In a sentence: all of its CPUs are used, or it uses no more although there are more."""


class Profile(Frozen):
    """A service as functions of its input rate."""

    name: str
    break_point: BreakPoint | None
    """None where no load saturated it: then all of the profile is of the region below."""
    metrics: tuple[MetricProfile, ...]
    notes: tuple[str, ...] = ()
    """Sentences: what could not be fitted, points that were left out, where functions contradict each other."""

    def of(self, metric: ProfileMetric) -> MetricProfile | None:
        """One metric; None where nothing is known of it."""
        return next((row for row in self.metrics if row.metric is metric), None)


def _is_none(value: object) -> bool:
    """Left out of the JSON where it is not known."""
    return value is None


class PredictedPoint(Frozen):
    """A chain at one input rate: what its parts let expect, and what was measured. Units as in Metric."""

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
