"""Simulated features: what a simulated system's load and capacity cost its network functions, second by second."""

from collections.abc import Iterator, Mapping
from random import Random

from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.model.behaviour import HOST, VSWITCH, Series
from resources.libraries.python.model.counters import InterfaceCounters

_BATCH = 16
"""Packets after which a data thread that keeps up has nothing to do for a moment."""
_HZ = 250
"""Times a second at which a data thread that never has nothing to do is looked at by the scheduler."""
_FULL = 0.97
"""Of what it may use, with the noise of the capacity: from there on an owner is never idle."""
_BEGIN = InterfaceCounters(0, 0, 0, 0)


class SimFeatureSampler:
    """Fulfils `roles.watching.FeatureSampler` on a simulated system; seconds are those of its clock."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system
        plan = system.plan
        self._limits = {nf.name: nf.limits.cpu for nf in plan.nfs} | {tap.name: tap.limits.cpu for tap in plan.taps}
        self._owners = (VSWITCH, *self._limits)
        self._begin: tuple[float, Mapping[str, float], Mapping[str, InterfaceCounters]] | None = None
        self._times = 0

    def start(self) -> None:
        """See FeatureSampler."""
        system = self._system
        self._begin = (system.clock.now(), system.used_s(), system.counters(frozenset(self._owners)))
        self._times += 1

    def stop(self) -> tuple[Series, ...]:
        """See FeatureSampler."""
        begin, self._begin = self._begin, None
        if begin is None:
            return ()
        system = self._system
        seconds = int(system.clock.now() - begin[0])
        if not seconds:
            return ()
        rng = Random(f"{system.key}/features/{self._times}")  # noqa: S311 (reproducible, not secret)
        found = dict(self._means(begin[1], begin[2], seconds))
        return tuple(
            Series(owner=owner, feature=name, values=tuple(self._noisy(mean, name, rng) for _ in range(seconds)))
            for (owner, name), mean in found.items()
        )

    def facts(self) -> Mapping[str, str]:
        """See FeatureSampler."""
        return {"features": "simulated: from the load and the capacity of each network function"}

    def _noisy(self, mean: float, name: str, rng: Random) -> float:
        value = max(0.0, mean * (1 + self._system.simulation.noise * rng.gauss(0, 1)))
        return min(100.0, value) if name == "throttled_percent" else value

    def _means(
        self, used_s: Mapping[str, float], counted: Mapping[str, InterfaceCounters], seconds: int
    ) -> Iterator[tuple[tuple[str, str], float]]:
        now_s, now = self._system.used_s(), self._system.counters(frozenset(self._owners))
        total = 0.0
        for owner in self._owners:
            ports = [port.interface for port in self._system.plan.ports(owner) if port.interface in now]
            rows = [now[name] - counted.get(name, _BEGIN) for name in ports]
            received, sent = (
                sum(getattr(row, what) for row in rows) / seconds for what in ("rx_packets", "tx_packets")
            )
            cpus = (now_s.get(owner, 0.0) - used_s.get(owner, 0.0)) / seconds
            limit = self._limits.get(owner)
            full = limit is not None and cpus >= _FULL * limit
            total += cpus
            yield (owner, "cpu_percent"), 100 * cpus
            yield (owner, "helper_percent"), 100 * cpus
            yield (owner, "throttled_percent"), 100 * max(0.0, 1 - limit) if full and limit is not None else 0.0
            yield (owner, "rx_pps"), received
            yield (owner, "tx_pps"), sent
            yield (owner, "rx_dropped_pps"), sum(row.rx_dropped for row in rows) / seconds
            yield (owner, "tx_dropped_pps"), sum(row.tx_dropped for row in rows) / seconds
            busy = full or cpus >= _FULL
            yield (owner, "voluntary_switches"), 0.0 if busy else received / _BATCH
            yield (owner, "involuntary_switches"), float(_HZ) if busy else 0.0
        yield (HOST, "all_system_percent"), 100 * total
        yield (
            (HOST, "all_switches"),
            sum(now[name].rx_packets - counted.get(name, _BEGIN).rx_packets for name in now) / (_BATCH * seconds),
        )
