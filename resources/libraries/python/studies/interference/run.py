"""A study of interference from plan to record: the phases of its keywords, without Robot."""

from collections.abc import Iterator, Mapping, Sequence

from resources.libraries.python.errors import ConfigError, CsitError, NoTraffic, RunStopped, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Dimensions, Frame
from resources.libraries.python.model.request.kinds import Limits
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.planning.plan import drivers_of
from resources.libraries.python.planning.traffic import datagrams_of
from resources.libraries.python.quantities import counted, rate
from resources.libraries.python.studies.interference.analysis.placement import PlacementVerification
from resources.libraries.python.studies.interference.analysis.sentences import headline, sentences
from resources.libraries.python.studies.interference.analysis.study import analyse, colocated, to_place
from resources.libraries.python.studies.interference.analysis.tables import interference_tables
from resources.libraries.python.studies.interference.colocation_server import (
    MIN_PPS,
    SharedServer,
    carried_pps,
    measurement_of,
    missing,
)
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
    more_turns,
    schedule,
)
from resources.libraries.python.studies.shared.step_study import StepStudy
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.health import reason_of

_WAYS = 2
_ABOVE = 1.2
"""The load above what the fastest carries alone: then each shows all that it can do."""
_FREE = Limits()


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
                f"no load of {frame.name} from {rate(MIN_PPS)} was received from any of {', '.join(carried)}"
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
            return carried_pps(self.bring_up(self.under_test(plan.cell, frame), plan), frame, self._protocol)

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
