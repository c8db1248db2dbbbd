"""How many services fit at a rate and a latency: a table of short answers, and what a page needs to answer again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from csit_utils.analysis.grouping import Series, all_series
from csit_utils.dataset.reference import WORLD as PUBLISHED
from csit_utils.report.series_blocks import names
from csit_utils.report.units import latency, rate
from csit_utils.studies.density.analysis.answers import (
    AnswerEvidence,
    AnswerVerdict,
    DensityAnswer,
    MeasuredCell,
    MeasuredServices,
    Question,
    answer,
    measured_services,
)

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
    called = names(every)
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
