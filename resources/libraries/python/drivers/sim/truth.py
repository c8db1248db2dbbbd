"""What a simulated cell can forward and what limits it: known, so that what is measured can be compared with it."""

from math import inf

from resources.libraries.python.drivers.sim.capacity import (
    capacity_pps,
    limiting_node,
    nfs_pps,
    used_cores,
    vswitch_pps,
)
from resources.libraries.python.drivers.sim.simulation import Simulation
from resources.libraries.python.model.cell import Frame
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import GENERATOR, VSWITCH


class Truth:
    """Capacities of a plan's owners.

    Args:
        plan: The cell.
        simulation: Its behaviour.
    """

    def __init__(self, plan: Plan, simulation: Simulation) -> None:
        self._nfs = plan.nfs
        # What the cell leaves to the testbed, the plan has decided.
        kinds = tuple(function.kind for function in plan.functions if function.instance == 1)
        self._cell = plan.cell.model_copy(update={"nf_kinds": kinds})
        self._simulation = simulation

    def capacity_pps(self, frame: Frame) -> float:
        """Aggregate packets per second that the cell can forward."""
        return self._simulation.capacity_scale * capacity_pps(self._cell, frame, self._simulation.scales_to)

    def limit_owners(self, frame: Frame) -> frozenset[str]:
        """Whose loss it is when more is offered than the cell can forward."""
        if self._simulation.limited_by is not None:
            return frozenset({self._simulation.limited_by})
        node = limiting_node(self._cell, frame, self._simulation.scales_to)
        if node is None:
            return frozenset({VSWITCH})
        return frozenset(function.name for function in self._nfs if function.node == node)

    def rates(self, frame: Frame, generator_pps: float) -> dict[str, float]:
        """What each owner could forward, aggregate pps; endless for one that drops without being busy.

        Args:
            frame: Of the trial.
            generator_pps: What the generator can.
        """
        simulation, cell = self._simulation, self._cell
        scale, most = simulation.capacity_scale, simulation.scales_to
        rates = {GENERATOR: generator_pps, VSWITCH: scale * vswitch_pps(cell, frame)}
        rates |= {function.name: scale * nfs_pps(cell, function.node, most) for function in self._nfs}
        if simulation.limited_by is not None:
            rates = {owner: 2 * rate_pps for owner, rate_pps in rates.items()}
        limit_pps = inf if simulation.drops_inside else self.capacity_pps(frame)
        return rates | dict.fromkeys(self.limit_owners(frame), limit_pps)

    def idle(self) -> dict[str, float]:
        """The share of an NF's data threads that never have work; NFs that scale to all of them are left out."""
        most = self._simulation.scales_to
        shares = {
            function.name: 1 - used_cores(self._cell, function.node, most) / function.size.cores
            for function in self._nfs
        }
        return {name: share for name, share in shares.items() if share > 0}
