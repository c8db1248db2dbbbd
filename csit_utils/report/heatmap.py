"""The density matrix as an HTML table with a colour per cell: it prints, and it needs no script."""

from dataclasses import dataclass

from plotly.colors import sample_colorscale

from csit_utils.analysis.density import CellState, Matrix, MatrixCell
from csit_utils.analysis.grouping import Metric
from csit_utils.analysis.verdicts import short, verdict_of_runs
from csit_utils.report.units import digits3, percent, rate

_SCALE = "Cividis"
"""Reads the same with and without the common colour vision deficiencies, and in grey."""

_TIP_EVIDENCE = 2
"""Lines of evidence on hovering; the test's own entry has all of them."""

_LOSS = {Metric.NDR: "no packet lost", Metric.MRR: "whatever is lost"}


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


@dataclass(frozen=True)
class HeatMap:
    """One matrix, ready to be written."""

    title: str
    metric: str
    definition: str
    unit: str
    chains: tuple[int, ...]
    nodes: tuple[int, ...]
    rows: tuple[tuple[CellView, ...], ...]


def colour(share: float) -> tuple[str, str]:
    """Background and ink for a share of the scale in [0, 1]."""
    # The darkest and the brightest tenth are left out: both ends stay apart from the page in either colour scheme.
    background = sample_colorscale(_SCALE, [0.06 + 0.9 * min(1.0, max(0.0, share))])[0]
    red, green, blue = (float(part) for part in background[4:-1].split(","))
    bright = 0.299 * red + 0.587 * green + 0.114 * blue
    return background, "#0b0d12" if bright > 118 else "#ffffff"


def gradient() -> str:
    """The colour scale as a CSS gradient."""
    return "linear-gradient(to right, " + ", ".join(colour(step / 10)[0] for step in range(11)) + ")"


def loss_definition(matrix: Matrix) -> str:
    """What the metric of a matrix means, from the goals of its tests."""
    if matrix.metric in (Metric.PDR, Metric.SOAK):
        runs = [row for cell in matrix.cells.values() for row in cell.runs]
        soak = matrix.metric is Metric.SOAK
        ratios = {found for row in runs if (found := row.soak_loss_ratio if soak else row.pdr_loss_ratio)}
        return f"loss ≤ {percent(max(ratios))}" if ratios else "loss within the goal's ratio"
    return _LOSS[matrix.metric]


def heat_map(matrix: Matrix, top_pps: float, factor: float, unit: str) -> HeatMap:
    """Build a heat map.

    Args:
        matrix: The numbers.
        top_pps: The rate of the brightest colour, shared by all matrices of the metric.
        factor: Divisor of the numbers in cells.
        unit: Its name.
    """
    definition = loss_definition(matrix)
    rows = tuple(
        tuple(
            _cell(matrix, (chains, nodes), definition=definition, top_pps=top_pps, factor=factor)
            for nodes in matrix.nodes
        )
        for chains in matrix.chains
    )
    return HeatMap(matrix.series.name, matrix.metric, definition, unit, matrix.chains, matrix.nodes, rows)


def _cell(matrix: Matrix, place: tuple[int, int], *, definition: str, top_pps: float, factor: float) -> CellView:
    cell = matrix.cells[place]
    href = f"#{cell.runs[-1].anchor}" if cell.runs else None
    where = f"{matrix.series.service_type} {place[0]}x{place[1]}"
    if cell.value_pps is None:
        tip = f"{where}: {cell.state}\n{cell.reason}"
        return CellView(cell.state, "", cell.state.replace(" ", "-"), None, None, tip, href, False)
    sign = {CellState.AT_LEAST: "≥ ", CellState.BELOW: "< "}.get(cell.state, "" if cell.complete else "≈ ")
    background, ink = colour(cell.value_pps / top_pps if top_pps else 0.0)
    if cell.state is CellState.BELOW:
        background = ink = None  # type: ignore[assignment]
    note = percent(cell.relative) if cell.relative is not None and place != (1, 1) else ""
    return CellView(
        sign + digits3(cell.value_pps / factor),
        note,
        cell.state.replace(" ", "-"),
        background,
        ink,
        _tip(matrix.metric, where, cell, definition),
        href,
        cell.oversubscribed,
        short(verdict_of_runs(cell.runs, matrix.metric)),
    )


def _tip(metric: Metric, where: str, cell: MatrixCell, definition: str) -> str:
    lines = [f"{where} · {metric} ({definition})"]
    if cell.state is CellState.BELOW:
        lines.append(f"below {rate(cell.value_pps)}: no load was low enough")
    elif metric is Metric.MRR:
        row = cell.runs[-1]
        lines.append(f"mean {rate(cell.value_pps)} of {row.mrr_trials} trials, offered {rate(row.mrr_offered_pps)}")
    elif cell.state is CellState.AT_LEAST:
        lines.append(f"at least {rate(cell.value_pps)}: the generator could offer no more")
    else:
        lines.append(f"bounds {rate(cell.value_pps)} … {rate(cell.upper_pps)}")
    if not cell.complete:
        lines.append("incomplete: the search ended before its bounds were close")
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
