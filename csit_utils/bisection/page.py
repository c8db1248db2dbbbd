"""The page of a bisection: the answer, the level of each measured revision with its interval, all observations."""

from collections.abc import Sequence
from math import exp
from typing import Any

from csit_utils.bisection.revisions import Revision
from csit_utils.bisection.run import BisectionResult
from csit_utils.bisection.texts import NORMAL_95, effort, headline
from csit_utils.report.html import html_templates, own_file
from csit_utils.report.units import percent, rate

WIDTH, HEIGHT = 1000.0, 340.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 90.0, 20.0, 15.0, 45.0
_TICKS = 5
_MOST_LABELS = 16


def render_bisection(result: BisectionResult, revisions: Sequence[Revision], title: str, *, simulated: bool) -> str:
    """Return the page; one file that needs no network and no script.

    Args:
        result: What was found.
        revisions: All of them, in order.
        title: Cell and metric.
        simulated: Whether the figures are simulated.
    """
    levels = result.beliefs.levels
    rows = [
        {
            "number": number,
            "label": revisions[number].label,
            "values": [rate(value) for value in values],
            "level": rate(exp(levels[number].mean)) if number in levels else "-",
            "interval": percent(NORMAL_95 * levels[number].stdev) if number in levels else "-",
            "culprit": any(each.first <= number <= each.last for each in result.beliefs.culprits),
        }
        for number, values in sorted(result.observed.items())
    ]
    return html_templates().get_template("bisection.html.j2").render(
        title=title,
        headline=headline(result, revisions),
        effort=effort(result, revisions),
        simulated=simulated,
        answer=result.beliefs.answer,
        picture=picture(result, len(revisions)),
        rows=rows,
        skipped=[(revisions[number].label, reason) for number, reason in sorted(result.skipped.items())],
        style=own_file("style/base.css"),
    )  # fmt: skip


def picture(result: BisectionResult, count: int) -> dict[str, Any]:
    """Coordinates of the drawing: points, intervals, bands of culprits, ticks.

    Args:
        result: What was found.
        count: Number of revisions.
    """
    values = [value for seen in result.observed.values() for value in seen]
    low, high = min(values), max(values)
    margin = max((high - low) * 0.15, high * 0.01)
    low, high = max(low - margin, 0.0), high + margin

    def across(number: float) -> float:
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * (number + 0.5) / count, 1)

    def up(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * share, 1)

    levels = sorted(result.beliefs.levels.items())
    ticks = [low + (high - low) * tick / (_TICKS - 1) for tick in range(_TICKS)]
    numbers = sorted(result.observed)
    step = -(-len(numbers) // _MOST_LABELS)
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": _LEFT,
        "right": WIDTH - _RIGHT,
        "top": _TOP,
        "bottom": HEIGHT - _BOTTOM,
        "points": [(across(number), up(value)) for number, seen in sorted(result.observed.items()) for value in seen],
        "levels": [
            (
                across(number),
                up(exp(level.mean)),
                up(exp(level.mean - NORMAL_95 * level.stdev)),
                up(exp(level.mean + NORMAL_95 * level.stdev)),
            )
            for number, level in levels
        ],
        "culprits": [
            (across(each.first - 0.5), across(each.last + 0.5) - across(each.first - 0.5))
            for each in result.beliefs.culprits
        ],
        "y_ticks": [(up(value), rate(value)) for value in ticks],
        "x_ticks": [(across(number), str(number)) for number in numbers[::step]],
    }
