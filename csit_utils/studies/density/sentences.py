"""How throughput changes with density, in plain words."""

from collections.abc import Iterable, Mapping, Sequence

from csit_utils.analysis.grouping import Series
from csit_utils.analysis.verdicts import verdict_of_runs
from csit_utils.report.units import percent, rate
from csit_utils.studies.density.analysis.density import CellState
from csit_utils.studies.density.analysis.summary import AxisChange


def names(series: Sequence[Series]) -> dict[Series, str]:
    """A short name for each series of a block: the service type, and of the sizes only what sets them apart."""
    nf_differs = len({one.nf_size for one in series}) > 1
    vswitch_differs = len({one.vs_dtc for one in series}) > 1
    return {
        one: one.service_type
        + (f" {one.nf_name}" if nf_differs else "")
        + (f" {one.vswitch_name}" if vswitch_differs else "")
        for one in series
    }


def common_sizes(series: Sequence[Series]) -> str:
    """The sizes that all series of a block have in common."""
    sizes = ({one.nf_name for one in series}, {one.vswitch_name for one in series})
    return ", ".join(name for names in sizes if len(names) == 1 for name in names)


def sentences(changes: Iterable[AxisChange], called: Mapping[Series, str]) -> tuple[str, ...]:
    """One sentence per series and axis; metrics that were found in the same two cells share it."""

    def key(change: AxisChange) -> tuple[str, str, tuple[int, int], tuple[int, int]]:
        return called[change.matrix.series], change.axis, change.start, change.end

    groups: dict[tuple[str, str, tuple[int, int], tuple[int, int]], list[AxisChange]] = {}
    for change in changes:
        groups.setdefault(key(change), []).append(change)
    # Services before NFs: the first question of a density test. Metrics keep their order.
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] != "services"))
    return tuple(_sentence(name, found) for (name, *_), found in ordered)


def _sentence(name: str, found: Sequence[AxisChange]) -> str:
    change = found[0]
    (from_s, from_n), (to_s, to_n) = change.start, change.end
    added = f"{from_s} to {to_s} services" if change.axis == "services" else f"{from_n} to {to_n} NFs per service"
    parts: list[str] = []
    for one in found:
        verb = " goes" if not parts else ""
        if one.resolved:
            share = f" ({percent(one.ratio, signed=True)})" if one.ratio is not None else ""
            moved = f"{verb} from {_figure(one, one.start)} to {_figure(one, one.end)}{share}"
        else:
            what = "noise of its trials" if one.matrix.metric.stdev else "resolution of the search"
            moved = f" stays at {rate(one.start_pps)}, within the {what}"
        parts.append(f"{one.matrix.metric}{moved}")
    text = f"{name}, {added}: from {from_s}x{from_n} to {to_s}x{to_n} {', '.join(parts)}."
    figures = {
        place: dict.fromkeys(
            kind for one in found for kind in verdict_of_runs(one.matrix.cells[place].runs, one.matrix.metric)
        )
        for place in (change.start, change.end)
    }
    text += " Verdict: " + "; ".join(f"{s}x{n} {', '.join(kinds)}" for (s, n), kinds in figures.items()) + "."
    marked = [at for at in (change.start, change.end) if change.matrix.cells[at].oversubscribed]
    if marked:
        text += f" Oversubscribed: {', '.join(f'{s}x{n}' for s, n in marked)}."
    return text


def _figure(change: AxisChange, place: tuple[int, int]) -> str:
    cell = change.matrix.cells[place]
    limit = {CellState.BELOW: "below ", CellState.AT_LEAST: "at least "}.get(cell.state, "")
    return limit + rate(cell.value_pps)
