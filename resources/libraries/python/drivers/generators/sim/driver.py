"""A simulated traffic generator."""

from collections.abc import Mapping

from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.errors import NotReady
from resources.libraries.python.model.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.planning.names import GENERATOR


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
