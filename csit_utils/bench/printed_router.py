"""The virtual router of Troia et al., tables IV to VI, and sweeps sampled from those functions or from others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from csit_utils.dataset.papers import paper
from resources.libraries.python.studies.sweep.analysis.curves import BY_NAME
from resources.libraries.python.studies.sweep.analysis.points import Array
from resources.libraries.python.studies.sweep.model.profile import Metric, Profile
from resources.libraries.python.studies.sweep.model.record import SweepPoint

PACKET_BITS = 1460 * 8
Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Printed:
    """A function as it is printed in tables IV to VI, in the words of the catalogue."""

    function: str
    coefficients: Mapping[str, float]


@dataclass(frozen=True)
class PublishedRouter:
    """What the paper has of its virtual router on one of its testbeds."""

    __test__ = False

    break_point: float
    last_rate: float
    metrics: Mapping[Metric, tuple[Printed, Printed]]
    """Below the break-point, from it on."""


def _testbed(profile: Profile) -> PublishedRouter:
    """A profile of the reference set, which has all functions in both regions."""
    if profile.break_point is None:
        raise ValueError(f"{profile.name}: no break-point")
    fits = {row.metric: (row.nonsat, row.sat) for row in profile.metrics}
    return PublishedRouter(
        profile.break_point.rate,
        max(fit.last_rate for pair in fits.values() for fit in pair if fit),
        {
            metric: (Printed(below.function, below.coefficients), Printed(above.function, above.coefficients))
            for metric, (below, above) in fits.items()
            if below and above
        },
    )


ADVA, BONSAI = map(_testbed, paper("troia").profiles)


def printed_function(testbed: PublishedRouter, metric: Metric) -> Function:
    """Both regions as one function."""
    below, above = testbed.metrics[metric]

    def value(rates: Array) -> Array:
        return np.where(
            rates < testbed.break_point,
            BY_NAME[below.function].value(below.coefficients, rates),
            BY_NAME[above.function].value(above.coefficients, rates),
        )

    return value


def printed_sweep(testbed: PublishedRouter, noise: float, seed: int, loads: int = 80) -> tuple[SweepPoint, ...]:
    """The paper's router at evenly spaced rates, its CPU full from the break-point on."""
    rates = np.linspace(testbed.last_rate / loads, testbed.last_rate, loads)
    functions = {metric: printed_function(testbed, metric) for metric in Metric}
    cpu = {"router": (lambda r: np.minimum(1.0, 0.03 + 0.97 * r / testbed.break_point),)}
    return sweep_of(rates, functions, cpu, noise, seed)


def sweep_of(
    rates: Array,
    functions: Mapping[Metric, Function],
    cpu: Mapping[str, tuple[Function, ...]],
    noise: float = 0.0,
    seed: int = 0,
) -> tuple[SweepPoint, ...]:
    """Points; noise is relative to each value."""
    random = np.random.default_rng(seed)

    def seen(function: Function) -> Array:
        return np.asarray(function(rates) * (1 + noise * random.standard_normal(len(rates))))

    throughput, delay, loss = (seen(functions[metric]) for metric in Metric)
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
