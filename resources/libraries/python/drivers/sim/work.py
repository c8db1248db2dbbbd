"""How busy simulated data threads are: in proportion to the load, all the time at their limit."""

from collections import Counter
from collections.abc import Mapping

from resources.libraries.python.drivers.sim.impairment import Impairment
from resources.libraries.python.drivers.sim.truth import cpu_time_left
from resources.libraries.python.model.counters import CpuTime, Sample, ThreadTime
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import GENERATOR, VSWITCH


class WorkAccounts:
    """Accounts of all data threads of a plan, each of which serves its ports for equal times.

    Args:
        plan: Has the threads and their CPUs.
        idle: By owner the share of its data threads, the last ones, that never have work.
        faults: By NF.
    """

    def __init__(self, plan: Plan, idle: Mapping[str, float], faults: Mapping[str, Impairment]) -> None:
        owners = (GENERATOR, VSWITCH, *(each.name for each in plan.all_nfs))
        # A generator on a machine of its own has no CPUs here.
        self._cpus = {owner: cpus for owner in owners if (cpus := plan.cores.cpus(owner))}
        ports = (port for link in plan.links for port in (link.a, link.b))
        self._ports = [port for port in ports if port.owner in self._cpus]
        self._copies = {name for segment in plan.segments for name in segment.copies}
        """Ports that nothing is received from."""
        serving = (port for port in self._ports if port.interface not in self._copies)
        self._served = Counter((port.owner, port.data_thread) for port in serving)
        self._quota = cpu_time_left(plan, faults)
        self._busy_s = dict.fromkeys(self._cpus, 0.0)
        self._working = {
            owner: max(1, round(len(cpus) * (1 - idle.get(owner, 0.0)))) for owner, cpus in self._cpus.items()
        }

    def add(self, owner: str, share: float, duration_s: float) -> None:
        """Let an owner's data threads work for a share of some time, at most for all of it."""
        if owner in self._busy_s:
            self._busy_s[owner] += min(1.0, share) * self._quota.get(owner, 1.0) * duration_s

    def used_s(self) -> dict[str, float]:
        """CPU time of each owner's data threads since the beginning."""
        return {owner: busy_s * self._working[owner] for owner, busy_s in self._busy_s.items()}

    def sample(self) -> Sample:
        """All accounts since the beginning."""
        threads: dict[str, ThreadTime] = {}
        cpus: dict[int, CpuTime] = {}
        for owner, row in self._cpus.items():
            for index, cpu in enumerate(row):  # also of threads that serve no port: others hand packets to them
                busy_s = self._busy_s[owner] if index < self._working[owner] else 0.0
                cpus[cpu] = CpuTime(0, round(busy_s * 1e9), 0, 0)
        for port in self._ports:
            if port.interface in self._copies:
                threads[port.interface] = ThreadTime(running_ns=0, waiting_ns=0)
                continue
            busy_s = self._busy_s[port.owner] if port.data_thread < self._working[port.owner] else 0.0
            share_ns = busy_s / self._served[port.owner, port.data_thread] * 1e9
            threads[port.interface] = ThreadTime(running_ns=round(share_ns), waiting_ns=0)
        return Sample(threads=threads, cpus=cpus)
