"""The density matrix as an HTML table with a colour per cell, which needs no script and can be printed."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from csit_utils.analysis.grouping import Series
from csit_utils.analysis.verdicts import short, verdict_of_runs
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import MRR
from csit_utils.report.cell_maps import Scale, colour
from csit_utils.report.links import cell_anchor
from csit_utils.report.units import digits3, percent, rate
from csit_utils.studies.density.analysis.density import CellState, Matrix, MatrixCell
from csit_utils.studies.density.figures.throughput import facets

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


@dataclass(frozen=True)
class HeatMap:
    """One matrix, ready to be written."""

    series: Series
    anchor: str
    title: str
    metric: str
    definition: str
    unit: str
    chains: tuple[int, ...]
    nodes: tuple[int, ...]
    rows: tuple[tuple[CellView, ...], ...]

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


def heat_map(matrix: Matrix, scale: Scale, factor: float, unit: str) -> HeatMap:
    """Build a heat map.

    `scale`: shared by all matrices of the metric, in `unit`.
    `factor`: divisor of the numbers in cells.
    """
    definition = loss_definition(matrix)
    rows = tuple(
        tuple(
            _cell(matrix, (chains, nodes), definition=definition, scale=scale, factor=factor) for nodes in matrix.nodes
        )
        for chains in matrix.chains
    )
    series, metric = matrix.series, matrix.metric
    anchor = f"map-{cell_anchor(series, metric)}"
    return HeatMap(series, anchor, series.name, metric, definition, unit, matrix.chains, matrix.nodes, rows)


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
