"""A simulated vSwitch."""

from collections.abc import Mapping

from resources.libraries.python.drivers.sim.system import SimulatedSystem, planned_cpus
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.disturbance import Disturbance, Happened
from resources.libraries.python.planning.names import VSWITCH


class SimSwitch:
    """Fulfils `roles.VSwitch` on a simulated system."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system

    def start(self) -> None:
        self._system.running.add(VSWITCH)

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """As planned: simulated threads stay where they are put."""
        return planned_cpus(self._system.plan, frozenset({VSWITCH}), self._system.moved())

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._system.counters(frozenset({VSWITCH}))

    def disturb(self, coming: Disturbance) -> None:
        """Let an event take place in the next trial with a timeline."""
        self._system.events.disturb(coming)

    def disturbed(self) -> tuple[Happened, ...]:
        """When it took place, in virtual time."""
        return self._system.events.disturbed()

    def facts(self) -> Mapping[str, str]:
        return {}

    def problems(self) -> tuple[str, ...]:
        return () if VSWITCH in self._system.running else ("the simulated vSwitch does not run",)

    def stop(self) -> None:
        self._system.running.discard(VSWITCH)
