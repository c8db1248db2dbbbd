"""CPU time, costs and features of simulated network functions, from their load and capacity."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from random import Random

from resources.libraries.python.drivers.sim.activity import BATCH, HZ, ActivityInterval, Did
from resources.libraries.python.drivers.sim.impairment import memory_bytes, missing_memory, pages_read_bytes
from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.model.counters import Cost, Sample
from resources.libraries.python.studies.chains.model.record import HOST, FeatureSeries


class SimSampler:
    """Fulfils `roles.watching.Sampler` on a simulated system."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system

    def read(self) -> Sample:
        return self._system.sample()


class SimCostMeter:
    """Fulfils `roles.watching.CostMeter` on a simulated system: CPU time by load and capacity, and nothing else."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system
        self._names = tuple(each.name for each in system.plan.all_nfs)
        self._before: Mapping[str, float] | None = None

    def start(self) -> None:
        self._before = dict(self._system.used_s())

    def stop(self) -> Mapping[str, Cost]:
        before, self._before = self._before, None
        if before is None:
            return {}
        now = self._system.used_s()
        return {name: Cost(cpu_s=now[name] - before[name]) for name in self._names if name in before}

    def facts(self) -> Mapping[str, str]:
        return {"cache misses": "the simulation has no caches"}


class SimFeatureSampler:
    """Fulfils `roles.watching.FeatureSampler` on a simulated system; seconds are those of its clock."""

    cpu_s = None

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system
        self._interval: ActivityInterval | None = None
        self._times = 0

    def start(self) -> None:
        self._interval = ActivityInterval(self._system)
        self._times += 1

    def stop(self) -> tuple[FeatureSeries, ...]:
        interval, self._interval = self._interval, None
        if interval is None:
            return ()
        seconds = interval.seconds
        rng = Random(f"{self._system.key}/features/{self._times}")  # noqa: S311 (reproducible, not secret)
        return tuple(
            FeatureSeries(owner=owner, feature=name, values=tuple(self._noisy(mean, name, rng) for _ in range(seconds)))
            for (owner, name), mean in chain(_means(tuple(interval.did())), self._memory(interval))
        )

    def facts(self) -> Mapping[str, str]:
        return {"features": "simulated: from the load and the capacity of each network function"}

    def _memory(self, interval: ActivityInterval) -> Iterator[tuple[tuple[str, str], float]]:
        there, missing = memory_bytes(self._system.plan), missing_memory(self._system.plan)
        for did in interval.did():
            if did.owner in there:
                yield (did.owner, "memory_bytes"), there[did.owner]
                yield (did.owner, "read_bytes_per_s"), pages_read_bytes(missing[did.owner], did.received)

    def _noisy(self, mean: float, name: str, rng: Random) -> float:
        value = max(0.0, mean * (1 + self._system.simulation.noise * rng.gauss(0, 1)))
        return min(100.0, value) if name == "throttled_percent" else value


def _means(all_did: Sequence[Did]) -> Iterator[tuple[tuple[str, str], float]]:
    for did in all_did:
        owner = did.owner
        yield (owner, "cpu_percent"), 100 * did.cpus
        yield (owner, "helper_percent"), 100 * did.cpus
        yield (owner, "throttled_percent"), 100 * did.held_back
        yield (owner, "waiting_percent"), 100 * did.waited
        yield (owner, "rx_pps"), did.received
        yield (owner, "tx_pps"), did.sent
        yield (owner, "rx_dropped_pps"), did.rx_dropped
        yield (owner, "tx_dropped_pps"), did.tx_dropped
        yield (owner, "voluntary_switches"), 0.0 if did.is_full else did.received / BATCH
        yield (owner, "involuntary_switches"), float(HZ) * (1.0 if did.is_full else min(1.0, did.waited))
    yield (HOST, "all_system_percent"), 100 * sum(did.cpus for did in all_did)
    yield (HOST, "all_switches"), sum(did.received for did in all_did) / BATCH
