"""Published functions of profiles beside one's own."""

from collections.abc import Sequence
from html import escape

import numpy as np

from csit_utils.dataset.papers import Paper
from csit_utils.report.figures import Figure, Json
from csit_utils.report.published import called
from csit_utils.report.study import View
from csit_utils.studies.sweep.points import FIRST_SCALE, NAMES, axes, shown
from csit_utils.studies.sweep.words import kind_words
from resources.libraries.python.studies.sweep.analysis.profile_queries import measured_rates, value_at
from resources.libraries.python.studies.sweep.analysis.sentences import UNITS
from resources.libraries.python.studies.sweep.model.profile import Profile, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import SweepRecord

_ON_A_LINE = 120


def functions_of_routers(found: Sequence[View], paper: Paper) -> tuple[Figure, ...]:
    """Published functions, and those of VNFs of the same kind here."""
    if not paper.profiles:
        return ()
    drawn = [view for view in found if _is_router(view.record)]
    own = [(called(view, drawn), view.record.profile) for view in drawn if view.record.profile]
    published = [(f"published: {profile.name}", profile) for profile in paper.profiles]
    variants: Json = {}
    for metric in ProfileMetric:
        lines = [
            _function(name, profile, metric, 6 + number, "dash") for number, (name, profile) in enumerate(published)
        ] + [_function(name, profile, metric, number, "solid") for number, (name, profile) in enumerate(own)]
        variants[metric.value] = {"data": lines, "layout": axes(metric, FIRST_SCALE[metric])}
    simulated = any(view.simulated for view in drawn)
    title = f"Functions of a router: published by {paper.title} and fitted here"
    return (Figure(f"published-{paper.name}-functions", title, simulated, (tuple(variants),), variants),)


def _is_router(record: SweepRecord) -> bool:
    """Whether it has the functions of a router alone."""
    kinds = [kind_words(vnf) for vnf in record.sweep.vnfs] if record.sweep else []
    return record.profile is not None and kinds == ["router"]


def _function(name: str, profile: Profile, metric: ProfileMetric, colour: int, dash: str) -> Json:
    rates = measured_rates(profile)
    hover = f"{escape(name)}<br>%{{x:.4~g}} Gbit/s: {NAMES[metric]} %{{y:.4~g}} {UNITS[metric]}<extra></extra>"
    on_line = np.linspace(*rates, _ON_A_LINE).tolist() if rates else []
    return {
        "type": "scatter",
        "mode": "lines",
        "name": escape(name),
        "x": [shown(rate, "") for rate in on_line],
        "y": [shown(value_at(profile, metric, rate), FIRST_SCALE[metric]) for rate in on_line],
        "hovertemplate": hover,
        "line": {"width": 2, "dash": dash},
        "meta": {"colour": colour},
    }
