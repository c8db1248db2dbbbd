"""A host that takes the CPUs of data threads away now and then: the truth behind the noise floor of a simulated system.

The mechanism is a queue in front of each CPU, followed from event to event: packets come in at an even rate, are served
while the CPU is there, wait in the queue while it is not, and are lost when that is full.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random

from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.plan import Path, Plan

QUEUE_FRAMES = 256
_SPREAD = 0.5
"""Durations are spread evenly around their mean by this share."""
_THRESHOLD_NS = 2_000
_CLASS_BITS = 4
_FULLEST = 0.98
"""Highest utilization: a queue that is full without interruptions is the capacity's doing."""

Gaps = Sequence[tuple[float, float]]
"""Begin and end of each interruption in seconds, ascending, without overlap."""


@dataclass(frozen=True, slots=True)
class InterruptingHost:
    """How often, and for how long, each CPU is taken away."""

    gap_hz: float
    gap_s: float
    """Mean duration."""

    def gaps(self, duration_s: float, rng: Random) -> list[tuple[float, float]]:
        """Draw the interruptions of one CPU: a Poisson process."""
        found: list[tuple[float, float]] = []
        at_s = rng.expovariate(self.gap_hz) if self.gap_hz > 0 else duration_s
        while at_s < duration_s:
            end_s = at_s + self.gap_s * rng.uniform(1 - _SPREAD, 1 + _SPREAD)
            found.append((at_s, end_s))
            at_s = end_s + rng.expovariate(self.gap_hz)
        return found


@dataclass(frozen=True, slots=True)
class Queued:
    """Behaviour of a queue in the course of a trial."""

    lost_ratio: float
    waits_s: tuple[float, ...]
    """Of each probe."""


def queued(gaps: Gaps, rate_pps: float, service_pps: float, probes_s: Sequence[float], duration_s: float) -> Queued:
    """Follow the queue of one CPU.

    `gaps`: When the CPU is away.
    `service_pps`: At which they are served while it is there, above the arrival rate.
    `probes_s`: When probes arrive, ascending.
    """
    backlog = lost = now_s = 0.0
    away_until_s: float | None = None
    waits: list[float] = []
    probes = ((at_s, 1, 0.0) for at_s in probes_s)
    events = sorted(chain(((begin, 0, end) for begin, end in gaps), probes, [(duration_s, 2, 0.0)]))
    for at_s, kind, end_s in events:
        while now_s < at_s:  # the CPU may come back before the event
            upto_s = at_s if away_until_s is None else min(at_s, away_until_s)
            passed_s = upto_s - now_s
            if away_until_s is None:
                backlog = max(0.0, backlog - (service_pps - rate_pps) * passed_s)
            else:
                backlog += rate_pps * passed_s
                lost += max(0.0, backlog - QUEUE_FRAMES)
                backlog = min(backlog, QUEUE_FRAMES)
            now_s = upto_s
            if now_s == away_until_s:
                away_until_s = None
        if kind == 0:
            away_until_s = end_s
        elif kind == 1:
            waits.append(backlog / service_pps + (0.0 if away_until_s is None else away_until_s - at_s))
    packets = rate_pps * duration_s
    return Queued(min(1.0, lost / packets) if packets > 0 else 0.0, tuple(waits))


def noise_floor(cpus: Iterable[int], host: InterruptingHost, duration_s: float, rng: Random) -> tuple[CpuNoise, ...]:
    """Observe simulated CPUs, as the observer does on a machine."""
    rows = []
    for cpu in cpus:
        lengths = [round((end - begin) * 1e9) for begin, end in host.gaps(duration_s, rng)]
        seen = [length for length in lengths if length >= _THRESHOLD_NS]
        durations = Counter(_class_of(length) for length in seen)
        rows.append(
            CpuNoise(
                cpu=cpu,
                observed_s=duration_s,
                real_time=True,
                threshold_ns=_THRESHOLD_NS,
                longest_ns=max(seen, default=0),
                durations=tuple(sorted(durations.items())),
                preemptions=0,
                interrupts={},
                stolen_s=None,
                smis=None,
            )
        )
    return tuple(rows)


def _class_of(length_ns: int) -> int:
    shift = length_ns.bit_length() - _CLASS_BITS
    return length_ns >> shift << shift


class HostInterruptions:
    """Interruptions of the data CPUs of a plan in one trial after the other.

    `plan`: has data threads, their CPUs and the paths of flows.
    """

    def __init__(self, plan: Plan, host: InterruptingHost) -> None:
        self._host = host
        ports = {port.interface: port for port in plan.ports()}
        cpus = {
            (each.owner, each.index): (each.machine, each.cpu)
            for each in plan.cores.threads
            if each.role is ThreadRole.DATA
        }
        self._queues: dict[str, tuple[str | None, int]] = {}
        """CPU of each receive queue by its interface."""
        self._flows = Counter[str]()
        """Flows that each of them receives."""
        for path in plan.paths:
            for hop in path.hops:
                port = ports[hop.interface]
                if hop.counter == "rx" and (port.owner, port.data_thread) in cpus:
                    self._queues[hop.interface] = cpus[port.owner, port.data_thread]
                    self._flows[hop.interface] += 1
        self._gaps: dict[tuple[str | None, int], list[tuple[float, float]]] = {}
        self._duration_s = 0.0

    def begin(self, duration_s: float, rng: Random) -> None:
        """Draw the interruptions of a trial. Nothing is drawn where the host never interrupts."""
        self._duration_s = duration_s
        if self._host.gap_hz > 0:
            cpus = sorted(set(self._queues.values()), key=str)
            self._gaps = {cpu: self._host.gaps(duration_s, rng) for cpu in cpus}

    def along(
        self, path: Path, flow_pps: float, utilization: float, probes_s: Sequence[float] = ()
    ) -> Iterator[tuple[int, Queued]]:
        """Follow the queues on a path; yield the index of each hop with what its queue did.

        `flow_pps`: rate of each flow.
        """
        if not self._gaps:
            return
        for index, hop in enumerate(path.hops):
            cpu = self._queues.get(hop.interface) if hop.counter == "rx" else None
            if cpu is not None:
                rate_pps = flow_pps * self._flows[hop.interface]
                service_pps = max(rate_pps, 1.0) / min(max(utilization, 1e-6), _FULLEST)
                yield index, queued(self._gaps[cpu], rate_pps, service_pps, probes_s, self._duration_s)
