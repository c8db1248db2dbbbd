"""A study of outages from plan to record: the phases of its keywords, without Robot."""

import logging
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from resources.libraries.python.driver_registry import generators
from resources.libraries.python.errors import (
    ConfigError,
    CsitError,
    NoTraffic,
    Unsupported,
)
from resources.libraries.python.model.base import ON_FIRST_USE, Frozen
from resources.libraries.python.model.measurements.disturbance import Disturbance, EventOccurrence, PartEvent
from resources.libraries.python.model.measurements.trial import FlowTimeline, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.names import VSWITCH
from resources.libraries.python.planning.plan import digest
from resources.libraries.python.quantities import rates
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.search.profiles import NDR, profile
from resources.libraries.python.search.throughput import search_throughput
from resources.libraries.python.studies.outage.analysis.effects import effects, impacts, quarantined, traces
from resources.libraries.python.studies.outage.model.record import EventTrial, Outage, OutageRecord
from resources.libraries.python.studies.outage.model.spec import CONTROL, OutageSpec, TargetedEvent
from resources.libraries.python.studies.outage.planning import (
    OutageTurn,
    cost,
    parts_hit,
    refusals,
    schedule,
)
from resources.libraries.python.studies.shared.progress import StepEnded
from resources.libraries.python.studies.shared.steps import SpecifiedTest, measure_again, measure_step
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.parts import Parts, Testbed
from resources.libraries.python.testbed.roles.part import ForwardingPart

_log = logging.getLogger(__name__)
_WAYS = 2
_LEAD_S = 0.1
"""Between the request for an event and the first packet: frames and receivers are made."""
_LEAST_AROUND_S = 0.05
"""Traffic that there must be before and after an event."""
_MOST_NUMBERED = 1_000_000
"""Packets of a flow that the receiver keeps."""
_OFFERED = 0.01
"""Load and duration may be off by this share: every packet that was sent has a number and a time stamp."""


class RateFound(Frozen):
    """The load of all trials."""

    line: Literal["rate"] = "rate"
    rate_pps: float
    ndr_pps: float | None
    notes: tuple[str, ...] = ()
    """About the search of NDR, and why the load is another one."""


class TrialMeasured(Frozen):
    """A trial that is complete; what was deployed for it is removed."""

    line: Literal["trial"] = "trial"
    plan: str
    """Digest of the plan by which it was deployed."""
    trial: EventTrial
    notes: tuple[str, ...] = ()


class OutageJournal(StepJournal[RateFound | TrialMeasured]):
    """A journal of trials; a context manager."""

    FILE = "outage.jsonl"
    KIND = "study of outages"
    ROWS = TypeAdapter(Annotated[RateFound | TrialMeasured, Field(discriminator="line")], config=ON_FIRST_USE)


class OutageTest(SpecifiedTest[OutageSpec, OutageJournal]):
    """Deploys the service for each trial, lets an event happen under load, and keeps the draft of the record.

    Arguments are those of `SteppedTest`.

    Raises:
        ConfigError: More trials, or more time, than `model.bounds` allows, or a search that finds no NDR.
    """

    RECORD = OutageRecord
    MEASURED = "trials were made"

    def __init__(
        self,
        topology: Topology,
        world: Testbed,
        spec: OutageSpec,
        environment: Environment,
        on_step: Callable[[StepEnded], None] = lambda _: None,
    ) -> None:
        super().__init__(topology, world, spec, environment, on_step)
        self.cost = cost(spec)
        if spec.rate_pps is None and not _ndr_profile(spec).goals:
            raise ConfigError(f"{spec.name}: search '{spec.search}' finds no NDR; choose another profile, or rate_pps")
        self._rate: RateFound | None = None
        self._trials: list[EventTrial] = []
        self._refused: dict[str, str] = {}
        self._notes: list[str] = []

    def plan(self) -> Plan:
        """Derive the plan.

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
        if len(self._refused) == len(self.spec.events):
            raise Unsupported("; ".join(self._refused.values()))
        self.cost = cost(self.spec, self._refused)
        return plan

    def _system(self) -> tuple[str, ...]:
        return (digest(self.plan()),)

    def resume(self, journal: OutageJournal) -> None:
        self._journal = journal
        self._rate = next((row for row in journal.rows if isinstance(row, RateFound)), None)
        if self._rate is not None:
            self._notes += self._rate.notes
            self._known = {row.trial.number: row for row in journal.rows if isinstance(row, TrialMeasured)}

    def rate(self) -> RateFound:
        """Return the load of all trials: as specified, or a share of the NDR, which is searched.

        Raises:
            NoTraffic: Nothing is forwarded.
            RunStopped: The journal cannot be written, or the deployment cannot be removed.
        """
        if self._rate is None:
            noted = len(self._notes)
            found = RateFound(rate_pps=self.spec.rate_pps, ndr_pps=None) if self.spec.rate_pps else self._searched()
            if (most_pps := _MOST_NUMBERED / self.spec.duration_s) < found.rate_pps:
                most, wanted = rates(most_pps, found.rate_pps)
                self._notes.append(
                    f"the load is {most} instead of {wanted} of each flow: the receiver "
                    f"keeps {_MOST_NUMBERED:,} packets"
                )
                found = found.model_copy(update={"rate_pps": most_pps})
            found = found.model_copy(update={"notes": tuple(self._notes[noted:])})
            self._keep(found)
            self._rate = found
        return self._rate

    def measure(self) -> None:
        turns = schedule(self.spec, self._refused)
        rate = self.rate()
        try:
            for turn in turns:
                name = CONTROL if turn.strike is None else turn.strike.name
                kept = self._known.get(turn.number)
                reason: str | None = self._refused.get(name)
                if kept is None and reason is None:
                    kept, reason = self._turn(turn, rate)
                if kept is not None:
                    self._trials.append(kept.trial)
                    self._notes += kept.notes
                if kept is None:
                    text = f"failed: {reason}"
                else:
                    text = ", ".join(f"{impact.instance}: {impact.lost} lost" for impact in kept.trial.impacts)
                work = float(turn.number not in self._known)
                step = StepEnded(turn.number + 1, len(turns), name, text, work=work, failed=kept is None)
                self._ended(step, None if name in self._refused else reason)
        finally:
            self._conclude(rate)

    def _conclude(self, rate: RateFound) -> None:
        notes = list(self._notes)
        if errors := [trial.clock_error_s for trial in self._trials if trial.clock_error_s is not None]:
            notes.append(
                f"times between events and packets are exact to {1e3 * max(errors):.3g} ms: they are of different "
                "nodes, whose clocks were compared over their connections"
            )
        self.draft.outage = Outage(
            spec=self.spec,
            rate_pps=rate.rate_pps,
            ndr_pps=rate.ndr_pps,
            trials=tuple(self._trials),
            effects=effects(self.spec, self._trials),
            quarantined=tuple(quarantined(self.spec, self._trials)),
            refused=self._refused,
            asked=cost(self.spec, self._refused).runs,
            notes=tuple(notes),
        )

    def result(self) -> Outage:
        found: Outage | None = self.draft.outage
        if found is None or not found.trials:
            raise CsitError("no event was measured")
        return found

    def enough(self) -> None:
        """See `SteppedTest`.

        Raises:
            Unsupported: No event is possible on this testbed.
        """
        if len(self._refused) == len(self.spec.events):
            raise Unsupported("; ".join(self._refused.values()))
        super().enough()

    def _searched(self) -> RateFound:
        return measure_again("search of NDR", self._searched_once, self._notes)

    def _searched_once(self) -> RateFound:
        spec, chosen = self.spec, _ndr_profile(self.spec)
        try:
            cell = self._deploy(0)
            cell.verify_traffic()
            most_pps, clock = cell.highest_loads().search_pps, cell.deployment.parts.clock
            ndr = search_throughput(cell.measure, chosen, spec.frame, most_pps, clock).ndr
        finally:
            if removal := self.remove():
                self._notes.append(removal)
        if ndr is None or ndr.lower_pps is None:
            raise NoTraffic(f"{spec.name}: no load without loss was found; give rate_pps")
        return RateFound(rate_pps=spec.share * ndr.lower_pps / _WAYS / spec.instances, ndr_pps=ndr.lower_pps)

    def _turn(self, turn: OutageTurn, rate: RateFound) -> tuple[TrialMeasured | None, str | None]:
        name = CONTROL if turn.strike is None else turn.strike.name
        outcome = measure_step(
            f"{name}, repetition {turn.repetition + 1}", lambda: self._measure(turn, rate), self.remove
        )
        if outcome.row is None:
            self._notes += outcome.notes
            if turn.strike is not None and turn.strike.name in self._refused:
                return None, outcome.reason
            self._failures.append(outcome.reason)
            self._notes.append(f"{name} was not measured in repetition {turn.repetition + 1}: {outcome.reason}")
            return None, outcome.reason
        row = outcome.row.model_copy(update={"notes": (*outcome.row.notes, *outcome.notes)})
        self._keep(row)
        return row, None

    def _measure(self, turn: OutageTurn, rate: RateFound) -> TrialMeasured:
        spec, strike = self.spec, turn.strike
        cell = self._deploy(turn.repetition)
        trial = Trial(
            load_pps=_WAYS * spec.instances * rate.rate_pps,
            duration_s=spec.duration_s,
            frame=spec.frame,
            timeline_s=spec.bin_s,
            purpose="outage",
        )
        part = None if strike is None else _target(cell.deployment.parts, strike)
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
        if happened is not None:
            before_s = (happened.began_ns - begin_ns) / 1e9
            if not _LEAST_AROUND_S < before_s < spec.duration_s - _LEAST_AROUND_S:
                raise CsitError(
                    f"the event came {before_s:.3f} s after the first packet of a trial of {spec.duration_s:g} s: the "
                    "load began late (a longer before_s helps)"
                )
        self.draft.facts = cell.deployment.facts()
        found = () if strike is not None and strike.event is PartEvent.KILL else cell.problems()
        name = CONTROL if strike is None else strike.name
        return TrialMeasured(
            plan=digest(self.draft.plan or self.plan()),
            trial=EventTrial(
                number=turn.number,
                repetition=turn.repetition,
                event=name,
                event_s=None if happened is None else (happened.ended_ns - happened.began_ns) / 1e9,
                done="" if happened is None else happened.what,
                clock_error_s=_clock_error_s(happened, lines),
                impacts=impacts(lines, moment),
                traces=traces(lines, moment) if not turn.repetition else (),
                note=result.note,
            ),
            notes=tuple(f"after {name}: {problem}" for problem in found if strike is not None),
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

    def _deploy(self, repetition: int) -> CellUnderTest:
        plan = self.draft.plan or self.plan()
        self._deployed = cell = self._cell(repetition)
        cell.deploy(plan)
        return cell

    def _cell(self, repetition: int) -> CellUnderTest:
        return self._under_test(self.spec.cell, self.spec.frame, profile(self.spec.search), repetition)


def _target(parts: Parts, strike: TargetedEvent) -> ForwardingPart:
    return parts.switch if strike.target == VSWITCH else parts.functions


def _clock_error_s(happened: EventOccurrence | None, lines: Sequence[FlowTimeline]) -> float | None:
    if happened is None:
        return None
    return happened.clock_error_s + max(line.clock_error_s for line in lines) or None


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
