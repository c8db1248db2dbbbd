"""Functions of sample means, with the errors that they share: intervals and tests to first order.

An estimate keeps its derivative for each sample mean that it is made of (the delta method), so that two of them that
share a sample, such as a baseline, are compared with their correlation. Student's t has the degrees of freedom of Welch
and Satterthwaite: samples may differ in spread and in size.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import fmean, variance

from resources.libraries.python import special_functions

CONFIDENCE = 0.95
ALPHA = 1 - CONFIDENCE
"""Probability of any wrong claim in a family of comparisons."""
RESOLUTION = 1e-4
"""Normalized throughputs that differ by less are the same: one packet of ten thousand."""


@dataclass(frozen=True, eq=False, slots=True)
class SampleMean:
    """The mean of independent values; each is a random variable of its own."""

    variance: float | None
    """Of the mean; None with a single value."""
    freedom: int


@dataclass(frozen=True, slots=True)
class SampledEstimate:
    """A value, and its derivatives by the sample means behind it."""

    value: float
    slopes: Mapping[SampleMean, float]

    def known_error(self) -> tuple[float, float] | None:
        """Standard error and degrees of freedom; None where a sample behind it has a single value."""
        parts = []
        for sample, slope in self.slopes.items():
            if slope and sample.variance is None:
                return None
            parts.append((slope**2 * (sample.variance or 0.0), sample.freedom))
        total = sum(part for part, _ in parts)
        least = sum(part**2 / freedom for part, freedom in parts if part)
        return sqrt(total), total**2 / least if least else 1.0

    def interval(self) -> tuple[float, float] | None:
        """Confidence interval; None where its error is unknown."""
        known = self.known_error()
        if known is None:
            return None
        half = known[0] * _quantile(known[1])
        return self.value - half, self.value + half

    def p_value(self, null: float = 0.0) -> float | None:
        """Probability of a value as far from `null` by chance, both sides; None where its error is unknown."""
        known = self.known_error()
        if known is None:
            return None
        error, freedom = known
        if (apart := abs(self.value - null)) < RESOLUTION:
            return 1.0
        return float(2 * special_functions.stdtr(freedom, -apart / error)) if error else 0.0


def mean_of(values: Sequence[float]) -> SampledEstimate:
    """The mean of a sample, at least one value."""
    count = len(values)
    sample = SampleMean(variance(values) / count if count > 1 else None, count - 1)
    return SampledEstimate(fmean(values), {sample: 1.0})


def exact(value: float) -> SampledEstimate:
    """A value without an error."""
    return SampledEstimate(value, {})


def function(value: float, parts: Iterable[tuple[float, SampledEstimate]]) -> SampledEstimate:
    """A function of estimates: its value, and its derivative by each of them."""
    slopes: dict[SampleMean, float] = {}
    for factor, part in parts:
        for sample, slope in part.slopes.items():
            slopes[sample] = slopes.get(sample, 0.0) + factor * slope
    return SampledEstimate(value, slopes)


def ratio(above: SampledEstimate, below: SampledEstimate) -> SampledEstimate:
    """Divide by an estimate that is not 0; `ratio_interval` is exact where this is of first order."""
    value = above.value / below.value
    return function(value, [(1 / below.value, above), (-value / below.value, below)])


def total(estimates: Sequence[SampledEstimate]) -> SampledEstimate:
    """Add estimates, with the errors that they share."""
    return function(sum(each.value for each in estimates), [(1.0, each) for each in estimates])


def average(estimates: Sequence[SampledEstimate]) -> SampledEstimate:
    """The mean of at least one estimate."""
    share = 1 / len(estimates)
    return function(fmean(each.value for each in estimates), [(share, each) for each in estimates])


def difference(one: SampledEstimate, other: SampledEstimate) -> SampledEstimate:
    """Subtract the second estimate; errors that both share cancel."""
    return function(one.value - other.value, [(1.0, one), (-1.0, other)])


def ratio_interval(above: SampledEstimate, below: SampledEstimate) -> tuple[float, float] | None:
    """Confidence interval of a ratio by Fieller's theorem, with the covariance of both.

    Degrees of freedom are those of `above - ratio * below`.

    Returns:
        Its ends; None where an error is unknown, or where the interval of `below` has 0 in it.
    """
    found = above.value / below.value if below.value else 0.0
    contrast = function(0.0, [(1.0, above), (-found, below)]).known_error()
    if contrast is None or not below.value:
        return None
    times = _quantile(contrast[1])
    # (above - r * below)^2 <= times^2 * Var(above - r * below), a quadratic inequality for r.
    square = below.value**2 - times**2 * _covariance(below, below)
    linear = above.value * below.value - times**2 * _covariance(above, below)
    free = above.value**2 - times**2 * _covariance(above, above)
    if square <= 0:
        return None
    root = sqrt(max(0.0, linear**2 - square * free))
    return (linear - root) / square, (linear + root) / square


def told_apart(estimates: Mapping[str, SampledEstimate], alpha: float = ALPHA) -> frozenset[tuple[str, str]] | None:
    """Pairs of names of which the first is lower than the second, by Holm's procedure.

    The probability of any wrong pair is at most `alpha`, whatever the correlations. Its first step is the test that
    none differs: it finds no pair then.

    Returns:
        None where an error is unknown.
    """
    found: list[tuple[float, str, str]] = []
    for one, other in combinations(estimates, 2):
        apart = difference(estimates[one], estimates[other])
        p_value = apart.p_value()
        if p_value is None:
            return None
        found.append((p_value, *((one, other) if apart.value < 0 else (other, one))))
    kept = set()
    for rank, (p_value, low, high) in enumerate(sorted(found)):
        if p_value * (len(found) - rank) > alpha:
            break
        kept.add((low, high))
    return frozenset(kept)


def _covariance(one: SampledEstimate, other: SampledEstimate) -> float:
    shared = one.slopes.keys() & other.slopes.keys()
    return sum(one.slopes[sample] * other.slopes[sample] * (sample.variance or 0.0) for sample in shared)


def _quantile(freedom: float) -> float:
    return float(special_functions.stdtrit(freedom, (1 + CONFIDENCE) / 2))
