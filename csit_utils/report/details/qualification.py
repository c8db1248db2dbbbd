"""Qualification of a test's generator, with a chart of the distance of the test's figures from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from csit_utils.report.figures import Figure, bars, categories, no_choice, scatter
from csit_utils.report.units import common_unit
from resources.libraries.python.model.measurements.qualification import Qualification, QualifiedPoint
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.quantities import counted

_LISTED = 40
"""Lines of the table."""


@dataclass(frozen=True)
class QualificationView:
    """The qualification that a test was judged by."""

    caption: str
    points: tuple[QualifiedPoint, ...]
    bound: QualifiedPoint | None
    """The one that bounds the test's figures."""
    notes: tuple[str, ...]


def qualification_view(found: Qualification | None, frame: Frame, flows: int) -> QualificationView | None:
    """Return the table of a qualification; None where the generator was not qualified."""
    if found is None:
        return None
    parts = (str(found.key), found.sending, f"trials of {found.trial_s:g} s, {found.measured_at}")
    return QualificationView(
        caption="; ".join(filter(None, parts)),
        points=found.points[:_LISTED],
        bound=found.bound(frame, flows),
        notes=found.notes,
    )


_SYMBOLS = ("diamond", "circle-open", "square-open")
"""Of figures, distinct where two are equal."""
_RATES = (("no loss", "loss_free_pps"), ("loss ≤ 0.5 %", "highest_pps"), ("most that arrived", "received_pps"))


def qualification_figure(
    identity: str,
    title: str,
    view: QualificationView | None,
    figures: Sequence[tuple[str, float | None]],
    *,
    simulated: bool,
) -> Figure | None:
    """Return the generator's rates by frame and flows as bars, and the test's figures as lines.

    `view`: what the generator can do; None gives None.
    `figures`: name and rate of each figure of the test.
    `simulated`: whether nothing was measured.
    """
    if view is None or not view.points:
        return None
    known = [(name, rate_pps) for name, rate_pps in figures if rate_pps is not None]
    every = [getattr(point, field) for _, field in _RATES for point in view.points]
    scale, unit = common_unit([value for value in every if value is not None])
    names = [_name(point) for point in view.points]
    data = [
        bars(label, [(_name(point), _scaled(getattr(point, field), scale)) for point in view.points], number)
        for number, (label, field) in enumerate(_RATES)
    ]
    at = names if view.bound is None else [_name(view.bound)]
    data += [
        scatter(
            f"{name} of this test",
            [(where, rate_pps / scale) for where in at],
            len(_RATES) + number,
            mode="markers",
            marker={"size": 12, "symbol": _SYMBOLS[number % len(_SYMBOLS)]},
        )
        for number, (name, rate_pps) in enumerate(known)
    ]
    layout = categories(f"rate of all flows, {unit}", barmode="group")
    layout["xaxis"]["title"] = {"text": "frame size and flows, looped back"}
    return no_choice(identity, title, data, layout, simulated=simulated)


def _name(point: QualifiedPoint) -> str:
    return f"{escape(point.frame.name)}, {counted(point.flows, 'flow')}"


def _scaled(rate_pps: float | None, scale: float) -> float | None:
    return None if rate_pps is None else rate_pps / scale
