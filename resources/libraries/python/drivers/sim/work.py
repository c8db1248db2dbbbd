"""How busy simulated data threads are: in proportion to the load, all the time at their limit."""

from collections import Counter

from resources.libraries.python.model.counters import CpuTime, Sample, ThreadTime
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import GENERATOR, VSWITCH


class Work:
    """Accounts of all data threads of a plan, each of which serves its ports for equal times."""

    def __init__(self, plan: Plan) -> None:
        owners = (GENERATOR, VSWITCH, *(function.name for function in plan.functions))
        # A generator on a machine of its own has no CPUs here.
        self._cpus = {owner: cpus for owner in owners if (cpus := plan.cores.cpus(owner))}
        ports = (port for link in plan.links for port in (link.a, link.b))
        self._ports = [port for port in ports if port.owner in self._cpus]
        self._served = Counter((port.owner, port.data_thread) for port in self._ports)
        self._busy_s = dict.fromkeys(self._cpus, 0.0)

    def add(self, owner: str, share: float, duration_s: float) -> None:
        """Let an owner's data threads work for a share of some time, at most for all of it."""
        if owner in self._busy_s:
            self._busy_s[owner] += min(1.0, share) * duration_s

    def sample(self) -> Sample:
        """All accounts since the beginning."""
        threads: dict[str, ThreadTime] = {}
        cpus: dict[int, CpuTime] = {}
        for port in self._ports:
            busy_s = self._busy_s[port.owner]
            share_ns = busy_s / self._served[port.owner, port.data_thread] * 1e9
            threads[port.interface] = ThreadTime(running_ns=round(share_ns), waiting_ns=0)
            cpus[self._cpus[port.owner][port.data_thread]] = CpuTime(0, round(busy_s * 1e9), 0, 0)
        return Sample(threads=threads, cpus=cpus)
