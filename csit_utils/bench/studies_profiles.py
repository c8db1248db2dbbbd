"""How well profiles recover the functions they were sampled from: tables IV to VI of Troia et al., under noise.

Each study is a sweep of 80 rates on one of the paper's two testbeds, ADVA and BONSAI. Every mean of a rate has relative
normal noise: of 0.2 %, which is what 30 samples that vary by 1 % leave of it, and of 3 %, which is a service whose
samples vary by a sixth.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from csit_utils.bench.printed_router import ADVA, BONSAI, Printed, PublishedRouter, printed_function, printed_sweep
from csit_utils.bench.study_lines import BoundedQuantity
from resources.libraries.python.studies.sweep.analysis.curves import BY_NAME
from resources.libraries.python.studies.sweep.analysis.points import Array
from resources.libraries.python.studies.sweep.analysis.profile import profile_of
from resources.libraries.python.studies.sweep.analysis.profile_queries import value_at
from resources.libraries.python.studies.sweep.model.profile import Fit, Metric, Profile

LOADS = 80
TESTBEDS = (ADVA, BONSAI)
_NO_BASE = 1e-9
"""ms: a base below this leaves nothing of itself in a delay of 5e-3 ms and more."""


@dataclass(frozen=True)
class PromisedErrors:
    """What is promised under noise of one size; percent but for steps."""

    steps: float
    """Between the break-point and the printed one."""
    other_family: float
    """Regions that get another function of the catalogue."""
    coefficient_median: float
    coefficient_p95: float
    curve: Mapping[Metric, float]
    """95th percentile of the mean difference from the printed curve, relative to its mean."""


PROMISED: Mapping[float, PromisedErrors] = {
    0.002: PromisedErrors(1, 1, 1, 5, {Metric.THROUGHPUT: 0.2, Metric.DELAY: 0.2, Metric.LOSS: 0.5}),
    0.03: PromisedErrors(2, 10, 5, 50, {Metric.THROUGHPUT: 3, Metric.DELAY: 5, Metric.LOSS: 10}),
}
"""By relative noise. Under 3 %, delays are as close as the paper's own, which are within 5 % of its functions."""


@dataclass
class _Errors:
    """Of all studies under noise of one size."""

    steps: list[float] = field(default_factory=list)
    other_family: list[bool] = field(default_factory=list)
    coefficients: list[float] = field(default_factory=list)
    curve: dict[Metric, list[float]] = field(default_factory=lambda: {metric: [] for metric in Metric})


def table(studies: int) -> list[BoundedQuantity]:
    """Errors of profiles against the functions that their sweeps were sampled from.

    Args:
        studies: Sweeps on each testbed under each noise, at least one.

    Returns:
        Under each noise: the break-point, the function families, the coefficients and the curves.
    """
    return [line for noise, promised in PROMISED.items() for line in _lines(noise, promised, _errors(noise, studies))]


def _errors(noise: float, studies: int) -> _Errors:
    errors = _Errors()
    for testbed in TESTBEDS:
        for seed in range(studies):
            sweep = printed_sweep(testbed, noise, seed, LOADS)
            _add(errors, testbed, profile_of("router", sweep, {"router": 1}))
    return errors


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


def _coefficient_errors(fit: Fit, truth: Printed) -> list[float] | None:
    """Relative errors; None where the function is of another family.

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


def _curve_errors(profile: Profile, testbed: PublishedRouter, metric: Metric, rates: Array) -> Iterator[float]:
    """Of each region; a rate without a prediction counts as one for which 0 is predicted."""
    truth = printed_function(testbed, metric)
    for region in (rates[rates < testbed.break_point], rates[rates > testbed.break_point]):
        values = truth(region)
        predicted = np.array([value_at(profile, metric, float(rate)) or 0.0 for rate in region])
        yield float(np.mean(np.abs(predicted - values)) / np.mean(values))


def _lines(noise: float, promised: PromisedErrors, errors: _Errors) -> Iterator[BoundedQuantity]:
    beside = f"tables IV-VI, noise {100 * noise:g} %"
    yield BoundedQuantity(
        "profile: break-point", max(errors.steps), promised.steps, "steps", f"worst of all studies; {beside}"
    )
    yield BoundedQuantity(
        "profile: regions with a function of another family",
        100 * float(np.mean(errors.other_family)),
        promised.other_family,
        "%",
        f"{len(BY_NAME)} families; {beside}",
    )
    median, high = (100 * float(np.percentile(errors.coefficients or [1.0], part)) for part in (50, 95))
    where = f"where the family is the printed one; {beside}"
    yield BoundedQuantity("profile: coefficients, median", median, promised.coefficient_median, "%", where)
    yield BoundedQuantity("profile: coefficients, 95th percentile", high, promised.coefficient_p95, "%", where)
    for metric, values in errors.curve.items():
        high = 100 * float(np.percentile(values, 95))
        where = f"95th percentile of regions; {beside}"
        yield BoundedQuantity(f"profile: predicted {metric}", high, promised.curve[metric], "%", where)
