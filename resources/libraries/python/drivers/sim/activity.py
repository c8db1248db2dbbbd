"""What the owners of a simulated system did between two moments: the truth behind simulated features and graphs."""

from collections.abc import Iterator
from dataclasses import dataclass

from resources.libraries.python.drivers.sim.impairment import impaired
from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.planning.names import VSWITCH

BATCH = 16
"""Packets after which a data thread that keeps up has nothing to do for a moment."""
HZ = 250
"""Times a second at which a data thread that never has nothing to do is looked at by the scheduler."""
_FULL = 0.97
"""Of what it may use, with the noise of the capacity: from there on an owner is never idle."""
_NOTHING = InterfaceCounters(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Did:
    """One owner, all its ports together. Amounts are for each second."""

    owner: str
    cpus: float
    """CPU time used."""
    limit: float | None
    """CPU time that it may use, where it has a limit."""
    given: float
    """CPUs that a co-located load leaves of its own."""
    threads: int
    """Data threads, each on a CPU of its own."""
    received: float
    sent: float
    rx_dropped: float
    tx_dropped: float

    @property
    def held_back(self) -> float:
        """Share of the time that its limit kept it from its CPUs."""
        if self.limit is None or self.cpus < _FULL * self.limit:
            return 0.0
        return max(0.0, 1 - self.limit / self.threads)

    @property
    def waited(self) -> float:
        """CPUs' worth of time in which it was ready to run and a co-located load had the CPU."""
        return self.cpus * (self.threads / self.given - 1) if self.given else 0.0

    @property
    def is_full(self) -> bool:
        """Whether it never had nothing to do."""
        return self.held_back > 0 or self.cpus >= _FULL * self.given > 0


class ActivityInterval:
    """From its making on.

    Args:
        system: The simulated system.
    """

    def __init__(self, system: SimulatedSystem) -> None:
        plan = system.plan
        self._system = system
        self._limits = {each.name: each.limits.cpu for each in plan.all_nfs}
        self._faults = impaired(plan, system.simulation.impaired)
        self._owners = (VSWITCH, *self._limits)
        self._begin_s = system.clock.now()
        self._used_s = system.used_s()
        self._counters = system.counters(frozenset(self._owners))

    @property
    def seconds(self) -> int:
        """Whole seconds of the system's clock until now. What is beyond is time between trials, without load."""
        return int(self._system.clock.now() - self._begin_s)

    def did(self) -> Iterator[Did]:
        """The vSwitch, then each NF; empty in the first second."""
        seconds, used_s = self.seconds, self._system.used_s()
        now = self._system.counters(frozenset(self._owners))
        for owner in self._owners if seconds else ():
            ports = [port.interface for port in self._system.plan.ports(owner) if port.interface in now]
            threads = len(self._system.plan.cores.cpus(owner))
            stolen = self._faults[owner].stolen_ratio if owner in self._faults else 0.0
            rows = [now[name] - self._counters.get(name, _NOTHING) for name in ports]
            yield Did(
                owner=owner,
                cpus=(used_s.get(owner, 0.0) - self._used_s.get(owner, 0.0)) / seconds,
                limit=self._limits.get(owner),
                given=threads * (1 - stolen),
                threads=threads,
                received=sum(row.rx_packets for row in rows) / seconds,
                sent=sum(row.tx_packets for row in rows) / seconds,
                rx_dropped=sum(row.rx_dropped for row in rows) / seconds,
                tx_dropped=sum(row.tx_dropped for row in rows) / seconds,
            )
