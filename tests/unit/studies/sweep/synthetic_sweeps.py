"""Sweeps of services whose functions are known: those that Troia et al. print, and plain ones."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from csit_utils.dataset.reference import paper
from resources.libraries.python.studies.sweep.analysis.curves import BY_NAME
from resources.libraries.python.studies.sweep.analysis.points import Array
from resources.libraries.python.studies.sweep.model import (
    BreakPoint,
    Fit,
    MetricProfile,
    Profile,
    ProfileMetric,
    SweepPoint,
)

PACKET_BITS = 1460 * 8
Function = Callable[[Array], Array]


class PublishedRouter(NamedTuple):
    """The paper's results for its virtual router on one of its testbeds. Rates are in Gbit/s."""

    break_point: float
    last_rate: float
    metrics: Mapping[ProfileMetric, tuple[Fit, Fit]]
    """Functions below the break-point, and from it on."""


def _testbed(profile: Profile) -> PublishedRouter:
    """A profile of the reference set, which has a function for each metric in both regions."""
    assert profile.break_point is not None
    metrics = {row.metric: (row.nonsat, row.sat) for row in profile.metrics if row.nonsat and row.sat}
    last_rate = max(fit.last_rate for pair in metrics.values() for fit in pair)
    return PublishedRouter(profile.break_point.rate, last_rate, metrics)


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
    rates: Array, functions: Mapping[ProfileMetric, Function], cpu: Mapping[str, tuple[Function, ...]],
    noise: float = 0.0, seed: int = 0,
) -> tuple[SweepPoint, ...]:  # fmt: skip
    """Sample functions of the rate in Gbit/s; `cpu` has those of each thread by VNF, `noise` is relative."""
    random = np.random.default_rng(seed)

    def seen(function: Function) -> Array:
        return np.asarray(function(rates) * (1 + noise * random.standard_normal(len(rates))))

    throughput, delay, loss = (seen(functions[metric]) for metric in ProfileMetric)
    used = {vnf: [np.minimum(1.0, seen(thread)) for thread in threads] for vnf, threads in cpu.items()}
    return tuple(
        SweepPoint(
            rate_pps=rate * 1e9 / PACKET_BITS, samples=30, input_pps=rate * 1e9 / PACKET_BITS,
            sender_pps=rate * 1e9 / PACKET_BITS, output_pps=throughput[index] * 1e9 / PACKET_BITS,
            input_bps=rate * 1e9, output_bps=throughput[index] * 1e9, loss_ratio=loss[index] / 100,
            delay_s=delay[index] / 1e3,
            cpu={vnf: tuple(float(thread[index]) for thread in threads) for vnf, threads in used.items()},
        )
        for index, rate in enumerate(map(float, rates))
    )  # fmt: skip


def plain_router(capacity: float, vcpus: int = 1, delay_ms: float = 0.2) -> Mapping[ProfileMetric, Function]:
    """Lets everything through up to its capacity and that much above it; a queue fills there."""
    return {
        ProfileMetric.THROUGHPUT: lambda r: np.minimum(r, capacity),
        ProfileMetric.LOSS: lambda r: np.where(r > capacity, 100 * (1 - capacity / r), 0.0),
        ProfileMetric.DELAY: lambda r: np.where(r < capacity, delay_ms * vcpus, 10 * delay_ms + r),
    }


def growing_to(full: float, at: float) -> Function:
    """CPUs used in proportion to the rate, up to `full` at the rate `at`."""
    return lambda r: np.minimum(full, full * r / at)


LAST = 4.0


def function(name: str, formula: str, first: float = 0.1, last: float = LAST, **coefficients: float) -> Fit:
    return Fit(
        function=name, formula=formula, coefficients=coefficients, standard_error=0.0, relative_error=0.0, points=20,
        first_rate=first, last_rate=last,
    )  # fmt: skip


def line(slope: float, base: float) -> Fit:
    return function("linear", "a*r+b", a=slope, b=base)


def known_profile(  # noqa: PLR0917 - of which all but two have a default
    name: str, capacity: float | None, used: float = 1.0, vcpus: int = 1, delay_ms: float = 0.5, full_ms: float = 10.0
) -> Profile:
    """Lets r through below its capacity and exactly the capacity above; delay is constant below, a + r above."""
    below = (line(1, 0), line(0, delay_ms), line(0, 0))
    above: tuple[Fit | None, ...] = (None, None, None)
    point = None
    if capacity is not None:
        above = (line(0, capacity), line(1, full_ms), function("excess", "100*(1-d/(r-g))", d=capacity, g=0.0))
        point = BreakPoint(rate=capacity, vnf=name, cpus_used=used, cpus_there=vcpus, reason="known")
    of = (ProfileMetric.THROUGHPUT, ProfileMetric.DELAY, ProfileMetric.LOSS)
    rows = [MetricProfile(metric=one, nonsat=low, sat=high) for one, low, high in zip(of, below, above, strict=True)]
    return Profile(name=name, break_point=point, metrics=tuple(rows))
