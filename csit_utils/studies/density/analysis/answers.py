"""Number of service instances that fit at a given rate and latency, from measurements only.

A cell of S services meets the rate X if its worst instance and direction does: at the load of the lower bound of the
chosen goal every instance gets the same share, and received packets are counted by instance and direction. The rate of
an instance is the sum of both directions, half each. The cell meets the latency bound Y if at a measured load of at
least X S no instance and direction has a 99th percentile of Y or more; a lost probe counts as too late. So a looser
bound can only add cells: the answer never gets smaller. Nothing is interpolated or extrapolated.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from csit_utils.analysis.grouping import Metric, Series, all_series, belongs, bounds, systems_by_source
from csit_utils.dataset.items import Refusal
from csit_utils.dataset.rows import InstanceRow, LatencyRow, TestRow
from csit_utils.studies.density.analysis.density import refusals

PERCENTILE = 0.99


@dataclass(frozen=True)
class Question:
    """Number of instances at a rate each, with p99 below a bound."""

    rate_pps: float
    """Rate of one instance, both directions together."""
    p99_ns: float | None = None
    """None: no latency bound."""
    metric: Metric = Metric.PDR
    """The goal whose loss ratio is allowed: NDR or PDR."""


class AnswerVerdict(StrEnum):
    """Result of a measured or planned cell for a question."""

    KEPT = "kept"
    RATE = "rate"
    """The worst instance gets less than the rate."""
    LATENCY = "latency"
    """Every sufficiently high measured load has a p99 of the bound or more."""
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
    """The worst instance: `instance 3 reverse`; `mean of all instances` without counts by instance."""
    load_pps: float
    """Load at which it was measured."""
    points: tuple[LatencyPoint, ...]


@dataclass(frozen=True)
class ServiceCountResult:
    """One number of services and its result for a question."""

    services: int
    verdict: AnswerVerdict
    run: CellRun | None = None
    """The test of the rate, of several the one with the lowest rate."""
    point: LatencyPoint | None = None
    """If met, the load at which latency was below the bound, otherwise the best sufficiently high load."""
    timed: TestRow | None = None
    """The test of `point`, which may be another one."""
    reason: str = ""
    """Reason of a cell that does not fit or has no result."""


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


@dataclass(frozen=True)
class AnswerEvidence:
    """Measurements, sorted for questions."""

    rows: Sequence[TestRow]
    instances: dict[str, list[InstanceRow]]
    """By anchor of the test."""
    latencies: dict[str, list[LatencyRow]]
    refused: Sequence[Refusal]


def evidence(
    rows: Sequence[TestRow],
    instances: Iterable[InstanceRow],
    latencies: Iterable[LatencyRow],
    refused: Sequence[Refusal] = (),
) -> AnswerEvidence:
    """Return measurements sorted by test."""
    by_instance: dict[str, list[InstanceRow]] = {}
    for instance in instances:
        by_instance.setdefault(instance.anchor, []).append(instance)
    by_load: dict[str, list[LatencyRow]] = {}
    for latency in latencies:
        by_load.setdefault(latency.anchor, []).append(latency)
    return AnswerEvidence(rows, by_instance, by_load, refused)


def answers(question: Question, seen: AnswerEvidence) -> list[DensityAnswer]:
    """Return an answer for every series and length of service with a test."""
    sources = systems_by_source(seen.rows)
    found = []
    for series in all_series(seen.rows):
        cells: dict[tuple[int, int], list[TestRow]] = {}
        for row in seen.rows:
            at = row.dimensions
            if at is not None and at.nfs and belongs(row, series, sources.get(row.source)):
                cells.setdefault(at, []).append(row)
        refused = refusals(seen.rows, series, seen.refused)
        for nfs in sorted({nodes for _, nodes in cells}):
            looked = [_look(question, seen, place[0], tests) for place, tests in cells.items() if place[1] == nfs]
            looked += [
                ServiceCountResult(place[0], AnswerVerdict.DOES_NOT_FIT, reason=cell.reason)
                for place, cell in refused.items()
                if place[1] == nfs and place not in cells
            ]
            found.append(_answer(question, series, nfs, sorted(looked, key=lambda each: each.services)))
    return found


def _answer(question: Question, series: Series, nfs: int, looked: Sequence[ServiceCountResult]) -> DensityAnswer:
    kept = [each for each in looked if each.verdict is AnswerVerdict.KEPT]
    best = kept[-1] if kept else None
    services = best.services if best else 0
    above = [each for each in looked if each.services > services]
    below = tuple(each for each in looked if each.services < services and each.verdict is not AnswerVerdict.KEPT)
    following = above[0] if above else ServiceCountResult(services + 1, AnswerVerdict.NOT_MEASURED)
    return DensityAnswer(question, series, nfs, best, following, below)


def _look(question: Question, seen: AnswerEvidence, services: int, tests: Sequence[TestRow]) -> ServiceCountResult:
    """Combined result of the tests of one cell: each must meet the bounds."""
    # A latency test finds a PDR on its way, with less evidence: it counts where no other test asked for PDR.
    asked = [row for row in tests if question.metric.value in (row.test_type or "")]
    runs = _runs(asked, question.metric, seen) or _runs(tests, question.metric, seen)
    if not runs:
        unfit = next((row for row in tests if row.planned is False), None)
        row = unfit or tests[-1]
        return ServiceCountResult(
            services, AnswerVerdict.DOES_NOT_FIT if unfit else AnswerVerdict.NO_RESULT, reason=row.message
        )
    worst = runs[0]
    if worst.worst_pps < question.rate_pps:
        return ServiceCountResult(services, AnswerVerdict.RATE, worst)
    if question.p99_ns is None:
        return ServiceCountResult(services, AnswerVerdict.KEPT, worst)
    if not any(run.points for run in runs):
        # Another test of the same cell may have measured latency.
        runs = _runs(tests, question.metric, seen)
    judged = [replace(_with_latency(question, services, run), run=worst) for run in runs if run.points]
    for verdict in (AnswerVerdict.LATENCY, AnswerVerdict.LATENCY_UNKNOWN, AnswerVerdict.KEPT):
        for each in judged:
            if each.verdict is verdict:
                return each
    return ServiceCountResult(services, AnswerVerdict.LATENCY_UNKNOWN, worst)


def _with_latency(question: Question, services: int, run: CellRun) -> ServiceCountResult:
    enough = [point for point in run.points if point.load_pps >= question.rate_pps * services]
    known = [point for point in enough if point.p99_ns is not None]
    if not enough:
        highest = max(run.points, key=lambda point: point.load_pps)
        return ServiceCountResult(services, AnswerVerdict.LATENCY_UNKNOWN, run, highest, run.row)
    best = min(known, key=lambda point: point.p99_ns or 0.0) if known else enough[0]
    kept = best.p99_ns is not None and question.p99_ns is not None and best.p99_ns < question.p99_ns
    return ServiceCountResult(services, AnswerVerdict.KEPT if kept else AnswerVerdict.LATENCY, run, best, run.row)


def _runs(tests: Sequence[TestRow], metric: Metric, seen: AnswerEvidence) -> list[CellRun]:
    """Results of tests with a figure, lowest rate first."""
    found = [run for row in tests if (run := _run(row, metric, seen)) is not None]
    return sorted(found, key=lambda run: run.worst_pps)


def _run(row: TestRow, metric: Metric, seen: AnswerEvidence) -> CellRun | None:
    """Rates and latency of a test; None without a reliable lower bound."""
    found = bounds(row, metric)
    if found is None or found.lower is None or row.dimensions is None:
        return None
    points = tuple(latency_points(seen.latencies.get(row.anchor, ())))
    flows = [flow for flow in seen.instances.get(row.anchor, ()) if flow.number == metric.value]
    if not flows:
        return CellRun(row, found.lower / row.dimensions.instances, "mean of all instances", found.lower, points)
    worst = min(flows, key=lambda flow: flow.forwarded_pps)
    return CellRun(row, 2 * worst.forwarded_pps, f"instance {worst.instance} {worst.direction}", worst.load_pps, points)


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
