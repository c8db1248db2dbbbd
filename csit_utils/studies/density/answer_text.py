"""Answers as text: number of instances, evidence, and limit of the next one."""

from dataclasses import dataclass

from csit_utils.report.units import latency, rate
from csit_utils.studies.density.analysis.answers import AnswerVerdict, DensityAnswer, Looked, Question

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
    text = (
        f"{_cell(answer, best)} gives its worst instance {rate(run.worst_pps)} ({run.worst_of}) "
        f"at {answer.question.metric} load {rate(run.load_pps)}"
    )
    if point is not None:
        text += f", p99 {latency(point.p99_ns)} at {point.label} ({rate(point.load_pps)})"
        if best.timed is not None and best.timed != run.row:
            text += f" of {best.timed.test_name}"
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


def _refused(answer: DensityAnswer, looked: Looked) -> str:
    cell, question, run, point = _cell(answer, looked), answer.question, looked.run, looked.point
    match looked.verdict:
        case AnswerVerdict.DOES_NOT_FIT:
            return f"{cell} does not fit: {looked.reason}"
        case AnswerVerdict.NO_RESULT:
            return f"{cell} has no result: {looked.reason}" if looked.reason else f"{cell} has no result"
        case AnswerVerdict.RATE if run is not None:
            return f"{cell}: rate too low, worst instance {rate(run.worst_pps)} ({run.worst_of})"
        case AnswerVerdict.LATENCY if point is not None:
            p99 = "p99 unknown, probes were lost" if point.p99_ns is None else f"p99 {latency(point.p99_ns)}"
            return f"{cell}: latency too high, {p99} at {point.label} ({rate(point.load_pps)})"
        case AnswerVerdict.LATENCY_UNKNOWN:
            needed = rate(question.rate_pps * looked.services)
            highest = f", the highest is {rate(point.load_pps)}" if point is not None else ""
            return f"{cell}: latency was not measured at {needed} or more{highest}"
        case _:
            return f"{cell} was not measured"


def _cell(answer: DensityAnswer, looked: Looked) -> str:
    return f"{looked.services}x{answer.nfs}"
