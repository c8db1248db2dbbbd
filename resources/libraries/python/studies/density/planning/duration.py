"""Expected duration of a density test on a testbed."""

from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.studies.density.planning.extras import Extras, estimate_s

_OVERHEAD_S = {World.LOCAL: 0.05, World.SIM: 0.5, World.LAB: 0.15}
"""Of a trial besides sending: measured locally; the default of the simulation; what is promised for a lab."""
_DEPLOY_S = {World.LOCAL: 1.0, World.SIM: 0.0, World.LAB: 30.0}
"""Bringing a cell of containers up and removing it."""
_BOOT_S = 4.0
"""A guest's boot in software emulation; 3.5 s measured. On few cores guests boot one after another."""


def test_s(topology: Topology, cell: Cell, profile: SearchProfile, test_type: TestType, extras: Extras) -> float:
    """Estimate the seconds of one test; of a virtual clock in a simulation."""
    overhead_s = _OVERHEAD_S[topology.world]
    if topology.simulation is not None:
        overhead_s = float(topology.simulation.get("overhead_s", overhead_s))
    return estimate_s(
        profile,
        test_type,
        trial_overhead_s=overhead_s,
        deploy_s=_deploy_s(topology, cell),
        extras=extras,
        is_shared=topology.world is World.LOCAL,
    )


def _deploy_s(topology: Topology, cell: Cell) -> float:
    """Bringing a cell up and removing it."""
    boots = topology.world is World.LOCAL and cell.service_type is ServiceType.VSC
    return _DEPLOY_S[topology.world] + (_BOOT_S * cell.nf_count if boots else 0.0)
