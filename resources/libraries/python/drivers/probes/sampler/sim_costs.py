"""What simulated network functions use from one moment to another."""

from collections.abc import Mapping

from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.model.counters import Cost


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
