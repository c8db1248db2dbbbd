"""Recovery of known functions by profiles: tables IV to VI of Troia et al., under noise.

Each study is a sweep of 80 rates on one of the paper's two testbeds, ADVA and BONSAI. Each mean at a rate has relative
Gaussian noise: of 0.2 %, as 30 samples with a deviation of 1 % have, or of 3 %, as 30 samples with a deviation of a
sixth have.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from csit_utils.bench.studies.known_truth import BoundedQuantity
from csit_utils.dataset.papers import paper
from resources.libraries.python.studies.sweep.analysis.curves import BY_NAME
from resources.libraries.python.studies.sweep.analysis.points import Array
from resources.libraries.python.studies.sweep.analysis.profile import profile_of, value_at
from resources.libraries.python.studies.sweep.model.profile import Fit, Profile, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import SweepPoint

PACKET_BITS = 1460 * 8
Function = Callable[[Array], Array]


@dataclass(frozen=True)
class PublishedFit:
    """A function of tables IV to VI, by its name in the catalogue of `analysis.curves`."""

    function: str
    coefficients: Mapping[str, float]


@dataclass(frozen=True)
class PublishedRouter:
    """The paper's results for its virtual router on one of its testbeds. Rates are in Gbit/s."""

    __test__ = False

    break_point: float
    last_rate: float
    metrics: Mapping[ProfileMetric, tuple[PublishedFit, PublishedFit]]
    """Functions below the break-point, and from it on."""


def _testbed(profile: Profile) -> PublishedRouter:
    """Convert a profile of the reference set, which has a function for each metric in both regions."""
    if profile.break_point is None:
        raise ValueError(f"{profile.name}: no break-point")
    fits = {row.metric: (row.nonsat, row.sat) for row in profile.metrics}
    return PublishedRouter(
        profile.break_point.rate,
        max(fit.last_rate for pair in fits.values() for fit in pair if fit),
        {
            metric: (PublishedFit(below.function, below.coefficients), PublishedFit(above.function, above.coefficients))
            for metric, (below, above) in fits.items()
            if below and above
        },
    )


ADVA, BONSAI = map(_testbed, paper("troia").profiles)


def printed_function(testbed: PublishedRouter, metric: ProfileMetric) -> Function:
    """Return one function of the rate in Gbit/s that covers both regions."""
    below, above = testbed.metrics[metric]

    def value(rates: Array) -> Array:
        return np.where(
            rates < testbed.break_point,
            BY_NAME[below.function].value(below.coefficients, rates),
            BY_NAME[above.function].value(above.coefficients, rates),
        )

    return value


def printed_sweep(testbed: PublishedRouter, noise: float, seed: int, loads: int = 80) -> tuple[SweepPoint, ...]:
    """Sample the paper's router at evenly spaced rates; its CPU is saturated from the break-point on."""
    rates = np.linspace(testbed.last_rate / loads, testbed.last_rate, loads)
    functions = {metric: printed_function(testbed, metric) for metric in ProfileMetric}
    cpu = {"router": (lambda r: np.minimum(1.0, 0.03 + 0.97 * r / testbed.break_point),)}
    return sweep_of(rates, functions, cpu, noise, seed)


def sweep_of(
    rates: Array,
    functions: Mapping[ProfileMetric, Function],
    cpu: Mapping[str, tuple[Function, ...]],
    noise: float = 0.0,
    seed: int = 0,
) -> tuple[SweepPoint, ...]:
    """Sample functions as points of a sweep.

    Args:
        rates: In Gbit/s.
        functions: Of the rate, by metric.
        cpu: Utilization in [0, 1] as functions of the rate, by VNF and thread.
        noise: Standard deviation relative to each value.
        seed: Of the noise.
    """
    random = np.random.default_rng(seed)

    def seen(function: Function) -> Array:
        return np.asarray(function(rates) * (1 + noise * random.standard_normal(len(rates))))

    throughput, delay, loss = (seen(functions[metric]) for metric in ProfileMetric)
    used = {vnf: [np.minimum(1.0, seen(thread)) for thread in threads] for vnf, threads in cpu.items()}
    return tuple(
        SweepPoint(
            rate_pps=rate * 1e9 / PACKET_BITS,
            samples=30,
            input_pps=rate * 1e9 / PACKET_BITS,
            sender_pps=rate * 1e9 / PACKET_BITS,
            output_pps=throughput[index] * 1e9 / PACKET_BITS,
            input_bps=rate * 1e9,
            output_bps=throughput[index] * 1e9,
            loss_ratio=loss[index] / 100,
            delay_s=delay[index] / 1e3,
            cpu={vnf: tuple(float(thread[index]) for thread in threads) for vnf, threads in used.items()},
        )
        for index, rate in enumerate(map(float, rates))
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
    """Return errors of profiles against the functions that their sweeps were sampled from.

    Args:
        studies: Sweeps on each testbed under each noise, at least one.

    Returns:
        For each noise level: break-point, function families, coefficients and curves.
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
