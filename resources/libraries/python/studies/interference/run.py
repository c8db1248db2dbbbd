"""A study of interference from plan to record: the phases of its keywords, without Robot."""

import logging
from collections.abc import Callable, Mapping, Sequence

from resources.libraries.python.errors import (
    ConfigError,
    CsitError,
    NoTraffic,
    RunStopped,
    Unsupported,
)
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Dimensions, Frame
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import drivers_of
from resources.libraries.python.quantities import rate
from resources.libraries.python.recording.draft import utc_now
from resources.libraries.python.studies.interference.analysis.study import (
    SERVERS,
    advised,
    analyse,
    colocated,
    to_place,
)
from resources.libraries.python.studies.interference.analysis.verification import PlacementVerification
from resources.libraries.python.studies.interference.colocation_server import (
    LEAST_PPS,
    SharedServer,
    measurement_of,
    missing,
)
from resources.libraries.python.studies.interference.journal import (
    CompletedMeasurement,
    InterferenceJournal,
    LoadsFound,
)
from resources.libraries.python.studies.interference.model.record import (
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
    more_turns,
    schedule,
)
from resources.libraries.python.studies.shared.progress import StepEnded
from resources.libraries.python.studies.shared.steps import SteppedTest, measure_again, measure_step
from resources.libraries.python.testbed.deployment.generator_limits import datagrams_of
from resources.libraries.python.testbed.deployment.health import reason_of
from resources.libraries.python.testbed.deployment.parts import Testbed

_log = logging.getLogger(__name__)
_WAYS = 2
_ABOVE = 1.2
"""The load above what the fastest carries alone: then each shows all that it can do."""
_FREE = Limits()


class InterferenceTest(SteppedTest[InterferenceSpec, InterferenceJournal]):
    """Deploys one set of co-located network functions at a time, and keeps the draft of the record.

    Arguments are those of `SteppedTest`.

    Raises:
        ConfigError: More measurements, or more time, than `model.bounds` allows.
    """

    RECORD = InterferenceRecord
    MEASURED = "measurements were made"

    def __init__(
        self,
        topology: Topology,
        world: Testbed,
        spec: InterferenceSpec,
        environment: Environment,
        on_step: Callable[[StepEnded], None] = lambda _: None,
    ) -> None:
        super().__init__(topology, world, spec, environment, on_step)
        self.cost = cost(spec)
        self._names = tuple(contender.name for contender in spec.contenders)
        self._protocol = datagrams_of(topology.tg.generator.driver)
        self._server = SharedServer(topology, world, spec, self._protocol)
        self._measurements: list[ColocationMeasurement] = []
        self._notes: list[str] = []
        self._missing: dict[str, str] = {}
        self._absent: frozenset[str] = frozenset()
        self._network_pps: dict[str, float] = {}
        """One-way capacity of the network by frame size, if the rate of its ports is unknown."""
        self._asked = 0
        """Measurements that were planned so far, those of absent network functions included."""
        self._repetitions = spec.repetitions
        """Repetitions so far; each further one has another number."""
        self._load_pps: float | None = None
        """Of the reference point."""

    def resume(self, journal: InterferenceJournal) -> None:
        """See `SteppedTest`; the digest is taken before `plan`, which puts in stand-ins."""
        self._journal, self._known = journal, journal.measurements

    def plan(self) -> int:
        """Derive the plans of all sets; return the number of measurements.

        Raises:
            PlanError: The testbed lacks a kind of network function, or so many do not fit.
        """
        offered = {*self._topology.dut.containers, self._topology.dut.vms}
        for contender in self.spec.contenders:
            if contender.kind not in offered:
                self._stand_in(contender.name, f"the testbed has no {contender.kind}")
        plan = self._name_parts()  # first: many contenders make very many sets
        turns = schedule(self.spec)
        for turn in turns:
            self._server.plan((turn.target, *turn.against))
        self.draft.warnings.extend(plan.warnings)
        return len(turns)

    def _name_parts(self) -> Plan:
        plan = self.draft.plan = self._server.plan(self._names[:1] * self.spec.together)
        kinds = tuple(dict.fromkeys(contender.kind for contender in self.spec.contenders))
        cell = plan.cell.model_copy(update={**Dimensions(len(kinds), 1).columns, "instance_kinds": kinds})
        self.draft.drivers = drivers_of(self._topology, cell, self._world.drivers)
        return plan

    def loads_pps(self) -> tuple[float, ...]:
        """Load of each network function, one way, at each point: as asked, or more than the fastest carries alone.

        Deploys each alone, which reveals those that do not start.

        Where an earlier run has found it, it stays.

        Raises:
            Unsupported: None of them starts.
            RunStopped: The journal cannot be written.
            NoTraffic: Next to nothing comes back from any of them.
        """
        if self._journal is not None and self._journal.load is not None:
            return self._found_before(self._journal.load)
        noted = len(self._notes)
        fastest_pps = {frame.name: self._fastest_pps(frame) for frame in self.spec.frames or (self.spec.frame,)}
        found = tuple(load_pps or _ABOVE * fastest_pps[frame.name] / _WAYS for frame, load_pps in self.spec.points())
        self._keep(
            LoadsFound(
                at=utc_now(),
                loads_pps=found,
                network_pps=self._network_pps,
                contenders=self.spec.contenders,
                absent=tuple(sorted(self._absent)),
                notes=tuple(self._notes[noted:]),
            )
        )
        return found

    def _found_before(self, found: LoadsFound) -> tuple[float, ...]:
        """Take the loads, the stand-ins and the network of an earlier run."""
        self._notes += found.notes
        self._absent = frozenset(found.absent)
        self._network_pps = dict(found.network_pps)
        if found.contenders != self.spec.contenders:
            self._put(found.contenders)
            self._name_parts()
        return found.loads_pps

    def _fastest_pps(self, frame: Frame) -> float:
        carried = self._alone(frame)
        fastest_pps = max(carried.values())
        if not fastest_pps:
            raise NoTraffic(
                f"no load of {frame.name} from {rate(LEAST_PPS)} was received from any of {', '.join(carried)}"
            )
        if (
            Resource.NETWORK in self.spec.guarantee
            and self._server.line_share_pps((next(iter(carried)),), frame) is None
        ):
            self._network_pps[frame.name] = self._network(carried, frame) / _WAYS
        return fastest_pps

    def measure(self, loads_pps: Sequence[float]) -> None:
        """Measure all sets; what was measured is in the draft, also when it ends early.

        A measurement that fails is noted and the study continues.

        Args:
            loads_pps: Offered to each, one way, at each point.

        Raises:
            SystemBroken: Several in a row failed.
            RunStopped: Something cannot be removed, or the journal cannot be written.
        """
        every = schedule(self.spec)
        turns = [turn for turn in every if not self._absent & {turn.target, *turn.against}]
        absent = f"{', '.join(sorted(self._absent))} did not start alone"
        self._failures = [absent] * (len(every) - len(turns))
        self._asked, self._load_pps = len(every), loads_pps[0]
        try:
            self._measure_turns(turns, lambda turn: loads_pps[turn.point])
        finally:
            self._analyse()
        self._verify(((),) * SERVERS)

    def _measure_turns(
        self, turns: Sequence[PlannedMeasurement], load_pps: Callable[[PlannedMeasurement], float]
    ) -> None:
        for number, turn in enumerate(turns, 1):
            kept = self._measured_before(turn)
            if kept is None:
                measurement, why = self._turn(turn, load_pps(turn))
            else:
                self._take(kept)
                measurement, why = kept.measurement, None
            text = rate(measurement.throughput_pps) if measurement else f"failed: {why}"
            name, work = f"{turn.target}{_beside(turn)}", float(kept is None)
            self._ended(StepEnded(number, len(turns), name, text, work=work, failed=measurement is None), why)

    def _analyse(self) -> None:
        if not self._measurements:
            return
        lacks = [f"{what} were not counted: {why}" for what, why in self._missing.items()]
        places = self._server.places if self.spec.verify else None
        found = analyse(self.spec, self._measurements, [*self._notes, *lacks], places)
        self.draft.interference = found.model_copy(update={"asked": self._asked})

    def _verify(self, servers: Sequence[Sequence[str]]) -> None:
        """Measure the best placements as they are, where the specification asks for it."""
        if not self.spec.verify or self._load_pps is None or len(self._names) - len(self._absent) <= SERVERS:
            return
        load_pps, found = self._load_pps, self.result()
        steps = PlacementVerification(servers, to_place(found, servers), self.spec.verify, self._server.places)
        try:
            while groups := steps.next_groups(colocated(self.result())):
                turns = more_turns(self.spec, groups, self._asked, self._repetitions)
                self._asked += len(turns)
                self._repetitions += self.spec.repetitions
                try:
                    self._measure_turns(turns, lambda _: load_pps)
                finally:
                    self._analyse()
        except ConfigError as error:
            self._notes.append(f"no placement is verified: {error}")
            self._analyse()

    def result(self) -> Interference:
        found: Interference | None = self.draft.interference
        if found is None:
            raise CsitError("nothing to compare: no network function was measured")
        return found

    def advise(self, servers: Sequence[Sequence[str]]) -> None:
        """Add advice on placement; where the specification asks for it, the best placements are measured before.

        Args:
            servers: What is on each server already; empty for all of them on two empty servers.

        Raises:
            CsitError: Nothing was measured.
            ConfigError: A name is none of the study.
            SystemBroken: Several measurements in a row failed.
            RunStopped: Something cannot be removed, or the journal cannot be written.
        """
        if servers:
            self._verify(servers)
            self.draft.interference = advised(self.result(), servers)

    def remove(self) -> str | None:
        return self._server.remove()

    def _measured_before(self, turn: PlannedMeasurement) -> CompletedMeasurement | None:
        """Result of a measurement in the journal; None where there is none, or of another plan."""
        kept: CompletedMeasurement | None = self._known.get(turn.number)
        if kept is None or (kept.measurement.target, kept.measurement.against) != (turn.target, turn.against):
            return None
        try:
            same = self._plan_digest(turn) == kept.plan
        except CsitError:
            return None  # the same error again when it is deployed
        if same:
            return kept
        beside = _beside(turn)
        _log.warning("%s%s is measured again: its plan has changed since it was measured", turn.target, beside)
        return None

    def _plan_digest(self, turn: PlannedMeasurement) -> str:
        return self._server.plan_digest((turn.target, *turn.against), self._limits(turn))

    def _limits(self, turn: PlannedMeasurement) -> Limits:
        frame, _ = self.spec.points()[turn.point]
        group = (turn.target, *turn.against)
        if turn.guarantee is Resource.CPU:
            return Limits(cpu=self._server.cpu_share(group))
        return self._fair_share(group, frame) if turn.guarantee is Resource.NETWORK else _FREE

    def _turn(self, turn: PlannedMeasurement, load_pps: float) -> tuple[ColocationMeasurement | None, str | None]:
        def measure() -> CompletedMeasurement:
            frame, _ = self.spec.points()[turn.point]
            cell = self._server.deploy((turn.target, *turn.against), frame, self._limits(turn), turn.repetition)
            return CompletedMeasurement(
                at=utc_now(),
                plan=self._plan_digest(turn),
                measurement=measurement_of(cell, turn, self.spec, load_pps, self._protocol),
                facts=cell.deployment.facts(),
                missing=missing(cell),
            )

        name = f"{turn.target}{_beside(turn)}"
        outcome = measure_step(f"{name}, repetition {turn.repetition + 1}", measure, self.remove)
        if outcome.row is None:
            self._failures.append(outcome.reason)
            what = f"{name} was not measured in repetition {turn.repetition + 1}"
            self._notes += [f"{what}: {outcome.reason}", *outcome.notes]
            return None, outcome.reason
        found = outcome.row.model_copy(update={"notes": outcome.notes})
        self._keep(found)
        self._take(found)
        return found.measurement, None

    def _take(self, found: CompletedMeasurement) -> None:
        """Add a measurement to the record."""
        self._measurements.append(found.measurement)
        self._notes += found.notes
        self._missing |= found.missing
        self.draft.facts = found.facts

    def _remove(self) -> None:
        if failure := self.remove():
            self._notes.append(failure)

    def _fair_share(self, group: tuple[str, ...], frame: Frame) -> Limits:
        """An equal part for each of the line or, where its rate is not known, of what the network was seen to carry."""
        share_pps = self._server.line_share_pps(group, frame) or self._network_pps[frame.name] / len(group)
        return Limits(network_pps=share_pps)

    def _network(self, carried: Mapping[str, float], frame: Frame) -> float:
        """Lower bound of the network's capacity, both directions: the fastest alone, or several of it together."""
        fastest = max(carried, key=lambda name: carried[name])
        try:
            try:
                together_pps = self._server.carried_pps((fastest,) * self.spec.together, frame)
            finally:
                self._remove()
        except RunStopped:
            raise
        except (CsitError, OSError) as error:
            self._notes.append(
                f"the capacity of the network is assumed to be that of {fastest} alone: {reason_of(error)}"
            )
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
                carried[name] = self._carried_pps(name, frame)
            except RunStopped:
                raise
            except (CsitError, OSError) as error:
                reasons.append(f"{name} is left out: {reason_of(error)}")
        if not carried:
            raise Unsupported("; ".join(reasons))
        self._absent = frozenset(self._names) - carried.keys()
        self._notes += reasons
        return carried

    def _carried_pps(self, name: str, frame: Frame) -> float:
        """Throughput of one alone; where it does not start and has a stand-in, what that carries."""
        try:
            # A lost node is waited for by `_remove`.
            return measure_again(f"{name} alone", lambda: self._carried_once(name, frame), self._notes)
        except RunStopped:
            raise
        except (CsitError, OSError) as error:
            if not self._stand_in(name, reason_of(error)):
                raise
        self._name_parts()
        return self._carried_pps(name, frame)

    def _carried_once(self, name: str, frame: Frame) -> float:
        try:
            return self._server.carried_pps((name,), frame)
        finally:
            self._remove()

    def _stand_in(self, name: str, why: str) -> bool:
        """Have a network function replaced by its stand-in; false where it has none."""
        one = next(contender for contender in self.spec.contenders if contender.name == name)
        if one.stand_in is None:
            return False
        self._notes.append(f"{name} is measured as {one.stand_in}: {why}")
        contenders = tuple(one.replaced() if each is one else each for each in self.spec.contenders)
        self._put(contenders)
        return True

    def _put(self, contenders: tuple[Contender, ...]) -> None:
        """Have others in the places of the network functions, under the same names."""
        self.spec = self.spec.model_copy(update={"contenders": contenders})
        self._server = SharedServer(self._topology, self._world, self.spec, self._protocol)


def _beside(turn: PlannedMeasurement) -> str:
    return f" beside {', '.join(turn.against)}" if turn.against else " alone"
