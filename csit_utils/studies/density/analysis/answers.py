"""Number of service instances that fit at a given rate and latency, from measurements only.

A cell of S services sustains the rate X if, offered S X in equal shares, no instance loses more in either direction
than the chosen goal allows; the rate of an instance is the sum of both directions, half each. It meets the latency
bound Y if at that load no instance and direction has a 99th percentile of Y or more; a lost probe counts as too late.

Hardly ever was exactly S X offered. Loss and latency do not fall when more is offered, apart from noise. So what was
met at a higher load is met at S X, what was missed at a lower load is missed at S X, and in between it is not known:
one trial at S X decides. Nothing is interpolated or extrapolated. Evidence of rates:

- In the trials that met the goal every instance got at least a rate: that rate is sustained.
- The load of these trials is sustained if no flow lost more than the goal allows, and is not if one did.
- The load at which the goal was missed is not sustained.
- A test that searched for the other goal only tells less: what met NDR meets PDR, what missed PDR misses NDR.

A looser requirement can only add cells: the answer never gets smaller.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import isclose
from operator import attrgetter

from csit_utils.analysis.grouping import Series, all_series, belongs, bounds, systems_by_source
from csit_utils.dataset.items import Refusal
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import NDR, PDR, InstanceRow, LatencyRow, TestRow
from csit_utils.studies.density.analysis.density import refusals
from resources.libraries.python.search.load_trials import AT_RATE

PERCENTILE = 0.99
_load, _worst = attrgetter("load_pps"), attrgetter("worst_pps")


@dataclass(frozen=True)
class Question:
    """Number of instances at a rate each, with p99 below a bound."""

    rate_pps: float
    """Rate of one instance, both directions together."""
    p99_ns: float | None = None
    """None: no latency bound."""
    metric: Measure = PDR
    """The goal whose loss ratio is allowed: NDR or PDR."""


class AnswerVerdict(StrEnum):
    """Result of a measured or planned cell for a question."""

    KEPT = "kept"
    RATE = "rate"
    """Too much was lost at that load or below it."""
    RATE_UNKNOWN = "loss not measured at that load"
    LATENCY = "latency"
    """p99 was the bound or more at that load or below it."""
    LATENCY_UNKNOWN = "latency not measured at that load"
    NO_RESULT = "no result"
    """There are tests, but none with a reliable figure."""
    DOES_NOT_FIT = "does not fit"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class LatencyPoint:
    """Latency at one load."""

    label: str
    load_pps: float
    p99_ns: float | None
    """The worst over instances and directions; None if one has no sample, or lost 1 % of its probes."""


@dataclass(frozen=True)
class CellRun:
    """Result of one test of a cell."""

    row: TestRow
    worst_pps: float
    """Rate of the worst instance, as twice its worse direction."""
    worst_of: str
    """The worst instance: `instance 3 reverse`; `mean of all instances` without counts by instance; empty where no load
    met the goal."""
    load_pps: float
    """Load at which it was measured."""
    met_pps: float | None
    """Highest aggregate load of equal shares that this test shows to be sustained; None for none."""
    missed_pps: float | None
    """Lowest such load that it shows not to be; None for none."""
    points: tuple[LatencyPoint, ...]


@dataclass(frozen=True)
class LoadWitness:
    """Whether a requirement was met at a load."""

    load_pps: float
    is_met: bool
    run: CellRun
    point: LatencyPoint | None = None
    """Of an observation of latency."""


@dataclass(frozen=True)
class Known:
    """Loads at which the tests of a cell show a requirement to be met or not; in between it is not known."""

    met: tuple[LoadWitness, ...] = ()
    """Below `missed`, lowest load first."""
    missed: LoadWitness | None = None
    """The lowest one that no higher load of the same test contradicts."""
    contrary: tuple[LoadWitness, ...] = ()
    """Misses below a load at which the same test met the requirement, lowest load first."""

    def met_at(self, load_pps: float) -> LoadWitness | None:
        """The lowest load that shows the requirement to be met at a load; None if it is missed, or not known."""
        if self.missed_at(load_pps):
            return None
        return next((each for each in self.met if each.load_pps * _EQUAL >= load_pps), None)

    def missed_at(self, load_pps: float) -> LoadWitness | None:
        """The load that shows the requirement to be missed at a load; None if it is met, or not known."""
        return self.missed if self.missed and self.missed.load_pps <= load_pps * _EQUAL else None


def known_of(runs: Iterable[Sequence[LoadWitness]]) -> Known:
    """Combine the observations of the tests of a cell, each of which must meet the requirement.

    Both within a test and between tests, what is met at a load is met below it. A miss below such a load of the same
    test is noise; a miss in another test counts.
    """
    misses: list[LoadWitness] = []
    contrary: list[LoadWitness] = []
    mets: list[LoadWitness] = []
    for run in runs:
        met = [each for each in run if each.is_met]
        highest_pps = max((each.load_pps for each in met), default=-1.0)
        mets += met
        for each in run:
            if not each.is_met:
                (misses if each.load_pps > highest_pps else contrary).append(each)
    missed = min(misses, key=_load, default=None)
    below = [each for each in mets if missed is None or each.load_pps < missed.load_pps]
    return Known(tuple(sorted(below, key=_load)), missed, tuple(sorted(contrary, key=_load)))


_EQUAL = 1 + 1e-9
"""Loads that differ by a smaller factor are equal."""


@dataclass(frozen=True)
class ServiceCountResult:
    """One number of services and its result for a question."""

    services: int
    verdict: AnswerVerdict
    run: CellRun | None = None
    """The test of the rate, of several the one with the lowest rate."""
    point: LatencyPoint | None = None
    """The load that shows latency to be below the bound, or not to be; None where no load does."""
    timed: TestRow | None = None
    """The test of `point`, which may be another one."""
    known: Known = Known()
    """What is known of loss, or of latency, where a trial has to decide, and of latency where it is kept."""
    is_tried: bool = False
    """Whether there have been trials at the rate."""
    reason: str = ""
    """Reason of a cell that does not fit or has no result."""

    @property
    def is_open(self) -> bool:
        """Whether trials at the rate would decide. Those that were tried in vain would not."""
        unknown = self.verdict in {AnswerVerdict.RATE_UNKNOWN, AnswerVerdict.LATENCY_UNKNOWN}
        return unknown and not self.is_tried


@dataclass(frozen=True)
class DensityAnswer:
    """Answer to one question, for one series and length of service."""

    question: Question
    series: Series
    nfs: int
    best: ServiceCountResult | None
    """The largest number of services that qualifies; None without one."""
    next: ServiceCountResult
    """The next larger number of services with any data, and why it does not qualify."""
    doubts: tuple[ServiceCountResult, ...]
    """Smaller measured numbers of services that do not qualify."""

    @property
    def services(self) -> int:
        """Instances that fit; 0 if not even the smallest measured number does."""
        return self.best.services if self.best else 0

    @property
    def trial_pps(self) -> float | None:
        """Aggregate load of the trial that decides about the next number of instances; None where none does."""
        return self.question.rate_pps * self.next.services if self.next.is_open else None


@dataclass(frozen=True)
class AnswerEvidence:
    """Measurements, sorted for questions."""

    rows: Sequence[TestRow]
    instances: dict[str, list[InstanceRow]]
    """By anchor of the test."""
    latencies: dict[str, list[LatencyRow]]
    refused: Sequence[Refusal]


def evidence(rows: Sequence[TestRow], found: Iterable[object], refused: Sequence[Refusal] = ()) -> AnswerEvidence:
    """Return measurements sorted by test: of tests, and rows of instances and latency."""
    sorted_rows = AnswerEvidence(rows, {}, {}, refused)
    for row in found:
        if isinstance(row, InstanceRow):
            sorted_rows.instances.setdefault(row.anchor, []).append(row)
        elif isinstance(row, LatencyRow):
            sorted_rows.latencies.setdefault(row.anchor, []).append(row)
    return sorted_rows


@dataclass(frozen=True)
class MeasuredCell:
    """What the tests of a cell show, whatever rate and latency are asked for."""

    services: int
    runs: Sequence[CellRun] = ()
    """Tests that count for the rate, lowest rate first."""
    every: Sequence[CellRun] = ()
    """Tests that count for latency, whatever they searched."""
    without: AnswerVerdict = AnswerVerdict.NO_RESULT
    """Verdict of a cell without `runs`."""
    reason: str = ""
    """Its reason."""

    @cached_property
    def rates(self) -> Known:
        """Aggregate loads whose loss is known."""
        return known_of(map(_of_rates, self.runs))


@dataclass(frozen=True)
class MeasuredServices:
    """Cells of a series whose services have the same number of NFs, fewest services first."""

    series: Series
    nfs: int
    cells: Sequence[MeasuredCell]


def answers(question: Question, seen: AnswerEvidence) -> list[DensityAnswer]:
    """Return an answer for every series and length of service with a test."""
    return [answer(question, each) for each in measured_services(question.metric, seen, all_series(seen.rows))]


def measured_services(metric: Measure, seen: AnswerEvidence, of: Iterable[Series]) -> list[MeasuredServices]:
    """Return every length of service with a test, of some series; `metric` is the goal whose loss ratio is allowed."""
    sources = systems_by_source(seen.rows)
    found = []
    for series in of:
        cells: dict[tuple[int, int], list[TestRow]] = {}
        for row in seen.rows:
            at = row.dimensions
            if at is not None and at.nfs and belongs(row, series, sources.get(row.source)):
                cells.setdefault(at, []).append(row)
        refused = refusals(seen.rows, series, seen.refused)
        for nfs in sorted({nodes for _, nodes in cells}):
            own = [_measured(metric, seen, place[0], tests) for place, tests in cells.items() if place[1] == nfs]
            own += [
                MeasuredCell(place[0], without=AnswerVerdict.DOES_NOT_FIT, reason=cell.reason)
                for place, cell in refused.items()
                if place[1] == nfs and place not in cells
            ]
            found.append(MeasuredServices(series, nfs, sorted(own, key=lambda each: each.services)))
    return found


def answer(question: Question, measured: MeasuredServices) -> DensityAnswer:
    """Return the answer for one series and length of service."""
    looked = [_judged(question, cell) for cell in measured.cells]
    kept = [each for each in looked if each.verdict is AnswerVerdict.KEPT]
    best = kept[-1] if kept else None
    services = best.services if best else 0
    above = [each for each in looked if each.services > services]
    below = tuple(each for each in looked if each.services < services and each.verdict is not AnswerVerdict.KEPT)
    following = above[0] if above else ServiceCountResult(services + 1, AnswerVerdict.NOT_MEASURED)
    return DensityAnswer(question, measured.series, measured.nfs, best, following, below)


def _measured(metric: Measure, seen: AnswerEvidence, services: int, tests: Sequence[TestRow]) -> MeasuredCell:
    every = _runs(tests, metric, seen)
    # A latency test finds a PDR on its way, with less evidence: it counts where no other test asked for PDR.
    asked = [run for run in every if metric in (run.row.test_type or "") or run.row.rate_load_pps]
    if every:
        return MeasuredCell(services, asked or every, every)
    unfit = next((row for row in tests if row.unfit), None)
    without = AnswerVerdict.DOES_NOT_FIT if unfit else AnswerVerdict.NO_RESULT
    reason = (unfit or tests[-1]).message or f"no test searched for {metric}"
    return MeasuredCell(services, without=without, reason=reason)


def _judged(question: Question, cell: MeasuredCell) -> ServiceCountResult:
    """Result of a cell: each of its tests must meet the bounds. What is missed decides, then what is not known."""
    if not cell.runs:
        return ServiceCountResult(cell.services, cell.without, reason=cell.reason)
    load_pps = question.rate_pps * cell.services
    rates, latencies = cell.rates, Known()
    if question.p99_ns is not None:
        latencies = known_of(_of_latency(question.p99_ns, run) for run in cell.every)
    late, timely = latencies.missed_at(load_pps), latencies.met_at(load_pps)
    sustained = [each.run for each in rates.met if each.load_pps * _EQUAL >= load_pps]
    verdict, run, decisive, known = AnswerVerdict.KEPT, min(sustained or cell.runs, key=_worst), timely, latencies
    if missed := rates.missed_at(load_pps):
        verdict, run, decisive = AnswerVerdict.RATE, missed.run, None
    elif late:
        verdict, decisive = AnswerVerdict.LATENCY, late
    elif rates.met_at(load_pps) is None:
        verdict, decisive, known = AnswerVerdict.RATE_UNKNOWN, None, rates
    elif question.p99_ns is not None and timely is None:
        verdict = AnswerVerdict.LATENCY_UNKNOWN
    point, timed = (decisive.point, decisive.run.row) if decisive else (None, None)
    tried = any(isclose(each.row.rate_load_pps or 0.0, load_pps) for each in cell.every)
    return ServiceCountResult(cell.services, verdict, run, point, timed, known, tried)


def _of_rates(run: CellRun) -> list[LoadWitness]:
    pairs = ((run.met_pps, True), (run.missed_pps, False))
    return [LoadWitness(load_pps, is_met, run) for load_pps, is_met in pairs if load_pps is not None]


def _of_latency(bound_ns: float, run: CellRun) -> list[LoadWitness]:
    return [
        LoadWitness(point.load_pps, point.p99_ns is not None and point.p99_ns < bound_ns, run, point)
        for point in run.points
    ]


def _runs(tests: Sequence[TestRow], metric: Measure, seen: AnswerEvidence) -> list[CellRun]:
    """Results of tests with a figure, lowest rate first."""
    found = [run for row in tests if (run := _run(row, metric, seen)) is not None]
    return sorted(found, key=_worst)


def _run(row: TestRow, metric: Measure, seen: AnswerEvidence) -> CellRun | None:
    """Rates and latency of a test; None without a reliable figure."""
    if row.dimensions is None or not row.recorded or row.status != "PASS":
        return None
    services = row.dimensions.instances
    points = tuple(latency_points(seen.latencies.get(row.anchor, ())))
    if row.rate_load_pps is not None:
        return _run_at_rate(row, row.rate_load_pps, metric, _worst_flow(row, AT_RATE, seen), points)
    searched = searched_goal(row, metric)
    found = bounds(row, searched) if searched else None
    if searched is None or found is None:
        return None
    lower, upper = found.lower, found.upper
    if searched != metric:
        lower, upper = (lower, None) if metric == PDR else (None, upper)
    if lower is None:
        return None if upper is None else CellRun(row, 0.0, "", upper, None, upper, points)
    # A tool that reports no upper bound has searched up to its figure.
    missed_pps = None if upper is None else max(upper, _EQUAL**2 * lower)
    worst = _worst_flow(row, searched, seen)
    if worst is None:
        return CellRun(row, lower / services, "mean of all instances", lower, lower, missed_pps, points)
    allowed = row.pdr_loss_ratio if metric == PDR else row.ndr_loss_ratio
    met_pps = 2 * worst.forwarded_pps * services
    if allowed is not None and worst.loss_ratio <= allowed:
        met_pps = max(met_pps, lower)
    elif allowed is not None:
        missed_pps = lower
    return CellRun(row, 2 * worst.forwarded_pps, _name(worst), worst.load_pps, met_pps, missed_pps, points)


def searched_goal(row: TestRow, metric: Measure) -> Measure | None:
    """Return the goal whose figure tells about another one: itself where the test has it; None without a figure."""
    return next((each for each in (metric, NDR, PDR) if bounds(row, each) is not None), None)


def _run_at_rate(
    row: TestRow, load_pps: float, metric: Measure, worst: InstanceRow | None, points: tuple[LatencyPoint, ...]
) -> CellRun:
    """Result of trials at a rate that was asked for."""
    is_met = row.rate_pdr_sustained if metric == PDR else row.rate_ndr_sustained
    return CellRun(
        row,
        2 * worst.forwarded_pps if worst else 0.0,
        _name(worst) if worst else "no instance",
        load_pps,
        load_pps if is_met else None,
        load_pps if is_met is False else None,
        points,
    )


def _worst_flow(row: TestRow, number: str, seen: AnswerEvidence) -> InstanceRow | None:
    """The flow that forwarded least: all are offered equal shares."""
    flows = (flow for flow in seen.instances.get(row.anchor, ()) if flow.number == number)
    return min(flows, key=lambda flow: flow.forwarded_pps, default=None)


def _name(flow: InstanceRow) -> str:
    return f"instance {flow.instance} {flow.direction}"


def latency_points(rows: Iterable[LatencyRow]) -> list[LatencyPoint]:
    """Return the worst p99 of each load, lowest load first."""
    loads: dict[tuple[float, str], list[LatencyRow]] = {}
    for row in rows:
        loads.setdefault((row.load_pps, row.load), []).append(row)
    return [LatencyPoint(label, load, _worst_p99(flows)) for (load, label), flows in sorted(loads.items())]


def _worst_p99(flows: Sequence[LatencyRow]) -> float | None:
    worst = 0.0
    for flow in flows:
        # With a hundredth of the probes lost the 99th percentile of all that were sent is among the lost ones.
        if flow.p99_ns is None:
            return None
        if flow.sent is not None and flow.received is not None and flow.received < PERCENTILE * flow.sent:
            return None
        worst = max(worst, flow.p99_ns)
    return worst
