"""Plans of groups of network functions on one server, and the measurement of one of a group."""

from contextlib import suppress
from functools import cache, cached_property

from resources.libraries.python.errors import CsitError, PlanError, SystemBroken
from resources.libraries.python.model.measurements.counters import Cost, ProcessedPackets
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, Dimensions, Frame, ServiceType, TestType
from resources.libraries.python.model.request.kinds import Limits, are_vms
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.linerate import line_rate_pps, max_rate
from resources.libraries.python.quantities import rate
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.interference.model import ColocationMeasurement, InterferenceSpec, Resource
from resources.libraries.python.studies.interference.planning import PlannedMeasurement, first_instances
from resources.libraries.python.studies.sweep.analysis.seconds import mean_delay_s, probes_pps
from resources.libraries.python.studies.sweep.load_steps import capacity
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.parts import Testbed

MIN_PPS = 1000.0
"""Smallest rate of a working network function."""
_FREE = Limits()


TARGET = 1
"""The service instance that is measured; its neighbours are the others."""
_WAYS = 2
_GLANCE_S = 0.2


def measurement_of(
    cell: CellUnderTest,
    turn: PlannedMeasurement,
    spec: InterferenceSpec,
    load_pps: float,
    protocol: Protocol | None = None,
) -> ColocationMeasurement:
    """Load all that is deployed alike, and see what becomes of the target.

    `cell`: deployed; its first service instance is the target.
    `load_pps`: offered to each, one way.
    `protocol`: of the load; None for what the generator sends as a rule.

    Raises:
        SystemBroken: A part died.
        CsitError: The generator sent nothing to the target.
    """
    deployment = cell.deployment
    frame, _ = spec.points()[turn.point]
    plan, parts = deployment.plan, deployment.parts
    target = next(function for function in plan.functions if function.instance == TARGET)
    trial = Trial(
        load_pps=_WAYS * load_pps * len(plan.cell.instances),
        duration_s=spec.duration_s,
        frame=frame,
        probe_pps=probes_pps(plan, load_pps * len(plan.cell.instances)),
        purpose="interference",
        protocol=protocol,
    )
    if parts.costs is not None:
        parts.costs.start()
    try:
        before = parts.functions.processed()
        result = cell.measure(trial)
        after = parts.functions.processed()
    finally:
        cost = Cost() if parts.costs is None else parts.costs.stop().get(target.name, Cost())
    if found := cell.problems():
        raise SystemBroken("; ".join(found))
    sent = sum(flow.sent for flow in result.flows if flow.instance == TARGET)
    if not sent or result.offered_duration_s <= 0:
        raise CsitError(f"the generator sent nothing of {rate(load_pps)} to {turn.target}")
    done = _done(result, before.get(target.name), after.get(target.name))
    return ColocationMeasurement(
        target=turn.target,
        against=turn.against,
        repetition=turn.repetition,
        turn=turn.number,
        load_pps=load_pps,
        frame=frame.name,
        point=turn.point,
        guaranteed=turn.guarantee is not None,
        guaranteed_resource=turn.guarantee or Resource.NETWORK,
        limit_pps=target.limits.network_pps,
        limit_cpus=target.limits.cpu,
        throughput_pps=done / result.offered_duration_s / _WAYS,
        loss_ratio=max(0.0, 1.0 - done / sent),
        response_s=mean_delay_s((row.mean_ns, row.received) for row in result.latency if row.instance == TARGET),
        cpu=None if cost.cpu_s is None else cost.cpu_s / result.offered_duration_s,
        memory_bytes=cost.memory_bytes,
        cache_misses=cost.cache_misses,
    )


def missing(cell: CellUnderTest) -> dict[str, str]:
    """Quantities unknown for all network functions of a measured cell, with reasons."""
    costs = cell.deployment.parts.costs
    return dict(costs.facts()) if costs is not None else {}


def carried_pps(cell: CellUnderTest, frame: Frame, protocol: Protocol | None = None) -> float:
    """Return the throughput of co-located network functions in a short trial.

    Sum of both directions; 0 where next to nothing.

    Raises:
        SystemBroken: Nothing arrives, and a part is not well.
    """

    def offer(load_pps: float) -> tuple[float, float]:
        trial = Trial(load_pps=load_pps, duration_s=_GLANCE_S, frame=frame, purpose="calibration", protocol=protocol)
        result = cell.measure(trial)
        return result.offered_pps, result.forwarded_pps

    found_pps = capacity(offer, cell.highest_loads().search_pps, MIN_PPS)
    if not found_pps and (problems := cell.problems()):
        raise SystemBroken("; ".join(problems))
    return found_pps


def _done(result: TrialResult, before: ProcessedPackets | None, after: ProcessedPackets | None) -> int:
    """Packets of the load, both ways: what the target says itself but for probes, or what arrived behind it."""
    if before is not None and after is not None:
        probes = sum(row.received for row in result.latency if row.instance == TARGET)
        return max(0, (after - before).packets - probes)
    return sum(flow.received for flow in result.flows if flow.instance == TARGET)


class SharedServer:
    """Plans groups, each in the places that the largest one has."""

    def __init__(self, topology: Topology, world: Testbed, spec: InterferenceSpec) -> None:
        self._topology = topology
        self._world = world
        self._spec = spec
        self._contenders = {contender.name: contender for contender in spec.contenders}
        self.plan = cache(self._planned)
        """Of a group with the limits of each; raises PlanError where they do not fit."""

    @cached_property
    def places(self) -> int:
        """Network functions for which every plan has a place: of the largest set, or of the largest server that fits.

        Placements are measured as they are only where that was asked for.
        """
        names, together = tuple(self._contenders), self._spec.together
        if self._spec.verify:
            for count in range(len(names), together, -1):
                with suppress(PlanError):
                    self._plan_for(names[:count], _FREE, count)
                    return count
        return together

    def line_share_pps(self, group: tuple[str, ...], frame: Frame) -> float | None:
        """An equal part of the line for each of a group, one way; None where no port's rate is known."""
        if line := max_rate(self.plan(group), frame):
            return line.flow_pps
        rates = [port.rate_bps for port in self._topology.tg.interfaces.values() if port.rate_bps is not None]
        return line_rate_pps(min(rates), frame) / len(group) if rates else None

    def _planned(self, group: tuple[str, ...], limits: Limits = _FREE) -> Plan:
        return self._plan_for(group, limits, self.places)

    def _plan_for(self, group: tuple[str, ...], limits: Limits, most: int) -> Plan:
        """Plan with places for the largest group: a single NF runs where it runs with neighbours."""
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
        asked = MeasurementRequest(test_type=TestType.MRR, cell=cell, frame=self._spec.frame, profile=QUICK)
        plan = CellUnderTest(self._topology, self._world, asked).plan()
        try:
            return first_instances(plan, len(group)) if len(group) < most else plan
        except ValueError as error:
            raise PlanError(f"network functions cannot be measured alone on this testbed: {error}") from error
