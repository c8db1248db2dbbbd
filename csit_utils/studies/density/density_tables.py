"""Tables of a block: throughput per core, service types side by side, and answers to two questions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, log10

from csit_utils.analysis.grouping import Series
from csit_utils.analysis.latency import HALF_LOADS
from csit_utils.report.units import DASH, digits3, percent, rate
from csit_utils.studies.density.analysis.answers import (
    AnswerEvidence,
    Question,
    answer,
    latency_points,
    measured_services,
)
from csit_utils.studies.density.analysis.density import CellState, Matrix
from csit_utils.studies.density.analysis.efficiency import Efficiency, Ratio, efficiencies, ratios
from csit_utils.studies.density.analysis.summary import BEST_FIRST
from csit_utils.studies.density.answer_text import AnswerView, question_text, view

_TYPES = ("VSC", "CSC", "CSP")
_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class CostLine:
    """One cell."""

    cell: str
    href: str
    figures: tuple[str, ...]
    """As the table's columns."""
    oversubscribed: bool


@dataclass(frozen=True)
class CostTable:
    """One matrix."""

    title: str
    metric: str
    lines: tuple[CostLine, ...]


@dataclass(frozen=True)
class RatioLine:
    """One cell with several service types."""

    cell: str
    sizes: str
    metric: str
    rates: tuple[str, ...]
    """VSC, CSC, CSP."""
    ratio: str
    oversubscribed: bool


@dataclass(frozen=True)
class QuestionView:
    """A question with its answers."""

    question: Question
    text: str
    answers: tuple[AnswerView, ...]


@dataclass(frozen=True)
class DensityTables:
    """All tables of a block."""

    costs: tuple[CostTable, ...] = ()
    ratios: tuple[RatioLine, ...] = ()
    questions: tuple[QuestionView, ...] = ()


def density_tables(found: Sequence[Matrix], series: Sequence[Series], seen: AnswerEvidence | None) -> DensityTables:
    """Tables of all that may be compared.

    Args:
        found: Matrices of one system, frame size and profile.
        series: Theirs.
        seen: What answers rest on; None leaves them out.
    """
    metric = next((each for each in BEST_FIRST if any(m.metric is each for m in found)), None)
    chosen = [matrix for matrix in found if matrix.metric == metric]
    costs = [CostTable(m.series.name, m.metric, tuple(map(_cost, efficiencies(m)))) for m in chosen]
    return DensityTables(
        tuple(table for table in costs if table.lines),
        tuple(map(_ratio, ratios(found))),
        tuple(_question(question, series, seen) for question in _questions(chosen, seen)) if seen else (),
    )


def _cost(one: Efficiency) -> CostLine:
    return CostLine(
        _name(one.place),
        f"#{one.cell.runs[-1].anchor}",
        (
            rate(one.cell.value_pps),
            rate(one.per_data_core_pps),
            rate(one.per_slide_core_pps),
            rate(one.per_real_core_pps),
            percent(one.of_one),
            DASH if one.hops is None else f"{digits3(one.hops)}x",
            percent(one.per_hop),
        ),
        one.cell.oversubscribed,
    )


def _ratio(one: Ratio) -> RatioLine:
    shares = [one.share(kind) for kind in _TYPES]
    text = " : ".join(DASH if share is None else f"{share:.2f}" for share in shares)
    rates = tuple(rate(one.rates_pps.get(kind)) for kind in _TYPES)
    return RatioLine(_name(one.place), one.sizes, one.metric, rates, text, one.oversubscribed)


def _name(place: tuple[int, int]) -> str:
    return f"{place[0]}x{place[1]}"


def _questions(chosen: Iterable[Matrix], seen: AnswerEvidence | None) -> list[Question]:
    """Two questions that suit the numbers: a quarter of the best rate of an instance, and a tenth with low latency.

    Rounded down to 1, 2 or 5 times a power of ten.
    """
    metrics = {matrix.metric: matrix for matrix in chosen}
    matrices = list(chosen)
    if seen is None or not matrices or any(metric.stdev for metric in metrics):
        return []
    cells = [
        (place, cell)
        for matrix in matrices
        for place, cell in matrix.cells.items()
        if cell.value_pps and cell.state is not CellState.BELOW
    ]
    best = max(((cell.value_pps or 0.0) / place[0] for place, cell in cells), default=0.0)
    if not best:
        return []
    points = [
        point
        for _, cell in cells
        for row in cell.runs
        for point in latency_points(seen.latencies.get(row.anchor, ()))
        if point.label in HALF_LOADS and point.p99_ns
    ]
    lowest = min((point.p99_ns or 0.0 for point in points), default=None)
    metric = matrices[0].metric
    quick = Question(_down(best / 10), None if lowest is None else _down(4 * lowest), metric)
    return [Question(_down(best / 4), None, metric), quick]


def _down(value: float) -> float:
    """The next of 1, 2, 5 times a power of ten that is not above."""
    decade = 10.0 ** floor(log10(value))
    return max(step for step in _STEPS if step * decade <= value * (1 + 1e-9)) * decade


def _question(question: Question, series: Sequence[Series], seen: AnswerEvidence) -> QuestionView:
    found = (answer(question, each) for each in measured_services(question.metric, seen, series))
    return QuestionView(question, question_text(question), tuple(map(view, found)))
