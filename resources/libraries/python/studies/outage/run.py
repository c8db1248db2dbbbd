"""A study of outages from plan to record: the phases of its keywords, without Robot."""

from collections.abc import Iterator, Sequence

from resources.libraries.python.driver_registry import generators
from resources.libraries.python.errors import ConfigError, CsitError, NoTraffic, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.measurements.disturbance import Disturbance, EventOccurrence, PartEvent
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.planning.names import VSWITCH
from resources.libraries.python.quantities import rate, rates
from resources.libraries.python.search.profiles import NDR, profile
from resources.libraries.python.search.throughput import search_throughput
from resources.libraries.python.studies.outage.analysis import (
    effects,
    headline,
    impacts,
    outage_tables,
    quarantined,
    sentences,
    traces,
)
from resources.libraries.python.studies.outage.model import EventTrial, Outage, OutageRecord, OutageSpec, TargetedEvent
from resources.libraries.python.studies.outage.planning import OutageTurn, cost, parts_hit, refusals, schedule
from resources.libraries.python.studies.shared.step_study import StepStudy
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.roles.part import ForwardingPart

_WAYS = 2
_LEAD_S = 0.1
"""Between the request for an event and the first packet: frames and receivers are made."""
_MIN_AROUND_S = 0.05
"""Traffic that there must be before and after an event."""
_MAX_NUMBERED = 1_000_000
"""Packets of a flow that the receiver keeps."""
_OFFERED = 0.01
"""Load and duration may be off by this share: every packet that was sent has a number and a time stamp."""


class RateFound(Frozen):
    """The load of all trials."""

    rate_pps: float
    ndr_pps: float | None


class OutageTest(StepStudy[OutageSpec, OutageTurn, EventTrial, Outage]):
    """Deploys the service for each trial, and lets an event happen under load."""

    RECORD = OutageRecord
    ROW = EventTrial
    LOAD = RateFound
    MEASURED = "trials were made"
    SPECIFICATION = OutageSpec
    tables = staticmethod(outage_tables)
    headline = staticmethod(headline)
    sentences = staticmethod(sentences)

    def set_up(self) -> None:
        self.cost = cost(self.spec)
        if self.spec.rate_pps is None and not _ndr_profile(self.spec).goals:
            raise ConfigError(
                f"{self.spec.name}: search '{self.spec.search}' finds no NDR; choose another profile, or rate_pps"
            )
        self._refused: dict[str, str] = {}

    def plan(self) -> None:
        """See `StepStudy`.

        Raises:
            PlanError: The service does not fit.
            Unsupported: The generator numbers no packets, or no event is possible.
        """
        generator = generators()[self._topology.tg.generator.driver]
        if not generator.numbers_packets:
            raise Unsupported(
                f"the generator {generator.name} numbers no packets, so losses cannot be timed; choose another one"
            )
        self.draft.plan = plan = self._cell(0).plan()
        self.draft.warnings = list(plan.warnings)
        self._refused = refusals(self.spec, self._topology.dut, plan)
        self._see_that_any_is_possible()
        self.cost = cost(self.spec, self._refused)

    def preview(self) -> list[str]:
        spec = self.spec
        control = " and a control" if spec.control else ""
        return [
            f"{self.cost.runs} trials of {spec.duration_s:g} s: {len(spec.events)} events{control}, "
            f"{spec.repetitions} repetitions{self.about}"
        ]

    def find_load(self) -> RateFound:
        """Find the load of all trials: as specified, or a share of the NDR, which is searched.

        Raises:
            NoTraffic: Nothing is forwarded.
        """
        spec = self.spec
        found = RateFound(rate_pps=spec.rate_pps, ndr_pps=None) if spec.rate_pps else self._searched()
        if (most_pps := _MAX_NUMBERED / spec.duration_s) < found.rate_pps:
            most, wanted = rates(most_pps, found.rate_pps)
            self.note(
                f"the load is {most} instead of {wanted} of each flow: the receiver keeps {_MAX_NUMBERED:,} packets"
            )
            found = found.model_copy(update={"rate_pps": most_pps})
        return found

    def load_in_words(self) -> list[str]:
        of_ndr = "" if self.load.ndr_pps is None else f" (NDR of all: {rate(self.load.ndr_pps)})"
        return [f"{rate(self.load.rate_pps)} offered to each instance in each direction{of_ndr}"]

    def steps(self) -> Iterator[Sequence[OutageTurn]]:
        yield schedule(self.spec, self._refused)

    def key(self, turn: OutageTurn) -> str:
        return f"{turn.event}, repetition {turn.repetition + 1}"

    def label(self, turn: OutageTurn) -> str:
        return turn.event

    def refusal(self, turn: OutageTurn) -> str | None:
        return self._refused.get(turn.event)

    def in_words(self, trial: EventTrial) -> str:
        return ", ".join(f"{impact.instance}: {impact.lost} lost" for impact in trial.impacts)

    def analyse(self, trials: Sequence[EventTrial]) -> Outage:
        notes = list(self.notes)
        if errors := [trial.clock_error_s for trial in trials if trial.clock_error_s is not None]:
            notes.append(
                f"times between events and packets are exact to {1e3 * max(errors):.3g} ms: they are of different "
                "nodes, whose clocks were compared over their connections"
            )
        return Outage(
            spec=self.spec,
            rate_pps=self.load.rate_pps,
            ndr_pps=self.load.ndr_pps,
            trials=tuple(trials),
            effects=effects(self.spec, trials),
            quarantined=tuple(quarantined(self.spec, trials)),
            refused=self._refused,
            asked=cost(self.spec, self._refused).runs,
            notes=tuple(notes),
        )

    def enough(self) -> None:
        """See `StepStudy`.

        Raises:
            Unsupported: No event is possible on this testbed.
        """
        self._see_that_any_is_possible()
        super().enough()

    def _see_that_any_is_possible(self) -> None:
        if len(self._refused) == len(self.spec.events):
            raise Unsupported("; ".join(self._refused.values()))

    def _searched(self) -> RateFound:
        spec, chosen = self.spec, _ndr_profile(self.spec)

        def search() -> float | None:
            under_test = self._cell(0)
            cell = self.bring_up(under_test, self.draft.plan or under_test.plan())
            cell.verify_traffic()
            most_pps, clock = cell.highest_loads().search_pps, cell.deployment.parts.clock
            ndr = search_throughput(cell.measure, chosen, spec.frame, most_pps, clock).ndr
            return None if ndr is None else ndr.lower_pps

        ndr_pps = self.careful("search of NDR", search)
        if ndr_pps is None:
            raise NoTraffic(f"{spec.name}: no load without loss was found; give rate_pps")
        return RateFound(rate_pps=spec.share * ndr_pps / _WAYS / spec.instances, ndr_pps=ndr_pps)

    def measure(self, turn: OutageTurn) -> EventTrial:
        spec, strike = self.spec, turn.strike
        cell = self.deploy(turn)
        parts = cell.deployment.parts
        trial = Trial(
            load_pps=_WAYS * spec.instances * self.load.rate_pps,
            duration_s=spec.duration_s,
            frame=spec.frame,
            timeline_s=spec.bin_s,
            purpose="outage",
        )
        part: ForwardingPart | None = (
            None if strike is None else (parts.switch if strike.target == VSWITCH else parts.functions)
        )
        if part is not None and strike is not None:
            after_s = _LEAD_S + spec.before_s
            targets = parts_hit(spec, strike)
            coming = Disturbance(targets=targets, event=strike.event, after_s=after_s, hold_s=strike.hold_s)
            try:
                part.disturb(coming)
            except Unsupported as error:
                self._refused[strike.name] = str(error)
                raise
        result = cell.measure(trial)
        happened = self._happened(part, strike)
        if not was_offered(result):
            raise CsitError(f"the load was not offered: {result.note}")
        lines = result.timelines
        begin_ns = max(line.begin_ns for line in lines)
        would_ns = begin_ns + round(spec.before_s * 1e9)
        moment = happened or EventOccurrence(began_ns=would_ns, ended_ns=would_ns, what="")
        clock_error_s = 0.0
        if happened is not None:
            clock_error_s = happened.clock_error_s + max(line.clock_error_s for line in lines)
            before_s = (happened.began_ns - begin_ns) / 1e9
            if not _MIN_AROUND_S < before_s < spec.duration_s - _MIN_AROUND_S:
                raise CsitError(
                    f"the event came {before_s:.3f} s after the first packet of a trial of {spec.duration_s:g} s: the "
                    "load began late (a longer before_s helps)"
                )
        if strike is not None and strike.event is not PartEvent.KILL:
            for problem in cell.problems():
                self.note(f"after {strike.name}: {problem}")
        return EventTrial(
            number=turn.number,
            repetition=turn.repetition,
            event=turn.event,
            event_s=None if happened is None else (happened.ended_ns - happened.began_ns) / 1e9,
            done="" if happened is None else happened.what,
            clock_error_s=clock_error_s or None,
            impacts=impacts(lines, moment),
            traces=traces(lines, moment) if not turn.repetition else (),
            note=result.note,
        )

    def _happened(self, part: ForwardingPart | None, strike: TargetedEvent | None) -> EventOccurrence | None:
        if part is None or strike is None:
            return None
        found: Sequence[EventOccurrence] = part.disturbed()
        if not found:
            raise CsitError(f"{strike.name}: no part of the testbed has this target")
        return EventOccurrence(  # NFs of an instance may be on several nodes
            began_ns=min(each.began_ns for each in found),
            ended_ns=max(each.ended_ns for each in found),
            clock_error_s=max(each.clock_error_s for each in found),
            what="; ".join(dict.fromkeys(each.what for each in found)),
        )

    def cell_of(self, turn: OutageTurn) -> CellUnderTest:
        return self._cell(turn.repetition)

    def plan_of(self, turn: OutageTurn) -> Plan:
        return self.draft.plan or self.cell_of(turn).plan()

    def _cell(self, repetition: int) -> CellUnderTest:
        return self.under_test(self.spec.cell, self.spec.frame, profile(self.spec.search), repetition)


def was_offered(result: TrialResult) -> bool:
    """Return whether packets and sending time of a trial are within 1 % of those intended."""
    trial = result.trial
    if not result.generator_limited or not trial.load_pps:
        return not result.generator_limited
    shares = result.sent / (trial.load_pps * trial.duration_s), result.offered_duration_s / trial.duration_s
    return all(abs(share - 1) <= _OFFERED for share in shares)


def _ndr_profile(spec: OutageSpec) -> SearchProfile:
    chosen = profile(spec.search)
    return chosen.model_copy(update={"goals": tuple(goal for goal in chosen.goals if goal.name == NDR)})
