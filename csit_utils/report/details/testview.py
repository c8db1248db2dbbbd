"""Values for the page of one test."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from csit_utils.analysis.grouping import ThroughputBounds, beside, bounds
from csit_utils.analysis.latency import HALF_LOADS, merge, percentiles
from csit_utils.dataset.flatten import record_rows
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import MRR, NDR, ORR, PDR, PLACES, SOAK, LatencyRow, TestRow, TrialRow, frame_text
from csit_utils.report.details.capsule import capsule
from csit_utils.report.details.coremap import core_map
from csit_utils.report.details.flames import cost_table, flame_graph
from csit_utils.report.details.machines import (
    energy_figure,
    energy_lines,
    energy_notes,
    noise_figure,
    noise_floor,
    qualification_figure,
    qualification_view,
)
from csit_utils.report.details.trial_plots import loss_notes, loss_pattern_figure, loss_patterns, search_path
from csit_utils.report.figures import ALL_INSTANCES, Figure, latency_figure
from csit_utils.report.record_blocks import Column, Plot, RecordTables
from csit_utils.report.units import DASH, amount, percent, rate, seconds
from csit_utils.studies.density.analysis.checklist import checklist
from csit_utils.studies.density.analysis.losses import busiest_cpu
from csit_utils.studies.density.analysis.other_goals import other_goals
from csit_utils.studies.density.answer_text import OtherGoalView
from csit_utils.studies.density.latency_maps import instance_maps
from resources.libraries.python.model.findings import ItemizedFigure, LocatedLosses, ThreadLoad
from resources.libraries.python.model.request.goal import GoalResult, PredictedGoal, Prior, SearchRecord
from resources.libraries.python.model.result import BackToBack, Verdict, l1_bps
from resources.libraries.python.search.back_to_back import bursts_in_words
from resources.libraries.python.search.findings.limits import cause_in_words
from resources.libraries.python.search.findings.locate import by_owner
from resources.libraries.python.studies.density.model import DensityRecord

_LISTED = 40
"""Rows of a table of hops; the CSV file has all."""


class OwnerLoss:
    """Losses of one owner."""

    def __init__(self, owner: str, count: int, lost: int, threads: Iterable[ThreadLoad]) -> None:
        self.owner, self.lost = owner, count
        self.share = count / max(1, lost)
        """Share of all lost packets."""
        self.busy, self.waiting = busiest_cpu([thread for thread in threads if thread.owner == owner])
        """Times of its busiest data thread, in [0, 1]; None if unknown."""


class LossView:
    """Losses above the limit by hop."""

    def __init__(self, found: LocatedLosses) -> None:
        self.heading = "in the trials of MRR" if found.purpose == "mrr" else "in a trial beyond the bounds"
        self.offered_pps, self.sent, self.lost = found.offered_pps, found.sent, found.sent - found.received
        threads = found.usage.threads if found.usage else ()
        self.owners = [OwnerLoss(*each, self.lost, threads) for each in by_owner(found.hops).items()]
        self.hops = [(hop, cause_in_words(hop)) for hop in found.hops[:_LISTED]]
        """With their causes in words."""
        self.more = max(0, len(found.hops) - _LISTED)
        """Number of hops that are not listed."""
        self.threads = sorted(threads, key=lambda thread: -(thread.running + thread.waiting))
        self.usage = found.usage


def shares_of(result: DensityRecord) -> tuple[tuple[str, ItemizedFigure, tuple[str, ...]], ...]:
    """Return all throughput figures of a test by instance and direction, with heading and verdict."""
    where = {"MRR": "MRR, in overload", "ORR": "ORR, in overload", "overload": "in overload"}
    return tuple(
        (where.get(item.number, f"{item.number}, at its lower bound"), item, result.verdict.of(item.number))
        for item in result.itemized
    )


def bursts_text(found: BackToBack | None) -> str:
    """Return the result in a sentence; empty where it was not measured."""
    if found is None:
        return ""
    text = bursts_in_words(found)
    return (
        f"{text[0].upper()}{text[1:]} ({found.implied_buffer_s * 1e6:.0f} µs implied); {len(found.frames)} "
        f"repetitions from {min(found.frames)} to {max(found.frames)} frames, {found.trials} bursts."
    )


def burst_figure(anchor: str, title: str, found: BackToBack | None, *, simulated: bool) -> Figure | None:
    """Return the longest burst in each repetition; None where there are not several."""
    if found is None or len(found.frames) < 2:
        return None
    line = "longest burst"
    rows = [{"line": line, "repetition": number, "frames": count} for number, count in enumerate(found.frames, 1)]
    y = Column("frames", "frames of each flow")
    plot = Plot(anchor, title, line, Column("repetition", "repetition"), y, colour="line", mark="markers")
    return plot.draw(RecordTables("bursts", simulated, None, {line: rows}))


_NAMES = {
    "mlrsearch": "MLRsearch",
    "ladder": "the ladder search",
    "rfc2544": "RFC 2544's binary search",
    "plr": "PLRsearch",
}


def searched(record: SearchRecord | None) -> str:
    """Return the sentence; empty without a search, or if the record has no data on it."""
    if record is None:
        return ""
    name = _NAMES[record.algorithm]
    ended = f"{record.aborted_trials} of them ended early" if record.aborted_trials else "none ended early"
    trials = f"{record.trials} trial{'s' if record.trials != 1 else ''}"
    return f"Searched by {name}, {_start(record.prior, refuted=record.prior_refuted)}: {trials}, {ended}, in " + (
        f"{seconds(record.elapsed_s)}."
    )


def predicted(record: SearchRecord | None, goals: Iterable[GoalResult | None]) -> str:
    """Return what cells measured before predicted and how the measured bounds differ; empty without predictions."""
    if record is None or not record.predicted:
        return ""
    lower_pps = {goal.goal.name: goal.lower_pps for goal in goals if goal is not None}
    parts = [_prediction(each, lower_pps.get(each.goal)) for each in record.predicted]
    cells = min(each.cells for each in record.predicted)
    unused = "" if record.prior else "; too uncertain to start from"
    return f"Predicted by {cells} cells, with intervals of 95 %: {'; '.join(parts)}{unused}."


def _prediction(goal: PredictedGoal, measured_pps: float | None) -> str:
    text = f"{goal.goal} {rate(goal.pps)}, {rate(goal.low_pps)} to {rate(goal.high_pps)}"
    if measured_pps is None:
        return text
    outside = "" if goal.low_pps <= measured_pps <= goal.high_pps else ", outside of the interval"
    return f"{text} (measured {percent(measured_pps / goal.pps - 1, signed=True)}{outside})"


def _start(prior: Prior | None, *, refuted: bool) -> str:
    if prior is None:
        return "without an earlier result"
    against = ", which its trials refuted" if refuted else ""
    if prior.cells is not None:
        return f"from a prediction by {prior.cells} cells measured before{against}"
    return f"from the result of {prior.test_id} of {prior.started_at}{against}"


@dataclass(frozen=True)
class GoalView:
    """One line of the table of results."""

    name: Measure
    definition: str
    lower_pps: float | None
    upper_pps: float | None
    text: str
    complete: bool
    l1_bps: float | None
    verdict: tuple[str, ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class LatencyView:
    """One line of a latency table."""

    instance: str
    load: str
    load_pps: float
    direction: str
    sent: int | None
    received: int | None
    figures: tuple[float | None, ...]
    """Minimum, percentiles 50, 90, 99 and 99.9, maximum."""


class TestView:
    """The values for the page of a test."""

    __test__ = False  # not a pytest class

    def __init__(self, result: DensityRecord, row: TestRow) -> None:
        latencies = list(record_rows(LatencyRow, row.anchor, result))
        asked, plan, verdict, simulated = result.asked, result.plan, result.verdict, result.simulated
        self.row = row
        self.cell = str(asked.cell.dimensions)
        self.frame = frame_text(asked.frame)
        subject = f"{asked.cell.service_type} {self.cell} {self.frame}"
        self.goals = _goals(result, row)
        self.kinds = verdict.kinds
        self.evidence = verdict.evidence
        self.cores = core_map(result)
        self.latency = (*_merged(latencies), *map(_latency, latencies))
        self.latency_figure = latency_figure(
            f"latency-{row.anchor}", f"{subject}: latency", latencies, simulated=simulated
        )
        self.instance_maps = instance_maps(f"latency-instances-{row.anchor}", latencies, simulated=simulated)
        self.trials = tuple(record_rows(TrialRow, row.anchor, result))
        self.path = search_path(result)
        self.searched = searched(result.search)
        self.predicted = predicted(result.search, (result.ndr, result.pdr))
        self.checklist = checklist(result)
        self.other_goals = tuple(map(OtherGoalView, other_goals(result.trials)))
        self.shares = shares_of(result)
        self.loss = LossView(result.located) if result.located is not None else None
        self.loss_patterns = loss_patterns(result.losses)
        self.loss_notes = loss_notes(result.losses, result.loss_patterns)
        self.loss_pattern_figure = loss_pattern_figure(
            f"losses-{row.anchor}", f"{subject}: loss patterns", result.losses, simulated=simulated
        )
        self.bursts = bursts_text(result.back_to_back)
        self.burst_figure = burst_figure(
            row.anchor, f"{subject}: longest bursts without a loss", result.back_to_back, simulated=simulated
        )
        self.energy = energy_lines(result.energy)
        self.energy_metered = any(line.watts is not None for line in self.energy)
        self.energy_notes = energy_notes(result.energy, plan)
        self.energy_figure = energy_figure(row.anchor, f"{subject}: power", result.energy, simulated=simulated)
        self.costs = cost_table(result.costs, simulated=simulated)
        self.flames = flame_graph(result.stacks, simulated=simulated)
        self.noise = noise_floor(plan, result.noise)
        self.noise_figure = noise_figure(
            row.anchor, f"{subject}: noise floor of the data CPUs", plan, result.noise, simulated=simulated
        )
        flows = len(plan.flows) if plan else 2 * asked.cell.nf_chains
        self.qualification = qualification_view(result.qualification, asked.frame, flows)
        self.qualification_figure = qualification_figure(
            f"qualification-{row.anchor}",
            f"{subject}: range of the generator",
            self.qualification,
            [("NDR", row.ndr_lower_pps), ("PDR", row.pdr_lower_pps), ("MRR", row.mrr_pps)],
            simulated=simulated,
        )
        self.latency_verdict = verdict.of("LATENCY")
        self.latency_evidence = verdict.evidence_of("LATENCY")
        self.p99_ns = p99_at_half_pdr(latencies)
        self.capsule = capsule(result)
        self.suite_id = plan.suite_id if plan else ""
        self.warnings = plan.warnings if plan else ()
        self.facts = tuple(_facts(row))
        maps = self.instance_maps.figure if self.instance_maps else None
        measured = (self.latency_figure, maps, self.energy_figure, self.loss_pattern_figure, self.burst_figure)
        every = (*measured, self.qualification_figure, self.noise_figure)
        self.figures = tuple(figure for figure in every if figure is not None)


def _facts(row: TestRow) -> Iterator[tuple[str, str]]:
    """Yield the columns that have a label, formatted by the unit in their name."""
    formats = {"s": seconds, "pps": rate}
    for column, at in PLACES.items():
        value = getattr(row, column)
        if at.label and value is not None:
            yield at.label, formats.get(column.rpartition("_")[2], str)(value)


def p99_at_half_pdr(rows: Sequence[LatencyRow]) -> int | None:
    """Return the worst p99 over instances and directions at 50 % of PDR or of the soak rate, in nanoseconds."""
    return max((row.p99_ns for row in rows if row.load in HALF_LOADS and row.p99_ns is not None), default=None)


def bounds_text(row: TestRow, metric: Measure) -> str:
    """Return a figure as short text: the lower bound, marked if there is no upper or no lower one."""
    found = bounds(row, metric)
    if found is None:
        return DASH
    return bound_mark(found) + amount(metric, row, found.upper if found.lower is None else found.lower)


def bound_mark(found: ThroughputBounds) -> str:
    """Return the mark of a figure without an upper or a lower bound, or with bounds farther apart than asked for."""
    if found.upper is None:
        return "≥ "
    if found.lower is None:
        return "< "
    return "" if found.complete else "≈ "


def _goals(result: DensityRecord, row: TestRow) -> list[GoalView]:
    frame = result.asked.frame
    views = [
        _goal(name, found, result.verdict, frame_l1=l1_bps(1.0, frame))
        for name, found in ((NDR, result.ndr), (PDR, result.pdr), (SOAK, result.soak))
        if found is not None
    ]
    for name, found, bps in ((MRR, result.mrr, row.mrr_l1_bps), (ORR, result.orr, row.orr_l1_bps)):
        if found is not None:
            spread = f" ± {rate(found.stdev_pps)}" if found.stdev_pps is not None else ""
            trials = len(found.receive_rates_pps)
            definition = f"{trials} trials, {rate(found.offered_pps)} offered, at any loss"
            text = f"{rate(found.mean_pps)}{spread}"
            verdicts = result.verdict.of(name), result.verdict.evidence_of(name)
            views.append(GoalView(name, definition, found.mean_pps, None, text, True, bps, *verdicts))
    return [each for view in views for each in (view, *_beside(view.name, row))]


def _beside(throughput: Measure, row: TestRow) -> Iterator[GoalView]:
    for name in beside(throughput, (row,))[1:]:
        definition = name.explanation.what if name.explanation else ""
        yield GoalView(name, definition, None, None, bounds_text(row, name), True, None, (), ())


def _goal(name: Measure, found: GoalResult, verdict: Verdict, *, frame_l1: float) -> GoalView:
    goal = found.goal
    definition = (
        f"critical load at a mean loss ratio of {percent(goal.loss_ratio)}, estimate ± its deviation"
        if name == SOAK
        else f"loss ≤ {percent(goal.loss_ratio)}, bounds within {percent(goal.relative_width)}, "
        f"trials of {seconds(goal.final_trial_duration_s)}"
    )
    if found.lower_pps is None:
        text = f"below {rate(found.lowest_tried_pps or found.upper_pps)}"
    elif found.upper_pps is None:
        text = f"at least {rate(found.lower_pps)}"
    else:
        text = f"{rate(found.lower_pps)} … {rate(found.upper_pps)}"
    bandwidth = found.lower_pps * frame_l1 if found.lower_pps is not None else None
    verdicts = verdict.of(name), verdict.evidence_of(name)
    return GoalView(name, definition, found.lower_pps, found.upper_pps, text, found.complete, bandwidth, *verdicts)


def _latency(row: LatencyRow) -> LatencyView:
    figures = (row.min_ns, row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns, row.max_ns)
    return LatencyView(str(row.instance), row.load, row.load_pps, row.direction, row.sent, row.received, figures)


def _sum(counts: Sequence[int | None]) -> int | None:
    """Sum of counts; None if one is unknown."""
    return None if None in counts else sum(filter(None, counts))


def _merged(rows: Sequence[LatencyRow]) -> list[LatencyView]:
    """Merged latency of all instances, if there are several."""
    if len({row.instance for row in rows}) < 2:
        return []
    views = []
    for load, direction in dict.fromkeys((row.load, row.direction) for row in rows):
        chosen = [row for row in rows if (row.load, row.direction) == (load, direction)]
        histogram = merge(row.histogram for row in chosen if row.histogram)
        figures: tuple[float | None, ...] = (None,) * 6
        if histogram is not None:
            found = percentiles(histogram)
            figures = (found.min_ns, found.p50_ns, found.p90_ns, found.p99_ns, found.p999_ns, found.max_ns)
        sent, received = _sum([row.sent for row in chosen]), _sum([row.received for row in chosen])
        views.append(LatencyView(ALL_INSTANCES, load, chosen[0].load_pps, direction, sent, received, figures))
    return views
