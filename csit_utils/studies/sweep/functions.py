"""Profiles of one service side by side: the fitted functions of all flavors, and their delays below saturation."""

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from csit_utils.report.figures import Figure, Json
from csit_utils.report.study import View
from csit_utils.studies.sweep.points import FIRST_SCALE, LINEAR, NAMES, PlotPosition, axes, place, shown
from resources.libraries.python.studies.sweep.analysis.profile_queries import measured_rates, value_at
from resources.libraries.python.studies.sweep.analysis.sentences import UNITS
from resources.libraries.python.studies.sweep.model.profile import Profile, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import Sweep

_ON_A_LINE = 120
"""Rates at which functions are drawn."""
_FRAME = "frame"
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "star", "hexagon", "cross", "pentagon")

REACHES = {"below saturation": 1.0, "below half of it": 0.5}
"""Shares of the break-point: just below it delay grows so steeply that lower loads cannot be distinguished."""

Named = Sequence[tuple[str, View, Sweep]]
"""Sweeps with their names in legends."""


def functions_figure(identity: str, title: str, own: Named) -> Figure | None:
    """Functions of all profiles with their measured loads, a choice for each metric; None for fewer than two."""
    profiled = [row for row in own if row[1].record.profile is not None]
    if len(profiled) < 2:
        return None
    variants: Json = {}
    for metric in ProfileMetric:
        scale = FIRST_SCALE[metric]
        data = [
            trace
            for number, (name, view, sweep) in enumerate(profiled)
            if view.record.profile is not None
            for trace in _of_profile(name, view.record.profile, sweep, metric, number)
        ]
        if data:
            variants[metric.value] = {"data": data, "layout": axes(metric, scale)}
    simulated = own[0][1].record.simulated
    return Figure(identity, f"Fitted functions of {title}", simulated, (tuple(variants),), variants, (_FRAME,))


def _of_profile(name: str, profile: Profile, sweep: Sweep, metric: ProfileMetric, colour: int) -> Iterator[Json]:
    """Its functions, where it saturates, and the loads that they were fitted to."""
    rates = measured_rates(profile)
    row = profile.of(metric)
    if rates is None or row is None or (row.nonsat is None and row.sat is None):
        return
    text = escape(name)
    at = profile.break_point
    on_line = sorted({*np.linspace(*rates, _ON_A_LINE).tolist(), *([at.rate] if at else [])})
    hover = f"{text}, function<br>%{{x:.4~g}} Gbit/s: %{{y:.4~g}} {UNITS[metric]}<extra></extra>"
    common: Json = {"type": "scatter", "meta": _meta(sweep, colour), "legendgroup": text}
    scale = FIRST_SCALE[metric]
    yield {
        **common,
        "mode": "lines",
        "name": text,
        "x": [shown(rate, "") for rate in on_line],
        "y": [shown(value_at(profile, metric, rate), scale) for rate in on_line],
        "hovertemplate": hover,
        "line": {"width": 2},
    }
    places = [place(point, sweep.spec.frame) for point in sweep.points]
    yield {
        **common,
        "mode": "markers",
        "name": text,
        "showlegend": False,
        "x": [shown(each.rate, "") for each in places],
        "y": [shown(each.values[metric], scale) for each in places],
        "text": [f"{text}<br>{each.text(metric)}" for each in places],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"size": 6, "opacity": 0.6, "symbol": _SYMBOLS[colour % len(_SYMBOLS)]},
    }
    if at is not None:
        yield {
            **common,
            "mode": "markers",
            "name": text,
            "showlegend": False,
            "x": [shown(at.rate, "")],
            "y": [shown(value_at(profile, metric, at.rate), scale)],
            "hovertemplate": f"{text} saturates at %{{x:.4~g}} Gbit/s<br>{escape(at.reason)}<extra></extra>",
            "marker": {"size": 14, "symbol": "line-ns-open", "line": {"width": 3}},
        }


def delays_figure(identity: str, title: str, own: Named) -> Figure | None:
    """Delays of loads below each sweep's saturation, where more vCPUs may cost time; None for fewer than two sweeps."""
    variants: Json = {}
    for reach, share in REACHES.items():
        lines = [
            line
            for number, (name, view, sweep) in enumerate(own)
            if (line := _delays(name, below(view.record.profile, sweep, share), _meta(sweep, number))) is not None
        ]
        if len(lines) > 1:
            variants[reach] = {"data": lines, "layout": axes(ProfileMetric.DELAY, LINEAR)}
    if not variants:
        return None
    simulated = own[0][1].record.simulated
    words = f"{NAMES[ProfileMetric.DELAY].capitalize()} below saturation, {title}"
    return Figure(identity, words, simulated, (tuple(variants),), variants, (_FRAME,))


def below(profile: Profile | None, sweep: Sweep, share: float) -> list[PlotPosition]:
    """Loads with a delay below a share of the break-point; all of them where nothing saturates."""
    at = profile.break_point if profile else None
    places = (place(point, sweep.spec.frame) for point in sweep.points)
    limit = share * at.rate if at else float("inf")
    return [each for each in places if each.rate < limit and each.values[ProfileMetric.DELAY] is not None]


def _meta(sweep: Sweep, colour: int) -> Json:
    return {"colour": colour, "facets": {_FRAME: sweep.spec.frame.name}}


def _delays(name: str, places: Sequence[PlotPosition], meta: Json) -> Json | None:
    if not places:
        return None
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": escape(name),
        "x": [shown(each.rate, "") for each in places],
        "y": [shown(each.values[ProfileMetric.DELAY], LINEAR) for each in places],
        "text": [f"{escape(name)}<br>{each.text(ProfileMetric.DELAY)}" for each in places],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"width": 2},
        "marker": {"size": 7, "symbol": _SYMBOLS[meta["colour"] % len(_SYMBOLS)]},
        "meta": meta,
    }
