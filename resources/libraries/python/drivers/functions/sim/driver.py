"""Simulated network functions."""

from collections.abc import Mapping

from resources.libraries.python.drivers.sim.system import SimulatedSystem, planned_cpus
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.disturbance import Disturbance, Happened


class SimFunctions:
    """Fulfils `roles.NetworkFunctions` on a simulated system."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system
        self._names = frozenset(each.name for each in system.plan.all_nfs)

    def start(self) -> None:
        self._system.running.update(self._names)

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """As planned: simulated threads stay where they are put."""
        return planned_cpus(self._system.plan, self._names, self._system.moved())

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._system.counters(self._names)

    def disturb(self, coming: Disturbance) -> None:
        """Let an event take place in the next trial with a timeline."""
        self._system.events.disturb(coming)

    def disturbed(self) -> tuple[Happened, ...]:
        """When it took place, in virtual time."""
        return self._system.events.disturbed()

    def facts(self) -> Mapping[str, str]:
        return {}

    def problems(self) -> tuple[str, ...]:
        return tuple(f"simulated {name} does not run" for name in sorted(self._names - self._system.running))

    def stop(self) -> None:
        self._system.running.difference_update(self._names)
