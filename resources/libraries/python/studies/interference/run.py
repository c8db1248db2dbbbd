"""A study of interference from plan to record: the phases of its keywords, without Robot."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property

from resources.libraries.python.errors import (
    ConfigError,
    CsitError,
    NoTraffic,
    PlanError,
    RunStopped,
    SystemBroken,
    Unsupported,
)
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.measurements.counters import Cost, ProcessedPackets
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, Dimensions, Frame, ServiceType, TestType
from resources.libraries.python.model.request.kinds import Limits, are_vms
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.linerate import line_rate_pps, max_rate
from resources.libraries.python.planning.plan import drivers_of
from resources.libraries.python.planning.traffic import datagrams_of
from resources.libraries.python.quantities import counted, rate
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.interference.analysis.placement import PlacementVerification
from resources.libraries.python.studies.interference.analysis.sentences import headline, sentences
from resources.libraries.python.studies.interference.analysis.study import analyse, colocated, to_place
from resources.libraries.python.studies.interference.analysis.tables import interference_tables
from resources.libraries.python.studies.interference.model import (
    ColocationMeasurement,
    Contender,
    Interference,
    InterferenceRecord,
    InterferenceSpec,
    Resource,
)
from resources.libraries.python.studies.interference.planning import (
    PlannedMeasurement,
    cost,
    cpu_share,
    first_instances,
    more_turns,
    schedule,
)
from resources.libraries.python.studies.shared.step_study import StepStudy
from resources.libraries.python.studies.sweep.analysis.seconds import mean_delay_s, probes_pps
from resources.libraries.python.studies.sweep.load_steps import capacity
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.health import reason_of
from resources.libraries.python.testbed.deployment.parts import Testbed

_MIN_PPS = 1000.0
"""Smallest rate of a working network function."""
_FREE = Limits()
_TARGET = 1
"""The service instance that is measured; its neighbours are the others."""
_WAYS = 2
_GLANCE_S = 0.2
_ABOVE = 1.2
"""The load above what the fastest carries alone: then each shows all that it can do."""


def measurement_of(
    cell: CellUnderTest,
    turn: PlannedMeasurement,
    spec: InterferenceSpec,
    load_pps: float,
    protocol: Protocol | None,
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
    target = next(function for function in plan.functions if function.instance == _TARGET)
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
    sent = sum(flow.sent for flow in result.flows if flow.instance == _TARGET)
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
        response_s=mean_delay_s((row.mean_ns, row.received) for row in result.latency if row.instance == _TARGET),
        cpu=None if cost.cpu_s is None else cost.cpu_s / result.offered_duration_s,
        memory_bytes=cost.memory_bytes,
        cache_misses=cost.cache_misses,
    )


def missing(cell: CellUnderTest) -> dict[str, str]:
    """Quantities unknown for all network functions of a measured cell, with reasons."""
    costs = cell.deployment.parts.costs
    return dict(costs.facts()) if costs is not None else {}


def _briefly_carried_pps(cell: CellUnderTest, frame: Frame, protocol: Protocol | None) -> float:
    """Return the throughput of co-located network functions in a short trial.

    Sum of both directions; 0 where next to nothing.

    Raises:
        SystemBroken: Nothing arrives, and a part is not well.
    """

    def offer(load_pps: float) -> tuple[float, float]:
        trial = Trial(load_pps=load_pps, duration_s=_GLANCE_S, frame=frame, purpose="calibration", protocol=protocol)
        result = cell.measure(trial)
        return result.offered_pps, result.forwarded_pps

    found_pps = capacity(offer, cell.highest_loads().search_pps, _MIN_PPS)
    if not found_pps and (problems := cell.problems()):
        raise SystemBroken("; ".join(problems))
    return found_pps


def _done(result: TrialResult, before: ProcessedPackets | None, after: ProcessedPackets | None) -> int:
    """Packets of the load, both ways: what the target says itself but for probes, or what arrived behind it."""
    if before is not None and after is not None:
        probes = sum(row.received for row in result.latency if row.instance == _TARGET)
        return max(0, (after - before).packets - probes)
    return sum(flow.received for flow in result.flows if flow.instance == _TARGET)


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


class LoadsFound(Frozen):
    """Each network function was deployed alone: which of them start, and what they carry."""

    loads_pps: tuple[float, ...]
    """Offered to each, one way, at each frame size and load of the study."""
    network_pps: dict[str, float]
    """One-way capacity of the network by frame size, if a share is guaranteed and no port has a known rate."""
    contenders: tuple[Contender, ...]
    """Stand-ins in the place of those that do not start."""
    absent: tuple[str, ...]
    """Names of those that do not start and have no stand-in."""


class InterferenceTest(StepStudy[InterferenceSpec, PlannedMeasurement, ColocationMeasurement, Interference]):
    """Deploys one set of co-located network functions at a time, and compares what each does there."""

    RECORD = InterferenceRecord
    ROW = ColocationMeasurement
    LOAD = LoadsFound
    MEASURED = "measurements were made"
    SPECIFICATION = InterferenceSpec
    tables = staticmethod(interference_tables)
    headline = staticmethod(headline)
    sentences = staticmethod(sentences)

    def set_up(self) -> None:
        self.cost = cost(self.spec)
        self._names = tuple(contender.name for contender in self.spec.contenders)
        self._protocol = datagrams_of(self._topology.tg.generator.driver)
        self._server = SharedServer(self._topology, self._world, self.spec)
        self._absent: frozenset[str] = frozenset()
        self._network_pps: dict[str, float] = {}
        """One-way capacity of the network by frame size, if the rate of its ports is unknown."""
        self._asked = 0
        """Measurements that were planned so far, those of absent network functions included."""
        self._repetitions = self.spec.repetitions
        """Repetitions so far; each further one has another number."""

    def plan(self) -> None:
        """Derive the plans of all sets.

        Raises:
            PlanError: The testbed lacks a kind of network function, or so many do not fit.
        """
        offered = {*self._topology.dut.offered, self._topology.dut.vms}
        for contender in self.spec.contenders:
            if contender.kind not in offered:
                self._stand_in(contender.name, f"the testbed has no {contender.kind}")
        plan = self._name_parts()  # first: many contenders make very many sets
        for turn in schedule(self.spec):
            self._server.plan((turn.target, *turn.against))
        self.draft.warnings.extend(plan.warnings)

    def _name_parts(self) -> Plan:
        plan = self.draft.plan = self._server.plan(self._names[:1] * self.spec.together)
        kinds = tuple(dict.fromkeys(contender.kind for contender in self.spec.contenders))
        cell = plan.cell.model_copy(update={**Dimensions(len(kinds), 1).columns, "instance_kinds": kinds})
        self.draft.drivers = drivers_of(self._topology, cell, self._world.drivers)
        return plan

    def preview(self) -> list[str]:
        spec, simulated = self.spec, self._topology.world is World.SIM
        names = ", ".join(contender.name for contender in spec.contenders)
        twice = "".join(f", once more with guaranteed {each.words}" for each in spec.guarantee)
        rounds = f"{counted(spec.repetitions, 'repetition')}{twice}"
        most = "at most " if spec.verify else ""
        count = f"{most}{self.cost.runs} {'simulated ' if simulated else ''}measurements"
        return [f"{count} of {names}, alone and up to {spec.together} together, {rounds}{self.about}"]

    def prepare(self) -> None:
        """See `StepStudy`; the stand-ins and the network of an earlier run stay."""
        super().prepare()
        self._absent, self._network_pps = frozenset(self.load.absent), dict(self.load.network_pps)
        if self.load.contenders != self.spec.contenders:
            self._put(self.load.contenders)
            self._name_parts()

    def find_load(self) -> LoadsFound:
        """Find the load of each at each point: as asked, or more than the fastest carries alone.

        Deploys each alone, which reveals those that do not start.

        Raises:
            Unsupported: None of them starts.
            NoTraffic: Next to nothing comes back from any of them.
        """
        fastest_pps = {frame.name: self._fastest_pps(frame) for frame in self.spec.frames or (self.spec.frame,)}
        found = tuple(load_pps or _ABOVE * fastest_pps[frame.name] / _WAYS for frame, load_pps in self.spec.points())
        return LoadsFound(
            loads_pps=found,
            network_pps=self._network_pps,
            contenders=self.spec.contenders,
            absent=tuple(sorted(self._absent)),
        )

    def load_in_words(self) -> Iterator[str]:
        for contender in self.spec.contenders:
            if contender.stand_in_for:
                yield f"{contender.name} ({contender.kind}) is a stand-in for {contender.stand_in_for}"
        pairs = list(zip(self.spec.points(), self.load.loads_pps, strict=True))
        loads = [rate(pps) if len(pairs) == 1 else f"{frame.name} {rate(pps)}" for (frame, _), pps in pairs]
        yield f"{', '.join(loads)} offered to each, one way"

    def _fastest_pps(self, frame: Frame) -> float:
        carried = self._alone(frame)
        fastest_pps = max(carried.values())
        if not fastest_pps:
            raise NoTraffic(
                f"no load of {frame.name} from {rate(_MIN_PPS)} was received from any of {', '.join(carried)}"
            )
        if (
            Resource.NETWORK in self.spec.guarantee
            and self._server.line_share_pps((next(iter(carried)),), frame) is None
        ):
            self._network_pps[frame.name] = self._network(carried, frame) / _WAYS
        return fastest_pps

    def steps(self) -> Iterator[Sequence[PlannedMeasurement]]:
        every = schedule(self.spec)
        turns = [turn for turn in every if not self._absent & {turn.target, *turn.against}]
        absent = f"{', '.join(sorted(self._absent))} did not start alone"
        self.failures = [absent] * (len(every) - len(turns))
        self._asked = len(every)
        yield turns
        yield from self._verifying()

    def _verifying(self) -> Iterator[Sequence[PlannedMeasurement]]:
        """Measurements of the best placements as they are, where the specification asks for it."""
        servers = self.spec.servers
        if not self.spec.verify or len(self._names) - len(self._absent) <= len(servers):
            return
        self.conclude()
        left = to_place(self.result(), servers)
        verification = PlacementVerification(servers, left, self.spec.verify, self._server.places)
        try:
            while groups := verification.next_groups(colocated(self.result())):
                turns = more_turns(self.spec, groups, self._asked, self._repetitions)
                self._asked += len(turns)
                self._repetitions += self.spec.repetitions
                yield turns
                self.conclude()
        except ConfigError as error:
            self.notes.append(f"no placement is verified: {error}")

    def key(self, turn: PlannedMeasurement) -> str:
        points = len(self.spec.points())
        point = f", point {turn.point + 1} of {points}" if points > 1 else ""
        guaranteed = f" with guaranteed {turn.guarantee.words}" if turn.guarantee else ""
        return f"{self.label(turn)}{guaranteed}{point}, repetition {turn.repetition + 1}"

    def label(self, turn: PlannedMeasurement) -> str:
        return f"{turn.target} beside {', '.join(turn.against)}" if turn.against else f"{turn.target} alone"

    def in_words(self, measurement: ColocationMeasurement) -> str:
        return rate(measurement.throughput_pps)

    def analyse(self, measurements: Sequence[ColocationMeasurement]) -> Interference | None:
        if not measurements:
            return None
        places = self._server.places if self.spec.verify else None
        found = analyse(self.spec, measurements, self.notes, places)
        return found.model_copy(update={"asked": self._asked})

    def plan_of(self, turn: PlannedMeasurement) -> Plan:
        return self._server.plan((turn.target, *turn.against), self._limits(turn))

    def cell_of(self, turn: PlannedMeasurement) -> CellUnderTest:
        frame, _ = self.spec.points()[turn.point]
        return self.under_test(self.plan_of(turn).cell, frame, repetition=turn.repetition)

    def _limits(self, turn: PlannedMeasurement) -> Limits:
        frame, _ = self.spec.points()[turn.point]
        group = (turn.target, *turn.against)
        if turn.guarantee is Resource.CPU:
            return Limits(cpu=cpu_share(self._server.plan(group)))
        if turn.guarantee is None:
            return _FREE
        # Of the line or, where its rate is not known, of what the network was seen to carry.
        share_pps = self._server.line_share_pps(group, frame) or self._network_pps[frame.name] / len(group)
        return Limits(network_pps=share_pps)

    def measure(self, turn: PlannedMeasurement) -> ColocationMeasurement:
        cell = self.deploy(turn)
        found = measurement_of(cell, turn, self.spec, self.load.loads_pps[turn.point], self._protocol)
        for what, why in missing(cell).items():
            self.note(f"{what} were not counted: {why}")
        return found

    def _network(self, carried: Mapping[str, float], frame: Frame) -> float:
        """Lower bound of the network's capacity, both directions: the fastest alone, or several of it together."""
        fastest = max(carried, key=lambda name: carried[name])
        try:
            together_pps = self._carried_pps((fastest,) * self.spec.together, frame)
        except RunStopped:
            raise
        except (CsitError, OSError) as error:
            self.note(f"the capacity of the network is assumed to be that of {fastest} alone: {reason_of(error)}")
            together_pps = 0.0
        return max(carried[fastest], together_pps)

    def _alone(self, frame: Frame) -> dict[str, float]:
        """Throughput of each alone; those that do not start are left out of the study, with a note."""
        carried: dict[str, float] = {}
        reasons: list[str] = []
        for name in self._names:
            if name in self._absent:
                continue
            try:
                carried[name] = self._carried_alone_pps(name, frame)
            except RunStopped:
                raise
            except (CsitError, OSError) as error:
                reasons.append(f"{name} is left out: {reason_of(error)}")
        if not carried:
            raise Unsupported("; ".join(reasons))
        self._absent = frozenset(self._names) - carried.keys()
        for reason in reasons:
            self.note(reason)
        return carried

    def _carried_alone_pps(self, name: str, frame: Frame) -> float:
        """Throughput of one alone; where it does not start and has a stand-in, what that carries."""
        try:
            return self._carried_pps((name,), frame)
        except RunStopped:
            raise
        except (CsitError, OSError) as error:
            if not self._stand_in(name, reason_of(error)):
                raise
        self._name_parts()
        return self._carried_alone_pps(name, frame)

    def _carried_pps(self, group: tuple[str, ...], frame: Frame) -> float:
        def measure() -> float:
            plan = self._server.plan(group)
            return _briefly_carried_pps(self.bring_up(self.under_test(plan.cell, frame), plan), frame, self._protocol)

        return self.careful(f"{group[0]} alone" if len(group) == 1 else " beside ".join(group), measure)

    def _stand_in(self, name: str, why: str) -> bool:
        """Have a network function replaced by its stand-in; false where it has none."""
        one = next(contender for contender in self.spec.contenders if contender.name == name)
        if one.stand_in is None:
            return False
        self.note(f"{name} is measured as {one.stand_in}: {why}")
        self._put(tuple(one.replaced() if each is one else each for each in self.spec.contenders))
        return True

    def _put(self, contenders: tuple[Contender, ...]) -> None:
        """Have others in the places of the network functions, under the same names."""
        self.spec = self.spec.model_copy(update={"contenders": contenders})
        self._server = SharedServer(self._topology, self._world, self.spec)
