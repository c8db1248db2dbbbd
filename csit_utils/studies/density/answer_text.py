"""Answers as text: number of instances, evidence and limit of an answer, and what trials say of other goals.

Also the table of short answers on the overview, with what its page needs to answer again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from csit_utils.analysis.grouping import Series, all_series, series_names
from csit_utils.dataset.rows import PUBLISHED
from csit_utils.report.units import common_unit, digits3, latency, percent, rate, seconds
from csit_utils.studies.density.analysis.answers import (
    AnswerEvidence,
    AnswerVerdict,
    DensityAnswer,
    Known,
    LatencyPoint,
    LoadWitness,
    MeasuredCell,
    MeasuredServices,
    Question,
    ServiceCountResult,
    answer,
    measured_services,
    searched_goal,
)
from csit_utils.studies.density.analysis.other_goals import GoalAnswer
from resources.libraries.python.model.request.goal import Goal
from resources.libraries.python.search.load_trials import AT_RATE

_MAX_LINES = 40
_MAX_CELLS = 2_000
"""Cells up to which the page can answer other questions."""
_PHRASES = {
    AnswerVerdict.RATE: "not {}: too much loss",
    AnswerVerdict.LATENCY: "not {}: p99 too high",
    AnswerVerdict.RATE_UNKNOWN: "{}: loss unknown",
    AnswerVerdict.LATENCY_UNKNOWN: "{}: p99 unknown",
    AnswerVerdict.NO_RESULT: "{}: no result",
    AnswerVerdict.DOES_NOT_FIT: "not {}: no room",
    AnswerVerdict.NOT_MEASURED: "{}: not measured",
}
"""On a number of services that does not qualify."""


_PARTS: tuple[Callable[[Series], str], ...] = (
    lambda series: series.frame,
    lambda series: series.method,
    lambda series: series.system.name,
)


@dataclass(frozen=True)
class FitLine:
    """Answers of one series."""

    name: str
    where: str
    """Frame, search and testbed, as far as series differ in them."""
    simulated: bool
    answers: tuple[tuple[str, str] | None, ...]
    """Number of services, and what limits it; None where no such service was measured."""


@dataclass(frozen=True)
class FitsView:
    """A question with its answers by series and number of NFs."""

    question: Question
    rate: str
    p99: str
    """Empty without a bound."""
    nfs: tuple[int, ...]
    """Columns: NFs of a service."""
    lines: tuple[FitLine, ...]
    more: int
    """Series that are left out."""
    data: Mapping[str, object] | None
    """For `script/fits.js`; None for too many cells."""


def fits_view(question: Question, seen: AnswerEvidence) -> FitsView:
    """Return the answers to a question from all tests that are not published figures."""
    every = [series for series in all_series(seen.rows) if series.system.world != PUBLISHED]
    called = series_names(every)
    telling = [part for part in _PARTS if len({part(series) for series in every}) > 1]
    shown: dict[Series, dict[int, MeasuredServices]] = {}
    for each in measured_services(question.metric, seen, every[:_MAX_LINES]):
        shown.setdefault(each.series, {})[each.nfs] = each
    nfs = tuple(sorted({nfs for own in shown.values() for nfs in own}))
    table = [[own.get(length) for length in nfs] for own in shown.values()]
    lines = tuple(
        FitLine(
            called[series],
            ", ".join(part(series) for part in telling),
            series.system.simulated,
            tuple(_short(answer(question, each)) if each else None for each in own),
        )
        for series, own in zip(shown, table, strict=True)
    )
    few = sum(len(each.cells) for own in table for each in own if each) <= _MAX_CELLS
    data = {
        "phrases": {verdict.name: phrase for verdict, phrase in _PHRASES.items()},
        "kept": AnswerVerdict.KEPT.name,
        "lines": [[[_facts(cell) for cell in each.cells] if each else None for each in own] for own in table],
    }
    bound = latency(question.p99_ns) if question.p99_ns is not None else ""
    more = len(every) - len(shown)
    return FitsView(question, rate(question.rate_pps), bound, nfs, lines, more, data if few else None)


def _short(found: DensityAnswer) -> tuple[str, str]:
    limits = (_PHRASES[each.verdict].format(each.services) for each in (found.next, *found.doubts))
    return str(found.services or "none"), "; ".join(limits)


def _facts(cell: MeasuredCell) -> Mapping[str, object]:
    """What decides about a cell: aggregate loads in pps, and p99 in ns by load for each test."""
    if not cell.runs:
        return {"services": cell.services, "without": cell.without.name}
    return {
        "services": cell.services,
        "met": cell.rates.met[-1].load_pps if cell.rates.met else None,
        "missed": cell.rates.missed.load_pps if cell.rates.missed else None,
        "runs": [[(point.load_pps, point.p99_ns) for point in run.points] for run in cell.every],
    }


COLUMNS = ("service", "NFs", "NF size", "vSwitch", "frame", "instances", "evidence", "next")
"""Of an answer as a table."""


@dataclass(frozen=True)
class AnswerView:
    """One answer, ready to be written."""

    cells: tuple[str, ...]
    """As `COLUMNS`."""
    href: str | None
    """The test that the answer rests on."""
    marks: tuple[str, ...]
    """Words that qualify it: simulated, oversubscribed, and verdicts of the test."""


def question_text(question: Question) -> str:
    """The question in words."""
    bound = f" with p99 under {latency(question.p99_ns)}" if question.p99_ns is not None else ""
    return f"How many instances fit at {rate(question.rate_pps)} each{bound}, loss as for {question.metric}?"


def view(answer: DensityAnswer) -> AnswerView:
    """One answer."""
    series, best = answer.series, answer.best
    row = best.run.row if best and best.run else None
    marks = [] if row is None else [word for word in row.verdicts.split() if word != "measured"]
    if row is not None and row.oversubscribed and "oversubscribed" not in marks:
        marks.append("oversubscribed")
    if series.system.simulated:
        marks.insert(0, "SIMULATED")
    cells = (
        series.service_type,
        str(answer.nfs),
        series.nf_size or "?",
        "?" if series.vs_dtc is None else f"{series.vs_dtc}c",
        series.frame,
        str(answer.services) if best else "none",
        "; ".join([evidence_text(answer), *(f"but {_refused(answer, each)}" for each in answer.doubts)]),
        next_text(answer),
    )
    return AnswerView(cells, f"#{row.anchor}" if row is not None else None, tuple(marks))


def evidence_text(answer: DensityAnswer) -> str:
    """Evidence of the answer."""
    best = answer.best
    if best is None or best.run is None:
        return "no measured number of instances qualifies"
    run, point = best.run, best.point
    load = "" if run.row.rate_load_pps else f"{searched_goal(run.row, answer.question.metric)} load "
    text = (
        f"{_cell(answer, best)} gives its worst instance {rate(run.worst_pps)} ({run.worst_of}) at "
        f"{load}{rate(run.load_pps)}"
    )
    if point is not None:
        text += f", {_p99(point)} at {_place(point)}"
        if best.timed is not None and best.timed != run.row:
            text += f" of {best.timed.test_name}"
    if contrary := [each.point for each in best.known.contrary if each.point is not None]:
        lower = contrary[-1]
        text += f", although {_p99(lower)} at the lower {rate(lower.load_pps)}"
    return text


def next_text(answer: DensityAnswer) -> str:
    """Limit of the next instance."""
    following = answer.next
    first = answer.services + 1
    gap = ""
    if following.verdict is not AnswerVerdict.NOT_MEASURED and following.services > first:
        last = following.services - 1
        gap = f"; {first if first == last else f'{first} to {last}'} not measured"
    return _refused(answer, following) + gap


def _refused(answer: DensityAnswer, looked: ServiceCountResult) -> str:
    cell, question, run, point = _cell(answer, looked), answer.question, looked.run, looked.point
    match looked.verdict:
        case AnswerVerdict.DOES_NOT_FIT:
            return f"{cell} does not fit: {looked.reason}"
        case AnswerVerdict.NO_RESULT:
            return f"{cell} has no result: {looked.reason}" if looked.reason else f"{cell} has no result"
        case AnswerVerdict.RATE if run is not None:
            beyond = f"; {question.metric} is not met at {rate(run.missed_pps)}" if run.missed_pps else ""
            worst = f", worst instance {rate(run.worst_pps)} ({run.worst_of})" if run.worst_of else ""
            return f"{cell}: rate too low{worst}{beyond}"
        case AnswerVerdict.LATENCY if point is not None:
            return f"{cell}: latency too high, {_p99(point)} at {_place(point)}"
        case AnswerVerdict.RATE_UNKNOWN | AnswerVerdict.LATENCY_UNKNOWN:
            what = "loss" if looked.verdict is AnswerVerdict.RATE_UNKNOWN else "p99"
            return f"{cell}: {what} not measured{_between(looked.known)}; {_trial(question, looked)}"
        case _:
            return f"{cell} was not measured"


def _between(known: Known) -> str:
    """Loads between which it is not known whether a requirement is met."""
    met, missed = known.met[-1] if known.met else None, known.missed
    if met is not None and missed is not None:
        return f" between {rate(met.load_pps)} ({_seen(met)}) and {rate(missed.load_pps)} ({_seen(missed)})"
    if missed is not None:
        return f" below {rate(missed.load_pps)} ({_seen(missed)})"
    return f" above {rate(met.load_pps)} ({_seen(met)})" if met is not None else ""


def _seen(observed: LoadWitness) -> str:
    if observed.point is not None:
        return _p99(observed.point)
    return "met" if observed.is_met else "too much was lost"


def _p99(point: LatencyPoint) -> str:
    return "p99 unknown, probes were lost" if point.p99_ns is None else f"p99 {latency(point.p99_ns)}"


def _place(point: LatencyPoint) -> str:
    load = rate(point.load_pps)
    return load if point.label == AT_RATE else f"{point.label} ({load})"


def _trial(question: Question, looked: ServiceCountResult) -> str:
    load = rate(question.rate_pps * looked.services)
    return f"a trial at {load} decides" if looked.is_open else f"trials at {load} have not decided it"


def _cell(answer: DensityAnswer, looked: ServiceCountResult) -> str:
    return f"{looked.services}x{answer.nfs}"


class OtherGoalView:
    """One line of a table of other goals."""

    def __init__(self, answer: GoalAnswer) -> None:
        asked = answer.asked
        self.name, self.definition, self.source = asked.goal.name, _definition(asked.goal), asked.source
        self.bounds, self.evidence, self.decided = _bounds(answer), _evidence(answer), answer.complete


def _bounds(answer: GoalAnswer) -> str:
    lower, upper = answer.lower, answer.upper
    if upper is None:
        return "no bound" if lower is None else f"at least {rate(lower.load_pps)}"
    if lower is None:
        return f"below {rate(upper.load_pps)}"
    factor, _ = common_unit([upper.load_pps])
    return f"{digits3(lower.load_pps / factor)} … {rate(upper.load_pps)}"


def _evidence(answer: GoalAnswer) -> str:
    bounds = (("lower", answer.lower), ("upper", answer.upper))
    shorter = [name for name, bound in bounds if bound is not None and bound.by_shorter]
    parts = [f"{' and '.join(shorter)} bound by shorter trials (95 %)"] if shorter else []
    if answer.needed is not None:
        needed = answer.needed
        trials = "trial" if needed.trials == 1 else "trials"
        parts.append(
            f"undecided: {needed.trials} {trials} of {seconds(needed.duration_s)} at {rate(needed.load_pps)} needed"
        )
    return "; ".join(parts) or "decided"


def _definition(goal: Goal) -> str:
    text = f"loss ≤ {percent(goal.loss_ratio)}, trials of {seconds(goal.final_trial_duration_s)}"
    if goal.duration_sum_s > goal.final_trial_duration_s:
        text += f" that add up to {seconds(goal.duration_sum_s)}"
    if goal.exceed_ratio:
        text += f", of which {percent(goal.exceed_ratio)} may lose more"
    return text
