"""Recovery of known functions by profiles: tables IV to VI of Troia et al., under noise.

Each study is a sweep of 80 rates on one of the paper's two testbeds, ADVA and BONSAI. Each mean at a rate has relative
Gaussian noise: of 0.2 %, as 30 samples with a deviation of 1 % have, or of 3 %, as 30 samples with a deviation of a
sixth have.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from resources.libraries.python.studies.sweep.analysis.points import Array
from resources.libraries.python.studies.sweep.analysis.profile import profile_of, value_at
from resources.libraries.python.studies.sweep.model.profile import Fit, Profile, ProfileMetric
from tests.truth.known_truth import BoundedQuantity, print_table, share
from tests.unit.studies.sweep.synthetic_sweeps import (
    ADVA,
    BONSAI,
    PublishedFit,
    PublishedRouter,
    printed_function,
    printed_sweep,
)

LOADS = 80
TESTBEDS = (ADVA, BONSAI)
_NO_BASE = 1e-9
"""ms: a base below this leaves nothing of itself in a delay of 5e-3 ms and more."""


@dataclass(frozen=True)
class PromisedErrors:
    """Promised bounds under one noise level, in percent except for `steps`."""

    steps: float
    """Distance of the break-point from the printed one, in steps of the sweep."""
    other_family: float
    """Share of regions fitted with another function of the catalogue."""
    coefficient_median: float
    coefficient_p95: float
    curve: Mapping[ProfileMetric, float]
    """95th percentile of the mean difference from the printed curve, relative to its mean."""


PROMISED: Mapping[float, PromisedErrors] = {
    0.002: PromisedErrors(
        1, 1, 1, 5, {ProfileMetric.THROUGHPUT: 0.2, ProfileMetric.DELAY: 0.2, ProfileMetric.LOSS: 0.5}
    ),
    0.03: PromisedErrors(2, 10, 5, 50, {ProfileMetric.THROUGHPUT: 3, ProfileMetric.DELAY: 5, ProfileMetric.LOSS: 10}),
}
"""By relative noise. Under 3 %, delays are as close as the paper's own, which are within 5 % of its functions."""


@dataclass
class _Errors:
    """Errors of all studies under one noise level."""

    steps: list[float] = field(default_factory=list)
    other_family: list[bool] = field(default_factory=list)
    coefficients: list[float] = field(default_factory=list)
    curve: dict[ProfileMetric, list[float]] = field(default_factory=lambda: {metric: [] for metric in ProfileMetric})


def table(studies: int) -> list[BoundedQuantity]:
    """Return errors of so many sweeps on each testbed under each noise against the sampled functions."""
    found: list[BoundedQuantity] = []
    for noise, promised in PROMISED.items():
        errors = _Errors()
        for testbed in TESTBEDS:
            for seed in range(studies):
                _add(errors, testbed, profile_of("router", printed_sweep(testbed, noise, seed, LOADS), {"router": 1}))
        found += _lines(f"noise {100 * noise:g} %", promised, errors)
    return found


def _add(errors: _Errors, testbed: PublishedRouter, profile: Profile) -> None:
    step = testbed.last_rate / LOADS
    point = profile.break_point
    errors.steps.append(LOADS if point is None else abs(point.rate - testbed.break_point) / step)
    rates = np.linspace(step, testbed.last_rate, LOADS)
    away = rates[np.abs(rates - testbed.break_point) > step]
    for metric, printed in testbed.metrics.items():
        row = profile.of(metric)
        fits = (None, None) if row is None else (row.nonsat, row.sat)
        for fit, truth in zip(fits, printed, strict=True):
            found = None if fit is None else _coefficient_errors(fit, truth)
            errors.other_family.append(found is None)
            errors.coefficients += found or []
        errors.curve[metric] += _curve_errors(profile, testbed, metric, away)


def _coefficient_errors(fit: Fit, truth: PublishedFit) -> list[float] | None:
    """Return relative errors of coefficients, or None for a function of another family.

    BONSAI's delay has a base of 7.15e-26 ms: no double holds its sum with the delay, so a*exp(b*r) with a = exp(-b*c)
    is the same function.
    """
    found, printed = dict(fit.coefficients), dict(truth.coefficients)
    if truth.function == "exponential over a base" and printed["a"] < _NO_BASE and fit.function == "exponential":
        printed = {"b": printed["b"], "c": printed["c"]}
        found = {"b": found["b"], "c": -float(np.log(found["a"])) / found["b"]}
    elif fit.function != truth.function:
        return None
    return [abs(found[name] - value) / abs(value) for name, value in printed.items()]


def _curve_errors(profile: Profile, testbed: PublishedRouter, metric: ProfileMetric, rates: Array) -> Iterator[float]:
    """Yield the relative error of each region; a rate without a prediction counts as a prediction of 0."""
    truth = printed_function(testbed, metric)
    for region in (rates[rates < testbed.break_point], rates[rates > testbed.break_point]):
        values = truth(region)
        predicted = np.array([value_at(profile, metric, float(rate)) or 0.0 for rate in region])
        yield float(np.mean(np.abs(predicted - values)) / np.mean(values))


def _lines(noise: str, promised: PromisedErrors, errors: _Errors) -> Iterator[BoundedQuantity]:
    yield BoundedQuantity(f"break-point, worst, {noise}", max(errors.steps), promised.steps, "steps")
    yield share(f"function of another family, {noise}", errors.other_family, promised.other_family, "regions")
    bounds = {50: promised.coefficient_median, 95: promised.coefficient_p95}
    for part, bound in bounds.items():
        value = 100 * float(np.percentile(errors.coefficients or [1.0], part))
        yield BoundedQuantity(f"coefficients, {part} % of them, {noise}", value, bound, "%")
    for metric, values in errors.curve.items():
        value = 100 * float(np.percentile(values, 95))
        yield BoundedQuantity(f"{metric}, 95 % of regions, {noise}", value, promised.curve[metric], "%")


if __name__ == "__main__":
    print_table(table)
