"""Interference over packet size and rate: normalized throughput, a line for each target or each pair."""

from collections.abc import Iterator, Sequence
from html import escape
from statistics import fmean

from csit_utils.report.figures import Figure, Json
from csit_utils.report.units import rate
from resources.libraries.python.studies.interference.analysis.sensitivity import pairs
from resources.libraries.python.studies.interference.analysis.sweeps import Spot, spots
from resources.libraries.python.studies.interference.model.record import Interference, Normalized

_MEANS = "mean of each network function"
_AXIS = {"over packet size": "packet size, bytes", "over rate": "load offered to each, one way, packets per second"}
_SIZE, _RATE = _AXIS


def sweep_figure(anchor: str, found: Interference, *, simulated: bool) -> Figure | None:
    """Normalized throughput over packet size at each load, and over the load at each packet size; None of one point."""
    rows = dict(_rows(spots(found)))
    if not rows:
        return None
    targets = [name for name in (each.name for each in found.spec.contenders) if name in found.sensitivity]
    choices = (tuple(rows), (_MEANS, *(f"{name} beside each" for name in targets)))
    variants: Json = {}
    for title, (axis, row) in rows.items():
        layout: Json = {
            "xaxis": {"title": {"text": _AXIS[axis]}, "rangemode": "tozero"},
            "yaxis": {"title": {"text": "normalized throughput"}, "rangemode": "tozero"},
        }
        variants[f"{title}|{_MEANS}"] = {
            "data": [_mean_line(axis, row, name, number) for number, name in enumerate(targets)],
            "layout": layout,
        }
        for target in targets:
            variants[f"{title}|{target} beside each"] = {
                "data": [_pair_line(axis, row, target, other, number) for number, other in enumerate(targets)],
                "layout": layout,
            }
    return Figure(f"{anchor}-sweep", "Interference by packet size and rate", simulated, choices, variants)


def _rows(measured: Sequence[Spot]) -> Iterator[tuple[str, tuple[str, list[Spot]]]]:
    """Points that differ in one thing only, under a title that says what is held."""
    for asked_pps in dict.fromkeys(spot.asked_pps for spot in measured):
        row = [spot for spot in measured if spot.asked_pps == asked_pps]
        held = "more than the fastest carries" if asked_pps is None else f"{rate(asked_pps)} each"
        if len(row) > 1:
            yield f"{_SIZE}, {held}", (_SIZE, sorted(row, key=lambda spot: spot.frame.mean_bytes))
    for name in dict.fromkeys(spot.frame.name for spot in measured):
        row = [spot for spot in measured if spot.frame.name == name]
        if len(row) > 1:
            yield f"{_RATE}, {name}", (_RATE, sorted(row, key=lambda spot: spot.load_pps))


def _mean_line(axis: str, row: Sequence[Spot], target: str, colour: int) -> Json:
    found = [(spot, [each for each in pairs(spot.matrix) if each.target == target]) for spot in row]
    points = [(spot, fmean(each.mean for each in beside)) for spot, beside in found if beside]
    return _line(axis, points, target, colour)


def _pair_line(axis: str, row: Sequence[Spot], target: str, other: str, colour: int) -> Json:
    """With the ends of the confidence interval of each point."""
    found = [(spot, each) for spot in row for each in spot.matrix if (each.target, each.against) == (target, (other,))]
    above, below = ([_width(each, up=up) for _, each in found] for up in (True, False))
    line = _line(axis, [(spot, each.mean) for spot, each in found], f"beside {other}", colour)
    return line | {"error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below}}


def _width(row: Normalized, *, up: bool) -> float:
    end = row.high if up else row.low
    return 0.0 if end is None else float(f"{abs(end - row.mean):.4g}")


def _line(axis: str, points: Sequence[tuple[Spot, float]], name: str, colour: int) -> Json:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": escape(name),
        "x": [float(f"{spot.frame.mean_bytes if axis == _SIZE else spot.load_pps:.6g}") for spot, _ in points],
        "y": [float(f"{mean:.4g}") for _, mean in points],
        "text": [f"{escape(spot.frame.name)}, {rate(spot.load_pps)} each" for spot, _ in points],
        "hovertemplate": f"{escape(name)}: %{{y:.3~g}}<br>%{{text}}<extra></extra>",
        "meta": {"colour": colour},
    }
