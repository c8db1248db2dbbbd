"""Trials of a test: the load of each in order, as a small plot, and losses, reordering and duplicates by load."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from csit_utils.report.figures import Figure, Json, scatter
from csit_utils.report.units import percent, rate
from resources.libraries.python.model.measurements.trial import FlowLosses, TrialResult
from resources.libraries.python.model.result import LossesAtLoad
from resources.libraries.python.search.losses import losses_in_words, rank
from resources.libraries.python.studies.density.model import DensityRecord

_WIDTH, _HEIGHT, _MARGIN = 1100.0, 190.0, 12.0
_AXIS, _LABELS, _TEXT_HEIGHT = 80.0, 220.0, 15.0


_Level = tuple[float, str]
"""Height and text of a result of the search as a horizontal line, or of a tick of the vertical axis."""


@dataclass(frozen=True)
class SearchPath:
    """All search trials; the y axis is logarithmic."""

    width: float
    height: float
    dots: tuple[tuple[float, float, str, str], ...]
    """Place, tip and loss of each trial: `none`, `some` within the loss ratio of `number`, `much` above it; or
    `limited` by the generator."""
    levels: tuple[_Level, ...]
    ticks: tuple[_Level, ...]
    number: str
    """PDR or SOAK, whose loss ratio separates `some` from `much` loss."""


def search_path(result: DensityRecord) -> SearchPath | None:
    """Return the plot; None for fewer than three search trials with a load."""
    trials = [
        trial for trial in result.trials if trial.trial.purpose in ("search", "soak") and trial.trial.load_pps > 0
    ]
    if len(trials) < 3:
        return None
    loads = [math.log(trial.trial.load_pps) for trial in trials]
    low, high = min(loads), max(loads)

    def height(load: float) -> float:
        share = (load - low) / (high - low) if high > low else 0.5
        return round(_MARGIN + (_HEIGHT - 2 * _MARGIN) * (1 - share), 1)

    step = (_WIDTH - _AXIS - _LABELS - 2 * _MARGIN) / (len(trials) - 1)
    goal = next((found.goal for found in (result.pdr, result.soak) if found is not None), None)
    ratio = goal.loss_ratio if goal is not None else 0.0
    dots = tuple(
        (
            round(_AXIS + _MARGIN + index * step, 1),
            height(load),
            f"search trial {index + 1}: {rate(trial.trial.load_pps)} for {trial.trial.duration_s:g} s\n"
            f"loss {percent(loss_ratio)}",
            _kind(trial, loss_ratio, ratio),
        )
        for index, (trial, load) in enumerate(zip(trials, loads, strict=True))
        for loss_ratio in (trial.loss_ratio,)
    )
    levels = tuple(
        (height(math.log(found.lower_pps)), f"{found.goal.name} {rate(found.lower_pps)}")
        for found in (result.ndr, result.pdr, result.soak)
        if found is not None and found.lower_pps
    )
    name = goal.name if goal is not None else "PDR"
    ticks = tuple((height(load), rate(math.exp(load))) for load in _ticks(low, high))
    return SearchPath(_WIDTH, _HEIGHT, dots, _apart(levels), ticks, name)


def _ticks(low: float, high: float) -> list[float]:
    """Ends of a logarithmic axis, and 1, 2 and 5 times powers of ten between them, with room for their labels."""
    room = (high - low) * _TEXT_HEIGHT / (_HEIGHT - 2 * _MARGIN)
    powers = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    between = (math.log(factor * 10.0**power) for power in powers for factor in (1, 2, 5))
    return [*dict.fromkeys((low, high)), *(load for load in between if low + room < load < high - room)]


def _apart(levels: tuple[_Level, ...]) -> tuple[_Level, ...]:
    """Merge the labels of levels that would overlap."""
    if len(levels) == 2:
        (one, first), (other, second) = levels
        if abs(one - other) < _TEXT_HEIGHT:
            return (one, ""), (other, f"{first}, {second}")
    return levels


def _kind(trial: TrialResult, loss_ratio: float | None, ratio: float) -> str:
    if trial.generator_limited or loss_ratio is None:
        return "limited"
    if loss_ratio == 0:
        return "none"
    return "some" if loss_ratio <= ratio else "much"


_OWNERS = 6
_OVER_TIME, _LENGTHS, _ORDER = "over time", "loss periods by length", "reorder density"
_LISTED = 40
"""Flows of a load in the table; the record has all."""


class LossPatternView:
    """One line of the table of loss patterns."""

    def __init__(self, row: LossesAtLoad, flow: FlowLosses) -> None:
        self.load, self.load_pps = row.label, row.load_pps
        self.instance, self.direction = flow.instance, str(flow.direction)
        self.sent, self.lost, self.duplicates = flow.sent, flow.lost, flow.duplicates
        self.sentence = losses_in_words(flow)
        self.loss_periods, self.longest, self.longest_s = flow.loss_periods, flow.longest, flow.longest_s
        order = flow.order
        known = order.reordered is not None and not order.unknown
        self.reordered = order.reordered
        self.largest_extent = max((extent for extent, _ in order.extents), default=0) if known else None
        self.three_reordered = sum(count for degree, count in order.degrees if degree >= 3) if known else None
        """Packets that are 3-reordered or more, which TCP takes for lost."""


def loss_patterns(rows: Iterable[LossesAtLoad]) -> tuple[LossPatternView, ...]:
    """Return the lines of the table: all flows, or those that lost most."""
    return tuple(LossPatternView(row, flow) for row in rows for flow in _listed(row))


def _listed(row: LossesAtLoad) -> Sequence[FlowLosses]:
    most = sorted(row.flows, key=rank, reverse=True)[:_LISTED]
    return sorted(most, key=row.flows.index)


def loss_notes(rows: Iterable[LossesAtLoad], patterns: Mapping[str, str]) -> tuple[str, ...]:
    """Return what else is said of each load: where packets were lost, remarks, why nothing was measured.

    `patterns`: of the record: a sentence for each load, or the reason in its place.
    """
    notes, measured = [], set()
    for row in rows:
        measured.add(row.label)
        if row.lost_at:
            owners = [f"{owner} {lost:,}" for owner, lost in row.lost_at.items()]
            more = f" and {len(owners) - _OWNERS} more" if len(owners) > _OWNERS else ""
            notes.append(f"{row.label}: packets lost at {', '.join(owners[:_OWNERS])}{more}")
        notes += [f"{row.label}: {remark}" for remark in row.remarks]
        if len(row.flows) > _LISTED:
            notes.append(f"{row.label}: the table has the {_LISTED} flows that lost most, of {len(row.flows)}")
    return (*notes, *(f"{label}: {reason}" for label, reason in patterns.items() if label not in measured))


def loss_pattern_figure(identity: str, title: str, rows: Sequence[LossesAtLoad], *, simulated: bool) -> Figure | None:
    """Return loss periods over time and by length, and the reorder density; None without losses and reordering."""
    drawn = {_OVER_TIME: _over_time, _LENGTHS: _lengths, _ORDER: _density}
    variants: Json = {}
    for row in rows:
        for name, draw in drawn.items():
            data = [trace for index, flow in enumerate(row.flows) for trace in draw(flow, index)]
            if data:
                variants[f"{row.label}|{name}"] = {"data": data, "layout": _LAYOUTS[name]}
    if not variants:
        return None
    loads = tuple(row.label for row in rows if any(key.startswith(f"{row.label}|") for key in variants))
    kinds = tuple(name for name in drawn if any(key.endswith(f"|{name}") for key in variants))
    empty: Json = {"data": [], "layout": {}}
    whole = {f"{load}|{kind}": variants.get(f"{load}|{kind}", empty) for load in loads for kind in kinds}
    return Figure(identity, title, simulated, (loads, kinds), whole)


_LAYOUTS: dict[str, Json] = {
    _OVER_TIME: {
        "xaxis": {"title": {"text": "time since the first packet, ms"}},
        "yaxis": {"title": {"text": "packets lost in a row"}, "type": "log"},
    },
    _LENGTHS: {
        "xaxis": {"title": {"text": "packets lost in a row"}, "type": "log"},
        "yaxis": {"title": {"text": "loss periods"}, "type": "log"},
    },
    _ORDER: {
        "xaxis": {"title": {"text": "places late (> 0) or early"}},
        "yaxis": {"title": {"text": "share of packets"}, "type": "log"},
    },
}


def _trace(flow: FlowLosses, index: int, points: Sequence[tuple[float, float]]) -> Json:
    symbol = "circle" if flow.direction == "forward" else "diamond-open"
    marker = {"symbol": symbol, "size": 5}
    return scatter(f"instance {flow.instance} {flow.direction}", points, index, mode="markers", marker=marker)


def _over_time(flow: FlowLosses, index: int) -> Iterator[Json]:
    if flow.listed:
        yield _trace(flow, index, [(offset / 1e6, packets) for offset, _, packets in flow.listed])


def _lengths(flow: FlowLosses, index: int) -> Iterator[Json]:
    if flow.run_lengths:
        yield _trace(flow, index, flow.run_lengths)


def _density(flow: FlowLosses, index: int) -> Iterator[Json]:
    total = sum(count for _, count in flow.order.displacements)
    if flow.order.reordered and total:
        yield _trace(flow, index, [(place, count / total) for place, count in flow.order.displacements])
