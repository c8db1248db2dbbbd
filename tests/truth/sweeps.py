"""Break-points of sweeps against those of the systems that they were sampled from.

Each study is a sweep of a system whose break-points are drawn anew, so that they lie anywhere between two loads, under
relative Gaussian noise of 1 % or of 5 %. The systems are:

- one break-point: the CPU grows with the load up to all of it. Read with noise on top, cut off at 100 %, or drawn from
  a demand that goes on beyond, as CPU accounting does it;
- two break-points: half of what exceeds the first is lost, the CPU is full at the second;
- smooth: more and more is lost from the lowest load on, so that there is one break-point only;
- not bound by CPUs: the CPU never gets full; throughput does not grow beyond a capacity, falls beyond it in a line or
  with a power of the load (receive livelock), or half of what exceeds the capacity is lost;
- bound by memory: a pool of buffers whose number in use has the distribution of Erlang's loss system;
- not bound: all gets through, the CPU grows to a half;
- simulated: the model `noisy` of the simulated testbed, whose capacity differs from trial to trial. Of the load that
  exceeds it, some gets through, too, or takes as much from the rest: the capacity grows or falls with overload.

How often the 95 % interval holds the truth, the mean error, and how often there is a second break-point that is none.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random
from statistics import NormalDist, fmean

import numpy as np

from resources.libraries.python.drivers.sim.impairment import BufferPool
from resources.libraries.python.drivers.sim.models import Noisy
from resources.libraries.python.studies.sweep.analysis.points import Array, observe
from resources.libraries.python.studies.sweep.analysis.profile import (
    QualityBounds,
    highest_rate,
    profile_of,
    second_break_point,
)
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.model import MIB, BreakPoint, SweepPoint
from tests.truth.known_truth import BoundedQuantity, print_table, share

PACKET_BITS = 8 * 512
_LAST = 1.6
"""Highest load over the capacity, as of automatic rates."""
_LOSS = 5.0
"""Percent: bound of the highest rate; with less, noise of 1 % hides where it is."""
_TRIALS = 10_000
"""Of which the mean loss is the truth."""


@dataclass(frozen=True)
class KnownSweep:
    """Points of a sweep, and the truth behind them."""

    points: tuple[SweepPoint, ...]
    truth: tuple[float, ...]
    """Break-points, Gbit/s, rising."""
    highest: float | None = None
    """Gbit/s: the rate at which the mean loss of trials is `_LOSS`; None where it is not of this kind."""


def _sweep(rates: Array, through: Array, cpu: Array) -> tuple[SweepPoint, ...]:
    """Points of a service; what is lost is what does not get through."""
    return tuple(
        SweepPoint(
            rate_pps=rate * 1e9 / PACKET_BITS, samples=2, input_pps=rate * 1e9 / PACKET_BITS, sender_pps=None,
            output_pps=out * 1e9 / PACKET_BITS, input_bps=rate * 1e9, output_bps=out * 1e9,
            loss_ratio=max(0.0, 1 - out / rate), delay_s=1e-4, cpu={"vnf": (used,)},
        )
        for rate, out, used in zip(rates.tolist(), through.tolist(), cpu.tolist(), strict=True)
    )  # fmt: skip


def _rates(random: np.random.Generator, loads: int, last: float) -> Array:
    """Even loads up to some percent more or less than a rate."""
    last *= random.uniform(0.92, 1.08)
    return np.linspace(last / loads, last, loads)


def _drawn(seed: int, loads: int, low: float = 0.5, high: float = 5.0) -> tuple[np.random.Generator, float, Array]:
    """Random numbers, a capacity, and loads up to beyond it."""
    random = np.random.default_rng(seed)
    capacity = random.uniform(low, high)
    return random, capacity, _rates(random, loads, _LAST * capacity)


def _noisy(random: np.random.Generator, values: Array, noise: float) -> Array:
    return np.asarray(values * (1 + noise * random.standard_normal(len(values))))


def one_break_point(seed: int, noise: float, kind: str, loads: int = 12) -> KnownSweep:
    """A CPU that gets full; `kind` is how noise meets its limit: `open`, `cut` or `demand`."""
    random = np.random.default_rng(seed)
    capacity, base = random.uniform(0.5, 5.0), random.uniform(0.0, 0.2)
    rates = _rates(random, loads, _LAST * capacity)
    wanted = base + (1 - base) * rates / capacity
    if kind == "demand":
        cpu = np.minimum(1.0, _noisy(random, wanted, noise))
    else:
        cpu = _noisy(random, np.minimum(1.0, wanted), noise)
        cpu = np.minimum(1.0, cpu) if kind == "cut" else cpu
    return KnownSweep(_sweep(rates, np.minimum(rates, capacity), cpu), (capacity,))


def two_break_points(seed: int, noise: float, loads: int = 30) -> KnownSweep:
    """Half of what exceeds the first is lost; the CPU is full at the second."""
    random = np.random.default_rng(seed)
    first = random.uniform(0.5, 2.0)
    second = first * random.uniform(1.8, 2.2)
    rates = _rates(random, loads, _LAST * second)
    through = np.minimum(rates, np.minimum((first + rates) / 2, (first + second) / 2))
    cpu = np.minimum(1.0, 0.05 + 0.95 * rates / second)
    return KnownSweep(_sweep(rates, _noisy(random, through, noise), _noisy(random, cpu, noise)), (first, second))


def smooth(seed: int, noise: float, loads: int = 30) -> KnownSweep:
    """What is lost is a share of the load that grows with it, up to 15 % where the CPU is full."""
    random, capacity, rates = _drawn(seed, loads, 1.0, 4.0)
    used = np.minimum(rates, capacity)
    through = used * (1 - 0.15 * used / capacity)
    cpu = np.minimum(1.0, 0.05 + 0.95 * rates / capacity)
    return KnownSweep(_sweep(rates, _noisy(random, through, noise), _noisy(random, cpu, noise)), (capacity,))


def not_cpu_bound(seed: int, noise: float, line: float = 0.0, power: float = 0.0, loads: int = 12) -> KnownSweep:
    """Throughput that stops growing, or falls by a part of the excess load or with a power, while CPUs have room."""
    random, capacity, rates = _drawn(seed, loads)
    beyond = (capacity - line * (rates - capacity)) * (capacity / rates) ** power
    through = _noisy(random, np.minimum(rates, beyond), noise)
    return KnownSweep(_sweep(rates, through, 0.6 * rates / rates[-1]), (capacity,))


def livelock(seed: int, noise: float, loads: int = 12) -> KnownSweep:
    """Throughput and the CPU of a service fall beyond its capacity with the power -0.7 of the load."""
    random = np.random.default_rng(seed)
    capacity, base = random.uniform(0.5, 5.0), random.uniform(0.0, 0.2)
    rates = _rates(random, loads, _LAST * capacity)
    falls = np.minimum(1.0, (capacity / rates) ** 0.7)
    cpu = np.minimum(base + (0.9 - base) * rates / capacity, 0.9 * falls)
    through = np.minimum(rates, capacity * falls)
    return KnownSweep(_sweep(rates, _noisy(random, through, noise), _noisy(random, cpu, noise)), (capacity,))


def lossy(seed: int, noise: float, loads: int = 12) -> KnownSweep:
    """A capacity that differs from trial to trial; half of what exceeds it is lost."""
    random, capacity, rates = _drawn(seed, loads)
    excess = np.maximum(0.0, rates - _noisy(random, np.full(loads, capacity), noise))
    return KnownSweep(_sweep(rates, rates - excess / 2, 0.6 * rates / rates[-1]), (capacity,))


def unlimited(seed: int, noise: float, loads: int = 12) -> KnownSweep:
    """All gets through, and half of the CPU is left."""
    random = np.random.default_rng(seed)
    rates = _rates(random, loads, random.uniform(0.5, 5.0))
    cpu = _noisy(random, 0.1 + 0.4 * rates / rates[-1], noise)
    return KnownSweep(_sweep(rates, _noisy(random, rates, noise), cpu), ())


def memory_bound(seed: int, noise: float, loads: int = 12) -> KnownSweep:  # noqa: ARG001 - buffers in use have their own
    """Buffers in use scatter more the more there are, up to a bend that is soft: its noise is 2.6 % there."""
    random, pool_random = np.random.default_rng(seed), Random(seed)
    pool = BufferPool(buffers=1500, hold_s=0.005)
    capacity = pool.capacity_pps * PACKET_BITS / 1e9
    rates = _rates(random, loads, _LAST * capacity)
    points = []
    for point in _sweep(rates, np.minimum(rates, capacity), 0.6 * rates / rates[-1]):
        used = fmean(pool.draw_bytes(point.rate_pps, pool_random) for _ in range(2)) / MIB
        points.append(point.model_copy(update={"memory_mib": {"vnf": 2 + used}}))
    return KnownSweep(tuple(points), (capacity,))


def simulated(seed: int, noise: float, growth: float = 0.0, loads: int = 12) -> KnownSweep:
    """The simulated testbed: trials, each with a capacity of its own; the CPU as it accounts for it.

    `growth` is the share of the load beyond the capacity by which the capacity grows; below 0 it falls.
    """
    (_, capacity, rates), system_random = _drawn(seed, loads), Random(seed)
    system = Noisy(capacity * 1e9 / PACKET_BITS, noise)
    counts = [system.forward(rate * 1e9 / PACKET_BITS, 2.0, system_random) for rate in rates.tolist()]
    passed = [received + growth * (sent - received) for sent, received in counts]
    through = np.array(passed) / 2 * PACKET_BITS / 1e9
    cpu = np.minimum(1.0, rates / capacity)
    return KnownSweep(_sweep(rates, through, cpu), (capacity,), capacity * _rate_of_mean_loss(noise, growth))


@cache
def _rate_of_mean_loss(noise: float, growth: float) -> float:
    """The rate, in units of the mean capacity, at which trials lose `_LOSS` on average.

    Where the capacity differs from trial to trial, that is more than what is lost at the mean capacity: a trial whose
    capacity exceeds the rate loses nothing, however much larger it is.
    """
    from scipy.optimize import brentq

    capacities = np.array(NormalDist(1.0, noise).quantiles(_TRIALS))
    lost = _LOSS / 100 / (1 - growth)
    return float(brentq(lambda rate: np.maximum(0.0, 1 - capacities / rate).mean() - lost, 0.5, 2.0))


KINDS: dict[str, Callable[[int, float], KnownSweep]] = {
    "CPU, noise above 100 % too": partial(one_break_point, kind="open"),
    "CPU, noise cut off at 100 %": partial(one_break_point, kind="cut"),
    "CPU, demand cut off at 100 %": partial(one_break_point, kind="demand"),
    "CPU, 30 loads": partial(one_break_point, kind="cut", loads=30),
    "two break-points": two_break_points,
    "CPU, smooth throughput": smooth,
    "throughput": not_cpu_bound,
    "throughput that falls in a line": partial(not_cpu_bound, line=0.4),
    "throughput that falls with a power": partial(not_cpu_bound, power=0.7),
    "CPU that falls with a power": livelock,
    "loss": lossy,
    "memory": memory_bound,
    "memory, 30 loads": partial(memory_bound, loads=30),
    "no break-point": unlimited,
    "simulated": simulated,
    "simulated, growing capacity": partial(simulated, growth=0.3),
    "simulated, falling capacity": partial(simulated, growth=-0.3),
}


_PROMISED = {0.01: (1.0, 1.0, 5.0), 0.05: (3.0, 40.0, 10.0)}
"""Promised bounds in percent by noise: mean error relative to the truth, sweeps without a break-point, and sweeps with
one break-point in which a second one is found."""
_OUTSIDE = 7.0
"""Percent of the sweeps whose interval does not hold the truth."""
_OUTSIDE_OF = {"CPU that falls with a power": 10.0}
"""The same of a kind whose bend no line of those tried describes exactly."""
_FALSE = 5.0
"""Percent of the sweeps without a break-point in which one is found."""


@dataclass
class _Found:
    """All sweeps of one kind and noise."""

    errors: list[float] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    missed: int = 0

    def add(self, truth: float, rate: float | None, low: float | None, high: float | None) -> None:
        if rate is None or low is None or high is None:
            self.missed += 1
            return
        self.errors.append(rate / truth - 1)
        self.held.append(low <= truth <= high)
        self.widths.append((high - low) / truth)


def found(kind: str, noise: float, sweeps: int) -> tuple[dict[str, _Found], list[bool]]:
    """Break-points of sweeps, and highest rates where they are known, by name of the quantity; false break-points."""
    rows: dict[str, _Found] = {}
    false: list[bool] = []
    for seed in range(sweeps):
        known = KINDS[kind](seed, noise)
        observed, _ = observe(known.points)
        first, _ = find_break_point(observed, {"vnf": 1})
        if not known.truth:
            false.append(first is not None)
            continue
        second = None if first is None else second_break_point(observed, first)
        if len(known.truth) == 1:
            false.append(second is not None)
        points = [point for point in (first, second)[: len(known.truth)] if point is not None]
        for number, (truth, point) in enumerate(_matched(known.truth, points), 1):
            name = "break-point" if len(known.truth) == 1 else f"break-point {number}"
            row = rows.setdefault(name, _Found())
            row.add(truth, *((None,) * 3 if point is None else (point.rate, point.low, point.high)))
        if known.highest is not None:
            profile = profile_of("service", known.points, {"vnf": 1})
            best = highest_rate(profile, QualityBounds(loss_percent=_LOSS))
            rows.setdefault("highest rate", _Found()).add(known.highest, best.rate, best.low, best.high)
    return rows, false


def _matched(truth: Sequence[float], points: Sequence[BreakPoint]) -> Iterator[tuple[float, BreakPoint | None]]:
    """Each true break-point with the nearest one that was found and is nearest to it."""
    for each in truth:
        nearest = min(points, key=lambda point: abs(point.rate - each), default=None)
        mine = nearest is not None and min(truth, key=lambda other: abs(nearest.rate - other)) == each
        yield each, nearest if mine else None


def table(studies: int) -> Iterator[BoundedQuantity]:
    """Yield coverage of the intervals and errors of break-points in so many sweeps of each kind under each noise."""
    for noise, (bias, _, most_false) in _PROMISED.items():
        for kind in KINDS:
            rows, false = found(kind, noise, studies)
            under = f"{kind}, noise {100 * noise:g} %"
            for quantity, row in rows.items():
                yield from _lines(f"{quantity}, {under}", row, bias, noise)
            if false:
                which, most = ("second break-point", most_false) if rows else ("break-point", _FALSE)
                yield share(f"{which} that is none, {under}", false, most, "sweeps")


def _lines(what: str, row: _Found, most_bias: float, noise: float) -> Iterator[BoundedQuantity]:
    count = len(row.errors) + row.missed
    if row.errors:
        width = f"median width {100 * float(np.median(row.widths)):.2g} %"
        yield share(
            f"truth outside of the interval, {what}",
            [not held for held in row.held],
            next((most for kind, most in _OUTSIDE_OF.items() if f"{kind}, noise" in what), _OUTSIDE),
            "sweeps",
            width,
        )
        bias = 100 * float(np.mean(row.errors))
        error = 1.96 * 100 * float(np.std(row.errors)) / len(row.errors) ** 0.5
        yield BoundedQuantity(
            f"bias, {what}", abs(bias), most_bias, "%", f"{bias:+.2g} ± {error:.2g} %", abs(bias) - error
        )
    missing = [number < row.missed for number in range(count)]
    yield share(f"not found, {what}", missing, _PROMISED[noise][1], "sweeps")


if __name__ == "__main__":
    print_table(table, 500)
