"""Power of a simulated machine: the truth behind the energy counters of a simulated system.

The mechanism is the state of each data CPU, followed from burst to burst. Bursts of packets come at random times; the
CPU processes each, then polls, or sleeps where it is allowed to. A CPU that sleeps looks for packets again after its
sleep, which takes energy to wake up for; the sleep grows while it finds none and is over with the first packet. The
counter is what a meter shows: quantized, updated at times of its own, and starting again from 0 at its range.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Annotated

from pydantic import Field

from resources.libraries.python.drivers.sim.clock import EPOCH, VirtualClock
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.measurements.energy import MeterSeries
from resources.libraries.python.testbed.roles.watching import Readings

_Watts = Annotated[float, Field(ge=0)]
_BURST = 32
_FOLLOWED_BURSTS = 3000
"""Bursts that are followed; the rest of a trial is like them."""
_SLEEP_STEPS = 10
"""Sleeps in which it grows to the longest."""
_UPDATED_S = 0.001
_EVERY_S = 0.1
_MAX_SAMPLES = 1000


class Power(Frozen):
    """Power of a machine and its data CPUs. Without `platform_w` it has no meter."""

    platform_w: _Watts = 0.0
    """All that does not depend on the load."""
    busy_w: _Watts = 6.0
    """A data CPU that processes packets."""
    polling_w: _Watts = 5.0
    """One that looks for packets and finds none."""
    sleeping_w: _Watts = 1.0
    wake_uj: _Watts = 30.0
    """Energy of each waking up."""
    sleep_us: Annotated[float, Field(ge=0, le=10_000)] = 0.0
    """Longest sleep of data CPUs that find no packets; 0 for polling without end."""
    resolution_uj: Annotated[float, Field(gt=0)] = 61.03515625
    range_j: Annotated[float, Field(gt=1)] = 262_143.328850


@dataclass(frozen=True, slots=True)
class DataCpus:
    """Activity of the data CPUs of one owner."""

    count: int
    utilization: float
    """Share of their time that packets take, in [0, 1]."""
    packet_s: float
    """Time of a CPU for one packet."""


@dataclass(frozen=True, slots=True)
class CpuUse:
    """Mean power of a data CPU and the share of its time in which it was awake."""

    watts: float
    awake: float
    sleep_s: float
    """Mean length of a sleep; 0 without sleeps."""

    def wait_s(self, rng: Random) -> float:
        """Draw the time that a packet waits for the end of a sleep."""
        return rng.uniform(0.0, self.sleep_s) if rng.random() >= self.awake else 0.0


def cpu_use(power: Power, utilization: float, packet_s: float, rng: Random) -> CpuUse:
    """Follow one data CPU.

    `utilization`: share of its time that packets take, in [0, 1]; 0 without packets.
    `packet_s`: time for one packet.
    """
    shortest_s = power.sleep_us * 1e-6 / _SLEEP_STEPS
    busy_s = polling_s = sleeping_s = 0.0
    wakes = 0
    burst_s = _BURST * packet_s
    gap_s = burst_s * (1 / utilization - 1) if utilization > 0 else 1.0
    bursts = _FOLLOWED_BURSTS if utilization > 0 else 1
    for _ in range(bursts):
        left_s = rng.expovariate(1 / gap_s) if utilization > 0 and gap_s > 0 else gap_s
        step = 1
        while power.sleep_us and left_s > 0:
            asleep_s = shortest_s * min(step, _SLEEP_STEPS)
            sleeping_s += asleep_s
            left_s -= asleep_s  # packets that came meanwhile wait
            wakes += 1
            step += 1
        polling_s += max(0.0, left_s)
        if utilization > 0:
            busy_s += burst_s
    total_s = busy_s + polling_s + sleeping_s
    joules = busy_s * power.busy_w + polling_s * power.polling_w + sleeping_s * power.sleeping_w
    joules += wakes * 1e-6 * power.wake_uj
    return CpuUse(joules / total_s, (busy_s + polling_s) / total_s, sleeping_s / wakes if wakes else 0.0)


class SimulatedPower:
    """Energy of one machine in virtual time."""

    def __init__(self, power: Power, clock: VirtualClock, seed: str) -> None:
        self._power = power
        self._clock = clock
        self._rng = Random(seed)  # noqa: S311 (reproducible, not secret)
        self._course: list[tuple[float, float]] = [(clock.now(), power.range_j * 0.999)]
        """Virtual time and joules, where the power changed; close to the range, so that the counter starts again."""

    def spend(self, begin_s: float, seconds: float, cpus: Mapping[str, DataCpus]) -> dict[str, float]:
        """Let the machine take its power for a time.

        `cpus`: What its data CPUs do, by owner.

        Returns:
            The share of the time in which the data CPUs of each owner were awake.
        """
        uses = {owner: cpu_use(self._power, each.utilization, each.packet_s, self._rng) for owner, each in cpus.items()}
        watts = self._power.platform_w + sum(cpus[owner].count * use.watts for owner, use in uses.items())
        at_s, joules = self._course[-1]
        between_j = self._power.platform_w * max(0.0, begin_s - at_s)
        self._course += [(begin_s, joules + between_j), (begin_s + seconds, joules + between_j + watts * seconds)]
        return {owner: use.awake for owner, use in uses.items()}

    def counter_j(self, at_s: float) -> float:
        """Value of the counter at a time."""
        updated_s = at_s // _UPDATED_S * _UPDATED_S
        joules = self._course[0][1]
        for (begin_s, before_j), (end_s, after_j) in pairwise(self._course):
            if updated_s >= end_s:
                joules = after_j
            elif updated_s > begin_s:
                joules = before_j + (after_j - before_j) * (updated_s - begin_s) / (end_s - begin_s)
        step_j = self._power.resolution_uj * 1e-6
        return joules // step_j * step_j % self._power.range_j

    def read(self, node: str, begin_s: float, end_s: float) -> Readings:
        """Readings of a meter between two virtual times, and without a meter that there is none."""
        if not self._power.platform_w:
            return Readings((), {node: "the simulated machine has no energy meter (simulation.power.platform_w)"})
        number = max(2, min(_MAX_SAMPLES, round((end_s - begin_s) / _EVERY_S)))
        times_s = [begin_s + (end_s - begin_s) * index / (number - 1) for index in range(number)]
        epoch_s = EPOCH.timestamp()
        series = MeterSeries(
            node=node,
            meter="sim",
            domain="package-0",
            counts=True,
            quantity="energy",
            samples=tuple((epoch_s + at_s, self.counter_j(at_s)) for at_s in times_s),
            resolution=self._power.resolution_uj * 1e-6,
            interval_s=_UPDATED_S,
            wraps_at_j=self._power.range_j,
        )
        return Readings((series,))
