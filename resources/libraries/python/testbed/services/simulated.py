"""A sizing on the simulated testbed."""

from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.drivers.sim.service_model import SimulatedService, load_simulated_service
from resources.libraries.python.drivers.sim.sizing import SimOrchestrator, VirtualTime
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.studies.sizing.model.load import Specifications

SIMULATION_FILE = "simulation.json"
"""Beside the deployment specification."""


@dataclass(frozen=True, slots=True)
class SimulatedSizing:
    """What `run_sizing` needs there."""

    orchestrator: SimOrchestrator
    time: VirtualTime
    simulated: SimulatedService
    """The truth, for the record."""


def simulated_sizing(asked: Specifications, folder: Path) -> SimulatedSizing:
    """Make a service of the simulated testbed.

    Args:
        asked: The specifications; their scripts are not run.
        folder: Of the deployment specification, with `simulation.json`.

    Raises:
        Unsupported: Nobody has said how this service behaves.
        ConfigError: The file does not fit.
    """
    path = folder / SIMULATION_FILE
    if not path.is_file():
        raise Unsupported(f"{asked.deployment.vnf_name} cannot be simulated: there is no {path}")
    simulated = load_simulated_service(path, asked.deployment)
    time = VirtualTime()
    return SimulatedSizing(SimOrchestrator(simulated, asked.deployment, asked.workload, time), time, simulated)
