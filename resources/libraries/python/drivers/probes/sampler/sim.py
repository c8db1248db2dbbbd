"""Simulated use of CPUs."""

from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.model.counters import Sample


class SimSampler:
    """Fulfils `roles.sampler.Sampler` on a simulated system."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system

    def read(self) -> Sample:
        """Times since virtual time began."""
        return self._system.sample()
