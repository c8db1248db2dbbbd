"""Simulated traffic generator, vSwitch and network functions."""

from collections.abc import Mapping

from resources.libraries.python.drivers.sim.system import SimulatedSystem, planned_cpus
from resources.libraries.python.errors import NotReady
from resources.libraries.python.model.connections import ConnectionTable, Deletion
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.disturbance import Disturbance, Happened
from resources.libraries.python.model.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.planning.names import GENERATOR, VSWITCH


class SimGenerator:
    """Fulfils `roles.TrafficGenerator` on a simulated system."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system

    def start(self) -> None:
        self._system.running.add(GENERATOR)

    def run(self, trial: Trial) -> TrialResult:
        """Run one trial in virtual time.

        Raises:
            NotReady: The generator has not been started.
        """
        if GENERATOR not in self._system.running:
            raise NotReady("the simulated generator", 0.0, "not started")
        return self._system.run(trial)

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """Line rate of both directions together."""
        line_pps = self._system.maximum_pps(trial.frame)
        return HighestLoads(offered_pps=line_pps, search_pps=line_pps)

    def facts(self) -> Mapping[str, str]:
        return {}

    def problems(self) -> tuple[str, ...]:
        return () if GENERATOR in self._system.running else ("the simulated generator does not run",)

    def stop(self) -> None:
        self._system.running.discard(GENERATOR)


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
        power = self._system.simulation.power
        if not power.platform_w:
            return {}
        sleeping = f"data threads, sleeping up to {power.sleep_us:g} us when nothing comes"
        return {"scheduling": sleeping if power.sleep_us else "data threads that never sleep"}

    def problems(self) -> tuple[str, ...]:
        return () if VSWITCH in self._system.running else ("the simulated vSwitch does not run",)

    def stop(self) -> None:
        self._system.running.discard(VSWITCH)


class SimFunctions:
    """Fulfils `NetworkFunctions` and `Stateful` of the roles on a simulated system."""

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

    def connection_tables(self) -> Mapping[str, ConnectionTable]:
        """States of the tables of kinds that keep connections."""
        return self._system.tables.states()

    def hold_connections(self, timeout_s: int) -> Mapping[str, ConnectionTable]:
        """Set their timeouts."""
        return self._system.tables.hold(timeout_s)

    def delete_connections(self) -> Mapping[str, Deletion]:
        """Empty them, in virtual time."""
        return self._system.tables.delete()

    def facts(self) -> Mapping[str, str]:
        return {}

    def problems(self) -> tuple[str, ...]:
        return tuple(f"simulated {name} does not run" for name in sorted(self._names - self._system.running))

    def stop(self) -> None:
        self._system.running.difference_update(self._names)
