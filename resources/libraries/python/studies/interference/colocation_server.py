"""One server on which groups of network functions are deployed, one group at a time."""

from functools import cache

from resources.libraries.python.errors import PlanError, SystemBroken
from resources.libraries.python.model.cell import Cell, Dimensions, Frame, ServiceType, TestType
from resources.libraries.python.model.function import Limits
from resources.libraries.python.model.kinds import are_vms
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Asked
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.model.trial import Protocol
from resources.libraries.python.planning.linerate import line_rate_pps, max_rate
from resources.libraries.python.planning.plan import digest
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.interference.colocation_trial import calibration
from resources.libraries.python.studies.interference.model.record import InterferenceSpec
from resources.libraries.python.studies.interference.planning import first_instances
from resources.libraries.python.studies.sweep.load_steps import capacity
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.parts import Testbed

LEAST_PPS = 1000.0
"""Smallest rate of a working network function."""
_FREE = Limits()


class SharedServer:
    """Deploys and removes groups, each in the places that the largest one has.

    Args:
        topology: The testbed.
        world: Where to deploy, opened by the caller.
        spec: Has the network functions.
        protocol: Of the load.
    """

    def __init__(self, topology: Topology, world: Testbed, spec: InterferenceSpec, protocol: Protocol | None) -> None:
        self._topology = topology
        self._world = world
        self._spec = spec
        self._protocol = protocol
        self._contenders = {contender.name: contender for contender in spec.contenders}
        self._deployed: tuple[CellUnderTest, Plan] | None = None
        self.plan = cache(self._planned)
        """Of a group with the limits of each; raises PlanError where they do not fit."""

    def plan_digest(self, group: tuple[str, ...], limits: Limits = _FREE) -> str:
        """Return the digest of the plan of a group; raises PlanError where they do not fit."""
        return digest(self.plan(group, limits))

    def deploy(
        self, group: tuple[str, ...], frame: Frame, limits: Limits = _FREE, repetition: int = 0
    ) -> CellUnderTest:
        """Bring a group to life, for packets of one size.

        Raises:
            CsitError: One of them does not start.
        """
        plan = self.plan(group, limits)
        asked = Asked(test_type=TestType.MRR, cell=plan.cell, frame=frame, profile=QUICK, repetition=repetition)
        cell = CellUnderTest(self._topology, self._world, asked)
        self._deployed = cell, plan
        cell.deploy(plan)
        return cell

    def remove(self) -> str | None:
        """Remove what is deployed, if anything is; return what went wrong, None when nothing did."""
        deployed, self._deployed = self._deployed, None
        return deployed[0].remove(deployed[1]) if deployed else None

    def carried_pps(self, group: tuple[str, ...], frame: Frame) -> float:
        """Return the throughput of co-located network functions in a short trial.

        Sum of both directions; 0 where next to nothing.

        They are to be removed afterwards.

        Raises:
            SystemBroken: Nothing arrives, and a part is not well.
            CsitError: One of them does not start.
        """
        cell = self.deploy(group, frame)

        def offer(load_pps: float) -> tuple[float, float]:
            result = cell.measure(calibration(frame, load_pps, self._protocol))
            return result.offered_pps, result.forwarded_pps

        found_pps = capacity(offer, cell.highest_loads().search_pps, LEAST_PPS)
        if not found_pps and (problems := cell.problems()):
            raise SystemBroken("; ".join(problems))
        return found_pps

    def line_share_pps(self, group: tuple[str, ...], frame: Frame) -> float | None:
        """An equal part of the line for each of a group, one way; None where no port's rate is known."""
        if line := max_rate(self.plan(group), frame):
            return line.flow_pps
        rates = [port.rate_bps for port in self._topology.tg.interfaces.values() if port.rate_bps is not None]
        return line_rate_pps(min(rates), frame) / len(group) if rates else None

    def _planned(self, group: tuple[str, ...], limits: Limits = _FREE) -> Plan:
        """Plan with places for the largest group: a single NF runs where it runs with neighbours."""
        most = self._spec.together
        row = [self._contenders[name] for name in (*group, *group[:1] * (most - len(group)))]
        kinds = tuple(contender.kind for contender in row)
        programs = tuple(contender.program for contender in row)
        cell = Cell(
            service_type=ServiceType.VSC if are_vms(kinds) else ServiceType.CSC,
            **Dimensions(most, 1).columns,
            nf_sizes=(self._spec.size,),
            instance_kinds=kinds,
            programs=programs if any(programs) else (),
            limits=() if limits == _FREE else (limits,) * most,
        )
        asked = Asked(test_type=TestType.MRR, cell=cell, frame=self._spec.frame, profile=QUICK)
        plan = CellUnderTest(self._topology, self._world, asked).plan()
        try:
            return first_instances(plan, len(group)) if len(group) < most else plan
        except ValueError as error:
            raise PlanError(f"network functions cannot be measured alone on this testbed: {error}") from error
