"""Part of the page for one system: sentences, then matrices, curves and tables by frame size and profile.

A matrix is an HTML table with a colour per cell, which needs no script and can be printed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from math import floor, log10

from csit_utils.analysis.grouping import Series, System, all_series, by_size, common_sizes, series_names, system_of
from csit_utils.analysis.latency import HALF_LOADS
from csit_utils.dataset.goal_words import readable
from csit_utils.dataset.items import Refusal
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import MRR, PUBLISHED, THROUGHPUTS, TestRow
from csit_utils.report.cell_maps import Scale, colour, gradient, scale_of
from csit_utils.report.figures import Figure
from csit_utils.report.links import cell_anchor, test_href
from csit_utils.report.record_blocks import Column, DrawnTable, RecordTables, Row, Table
from csit_utils.report.units import DASH, common_unit, digits3, percent, rate
from csit_utils.studies.density.analysis.answers import (
    AnswerEvidence,
    Question,
    answer,
    latency_points,
    measured_services,
)
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell, matrices, short, verdict_of_runs
from csit_utils.studies.density.analysis.efficiency import Ratio, efficiencies, ratios
from csit_utils.studies.density.analysis.summary import BEST_FIRST, changes
from csit_utils.studies.density.answer_text import AnswerView, question_text, view
from csit_utils.studies.density.sentences import rare_losses, sentences
from csit_utils.studies.density.speedup import SpeedupLimits, speedup_figure
from csit_utils.studies.density.throughput import bars_figure, density_figure, facets, flows_figure

_TIP_EVIDENCE = 2
"""Lines of evidence on hovering; the test's own entry has all of them."""


@dataclass(frozen=True)
class CellView:
    """One cell."""

    text: str
    note: str
    state: str
    background: str | None
    ink: str | None
    tip: str
    href: str | None
    oversubscribed: bool
    verdict: str = ""
    anchor: str = ""
    """An address of its own."""
    test: str | None = None
    """Anchor of the test that it leads to."""
    value_pps: float | None = None


class HeatMap:
    """One matrix, ready to be written.

    `scale`: shared by all matrices of the metric, in `unit`.
    `factor`: divisor of the numbers in cells.
    """

    def __init__(self, matrix: Matrix, scale: Scale, factor: float, unit: str) -> None:
        series = matrix.series
        self.series, self.metric, self.unit = series, matrix.metric, unit
        self.anchor, self.title = f"map-{cell_anchor(series, matrix.metric)}", series.name
        self.definition = loss_definition(matrix)
        self.chains, self.nodes = matrix.chains, matrix.nodes
        self.rows = [
            [
                _cell(matrix, (chains, nodes), definition=self.definition, scale=scale, factor=factor)
                for nodes in matrix.nodes
            ]
            for chains in matrix.chains
        ]

    @property
    def label(self) -> str:
        """Among all maps of the page."""
        return f"{self.series.system.name} · {self.series.frame} · {self.title} · {self.metric}"

    @property
    def kind(self) -> str:
        """Key of maps whose figures have the same meaning."""
        return kind_of(self.series)

    @property
    def facets(self) -> dict[str, str]:
        """Keys by which readers choose maps."""
        return {"metric": self.metric, **facets(self.series), "frame": self.series.frame}


def kind_of(series: Series) -> str:
    """Return the key of series whose figures have the same meaning."""
    system = series.system
    meaning = (system.simulated, system.world, system.origin, series.frame, series.goals)
    return sha256(repr(meaning).encode()).hexdigest()[:6]


def loss_definition(matrix: Matrix) -> str:
    """Definition of the metric of a matrix, from the goals of its tests."""
    if matrix.metric.stdev:
        return "at any loss"
    runs = [row for cell in matrix.cells.values() for row in cell.runs]
    ratios = {getattr(row, f"{matrix.metric.lower()}_loss_ratio") for row in runs} - {None}
    if not ratios:
        return "loss within the goal's ratio"
    return f"loss ≤ {percent(max(ratios))}" if max(ratios) else "no packet lost"


def _cell(matrix: Matrix, place: tuple[int, int], *, definition: str, scale: Scale, factor: float) -> CellView:
    cell = matrix.cells[place]
    test = cell.runs[-1].anchor if cell.runs else None
    href = f"#{test}" if test else None
    anchor = cell_anchor(matrix.series, matrix.metric, place)
    where = f"{matrix.series.service_type} {place[0]}x{place[1]}"
    state = cell.state.replace(" ", "-")
    if cell.value_pps is None:
        tip = f"{where}: {cell.state}\n{cell.reason}"
        return CellView(cell.state, "", state, None, None, tip, href, False, anchor=anchor, test=test)
    sign = {CellState.AT_LEAST: "≥ ", CellState.BELOW: "< "}.get(cell.state, "" if cell.complete else "≈ ")
    background, ink = colour(scale.share(cell.value_pps / factor))
    if cell.state is CellState.BELOW:
        background = ink = None  # type: ignore[assignment]
    note = percent(cell.relative) if cell.relative is not None and place != (1, 1) else ""
    return CellView(
        sign + digits3(cell.value_pps / factor),
        note,
        state,
        background,
        ink,
        "\n".join([_tip(matrix.metric, where, cell, definition), *_steps(matrix, place)]),
        href,
        cell.oversubscribed,
        short(verdict_of_runs(cell.runs, matrix.metric)),
        anchor,
        test,
        cell.value_pps,
    )


def _steps(matrix: Matrix, place: tuple[int, int]) -> Iterator[str]:
    """Changes against the neighbours with one service or one NF less."""
    services, nfs = place
    for word, axis, before in (
        ("instances", 0, max((each for each in matrix.chains if each < services), default=None)),
        ("NFs", 1, max((each for each in matrix.nodes if each < nfs), default=None)),
    ):
        if before is None:
            continue
        other = matrix.cells[(before, nfs) if axis == 0 else (services, before)]
        cell = matrix.cells[place]
        if other.state is CellState.VALUE and cell.state is CellState.VALUE and other.value_pps and cell.value_pps:
            change = percent(cell.value_pps / other.value_pps - 1, signed=True)
            yield f"{change} against {before} {word if before > 1 else word[:-1]}"


def _tip(metric: Measure, where: str, cell: MatrixCell, definition: str) -> str:
    lines = [f"{where} · {metric} ({definition})"]
    if cell.state is CellState.BELOW:
        lines.append(f"below {rate(cell.value_pps)}: not reached at the lowest load")
    elif metric.stdev:
        row = cell.runs[-1]
        offered_pps = row.mrr_offered_pps if metric == MRR else row.orr_offered_pps
        lines.append(
            f"mean {rate(cell.value_pps)} of {getattr(row, metric.trials)} trials, offered {rate(offered_pps)}"
        )
    elif cell.state is CellState.AT_LEAST:
        lines.append(f"at least {rate(cell.value_pps)}: limited by the generator")
    else:
        lines.append(f"bounds {rate(cell.value_pps)} … {rate(cell.upper_pps)}")
    if not cell.complete:
        lines.append("incomplete: the search ended before its bounds were close enough")
    if cell.relative is not None:
        lines.append(f"{percent(cell.relative)} of 1x1")
    if len(cell.runs) > 1:
        spread = f", standard deviation {rate(cell.spread_pps)}" if cell.spread_pps is not None else ""
        lines.append(f"mean of {len(cell.runs)} runs{spread}")
    if cell.oversubscribed:
        lines.append("OVERSUBSCRIBED: data threads shared cores")
    lines.append(f"verdict: {', '.join(verdict_of_runs(cell.runs, metric))}")
    lines += cell.runs[-1].evidence.splitlines()[:_TIP_EVIDENCE] if cell.runs else []
    if cell.runs and cell.runs[-1].simulated:
        lines.append("SIMULATED")
    return "\n".join(lines)


_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class QuestionView:
    """A question with its answers."""

    question: Question
    text: str
    table: DrawnTable | None


def _questions(chosen: Sequence[Matrix], seen: AnswerEvidence) -> list[Question]:
    """Two questions that suit the numbers: a quarter of the best rate of an instance, and a tenth with low latency.

    Rounded down to 1, 2 or 5 times a power of ten.
    """
    if any(matrix.metric.stdev for matrix in chosen):
        return []
    cells = [
        (place, cell)
        for matrix in chosen
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
    metric = chosen[0].metric
    quick = Question(_down(best / 10), None if lowest is None else _down(4 * lowest), metric)
    return [Question(_down(best / 4), None, metric), quick]


def _down(value: float) -> float:
    """The next of 1, 2, 5 times a power of ten that is not above."""
    decade = 10.0 ** floor(log10(value))
    return max(step for step in _STEPS if step * decade <= value * (1 + 1e-9)) * decade


def _question(question: Question, series: Sequence[Series], seen: AnswerEvidence) -> QuestionView:
    found = [view(answer(question, each)) for each in measured_services(question.metric, seen, series)]
    words = question_text(question)
    return QuestionView(question, words, _ANSWERS.draw(RecordTables(f"{question.rate_pps:g}", False, found)))


def _answers(found: Iterable[AnswerView]) -> Iterator[Row]:
    for each in found:
        service, nfs, nf_size, vswitch, _, instances, evidence, limit = each.cells
        marks = ", ".join(mark for mark in each.marks if mark != "SIMULATED")
        yield {
            "service": service,
            "NFs": int(nfs),
            "NF / vSw": f"{nf_size} / {vswitch}",
            "instances": instances,
            "href": each.href,
            "evidence": f"{evidence} ({marks})" if marks else evidence,
            "limit of the next one": limit,
        }


_ANSWERS = Table(
    "instances-that-fit",
    _answers,
    (
        Column("service", text=True),
        Column("NFs", write=str),
        Column("NF / vSw", text=True),
        Column("instances", text=True, href="href"),
        Column("evidence", text=True),
        Column("limit of the next one", text=True),
    ),
    classes="answers",
    filter=True,
)
_SHARED = "Data threads shared cores: not a density figure."
_CELL = Column("cell", text=True, href="href", badge=("shared", "oversubscribed"))


def _costs(matrix: Matrix) -> Iterator[Row]:
    for each in efficiencies(matrix):
        yield {
            **vars(each),
            "cell": "x".join(map(str, each.place)),
            "href": test_href(each.cell.runs[-1]),
            "shared": _SHARED if each.cell.oversubscribed else "",
            "value_pps": each.cell.value_pps,
        }


_COSTS = Table(
    "costs",
    _costs,
    (
        _CELL,
        Column("value_pps", "throughput", rate),
        Column("per_data_core_pps", "per data core", rate, about="Data cores of the vSwitch and of all NFs"),
        Column(
            "per_slide_core_pps",
            "per slides' core",
            rate,
            about="As the slides count: main threads too, an NF's as half a core; 2 + 1.5 S N for NF-1c",
        ),
        Column(
            "per_real_core_pps",
            "per real core",
            rate,
            about="Physical cores that the plan takes: system, main and data cores, halves rounded up; "
            "not the generator's",
        ),
        Column("of_one", "of 1x1", percent, explain=("efficiency", "efficiency")),
        Column(
            "hops",
            "NF hops",
            lambda value: f"{digits3(value)}x",
            about="Packets per second times NFs that each crosses, over those of 1x1",
        ),
        Column("per_hop", "per NF hop", percent, about="NF hops over the number of NFs: 100 % is perfect scaling"),
    ),
    explain=("per-core", "throughput per core"),
)
_TYPES = ("VSC", "CSC", "CSP")


def _ratios(found: Iterable[Ratio]) -> Iterator[Row]:
    for each in found:
        shares = [each.share(kind) for kind in _TYPES]
        yield {
            "cell": "x".join(map(str, each.place)),
            "shared": _SHARED if each.oversubscribed else "",
            "sizes": each.sizes,
            "metric": each.metric,
            **each.rates_pps,
            "ratio": " : ".join(DASH if share is None else f"{share:.2f}" for share in shares),
        }


_RATIOS = Table(
    "service-types",
    _ratios,
    (
        _CELL,
        Column("sizes", text=True),
        Column("metric", text=True),
        *(Column(kind, write=rate) for kind in _TYPES),
        Column("ratio", "VSC : CSC : CSP, where CSC is 1", text=True),
    ),
    filter=True,
)


class MetricView:
    """The heat maps of one metric, with the colour scale they share; a row of service types for each size."""

    def __init__(self, found: Sequence[Matrix]) -> None:
        values = [value for matrix in found for value in matrix.values()]
        self.metric = found[0].metric
        self.factor, self.unit = common_unit(values)
        """Divisor of the numbers in cells, and their unit."""
        self.scale, self.gradient = scale_of([value / self.factor for value in values]), gradient()
        """In `unit`."""
        self.maps = [HeatMap(matrix, self.scale, self.factor, self.unit) for matrix in by_size(found)]
        self.definition = self.maps[0].definition
        """Cells of one block have the same goals, so every matrix that has runs gives the same definition."""

    @property
    def low(self) -> str:
        """Label of the darkest colour."""
        return digits3(self.scale.low)

    @property
    def top(self) -> str:
        """Label of the brightest colour."""
        return digits3(self.scale.high)

    @property
    def columns(self) -> int:
        """Columns of the widest heat map."""
        return max(len(shown.nodes) for shown in self.maps)


class Block:
    """All that may be compared: one system, frame size and profile."""

    def __init__(
        self,
        found: Sequence[Matrix],
        series: Sequence[Series],
        identity: str,
        *,
        seen: AnswerEvidence | None,
        line: SpeedupLimits,
    ) -> None:
        one, called = series[0], series_names(series)
        self.frame, self.profile, self.goals, self.sizes = one.frame, one.profile, one.goals, common_sizes(series)
        of_metrics = ([matrix for matrix in found if matrix.metric == metric] for metric in THROUGHPUTS)
        self.metrics = [MetricView(own) for own in of_metrics if own]
        where = f"{one.frame}, {self.sizes}" if self.sizes else one.frame
        curves = density_figure(f"density-{identity}", f"Throughput against density, {where}", found, called)
        bars = bars_figure(f"bars-{identity}", f"Cells side by side, {where}", found, called)
        gain = speedup_figure(f"speedup-{identity}", f"Speedup by data cores, {one.frame}", found, line)
        self.figures = [figure for figure in (curves, bars, gain) if figure is not None]
        self.findings = rare_losses(found, called)
        """What to know before its figures are read."""
        self.sentences = (*self.findings, *sentences(changes(found), called))
        """The findings too."""
        best = next((metric for metric in BEST_FIRST if any(matrix.metric is metric for matrix in found)), None)
        chosen = [matrix for matrix in found if matrix.metric == best]
        simulated = one.system.simulated
        tables = [
            replace(_COSTS, heading=f"{matrix.series.name} {matrix.metric}").draw(
                RecordTables(f"{identity}-{number}", simulated, matrix)
            )
            for number, matrix in enumerate(chosen, 1)
        ]
        self.costs = [table for table in tables if table is not None]
        self.ratios = _RATIOS.draw(RecordTables(identity, simulated, ratios(found)))
        self.questions = [_question(each, series, seen) for each in _questions(chosen, seen)] if seen else []
        """With their answers, none without what these rest on."""
        self.matrices = found

    @property
    def name(self) -> str:
        """Frame and profile."""
        return f"{self.frame}, {f'search profile {self.profile}' if self.profile else readable(self.goals)}"


@dataclass(frozen=True)
class SystemView:
    """One section of the page."""

    anchor: str
    system: System
    blocks: tuple[Block, ...]
    rows: tuple[TestRow, ...]
    flows: Figure | None = None
    """Throughput by flows and version of IP, over all blocks."""

    @property
    def tests(self) -> int:
        """How many."""
        return len(self.rows)

    @property
    def oversubscribed(self) -> int:
        """How many tests ran so."""
        return sum(bool(row.oversubscribed) for row in self.rows)

    @property
    def published(self) -> bool:
        """Whether it is published, not measured."""
        return self.system.world == PUBLISHED


def system_views(
    rows: Sequence[TestRow],
    refused: Sequence[Refusal] = (),
    seen: AnswerEvidence | None = None,
    limits: Callable[[Sequence[TestRow], str], SpeedupLimits] | None = None,
) -> list[SystemView]:
    """All systems: measured ones, simulated ones, published figures.

    `seen`: counts by instance and latency of the same tests, for answers.
    `limits`: what no figure can be above of, from the tests of a system and the name of a frame.
    """
    by_system: dict[System, list[TestRow]] = {}
    for row in rows:
        system = system_of(row)
        if system is not None:
            by_system.setdefault(system, []).append(row)
    found = {one: matrices(rows, one, refused) for one in all_series(rows)}
    views = []
    for number, system in enumerate(dict.fromkeys(one.system for one in found), 1):
        own = [one for one in found if one.system == system]
        keys = dict.fromkeys((one.frame, one.profile, one.goals) for one in own)
        blocks = []
        for index, key in enumerate(keys, 1):
            series = [one for one in own if (one.frame, one.profile, one.goals) == key]
            every = [matrix for one in series for matrix in found[one]]
            line = limits(by_system[system], series[0].frame) if limits else SpeedupLimits()
            blocks.append(Block(every, series, f"s{number}b{index}", seen=seen, line=line))
        every = [matrix for one in own for matrix in found[one]]
        flows = flows_figure(f"s{number}", "Throughput by number of flows and version of IP", every)
        views.append(SystemView(f"system-{number}", system, tuple(blocks), tuple(by_system[system]), flows))
    return sorted(views, key=lambda view: view.published)
