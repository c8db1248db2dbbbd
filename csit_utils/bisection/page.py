"""Result of a bisection in sentences and as JSON, and its page: level of each measured revision, observations."""

from collections.abc import Sequence
from math import exp
from typing import Any

from csit_utils.analysis.bisection import BisectionAnswer, Culprit
from csit_utils.bisection.revisions import Revision
from csit_utils.bisection.run import BisectionResult
from csit_utils.report.html import html_templates, own_file
from csit_utils.report.units import percent, rate, seconds

WIDTH, HEIGHT = 1000.0, 340.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 90.0, 20.0, 15.0, 45.0
_TICKS = 5
_MAX_LABELS = 16


NORMAL_95 = 1.96
"""Standard deviations of a 95 % interval."""


def headline(result: BisectionResult, revisions: Sequence[Revision]) -> str:
    """The answer in one sentence."""
    found = result.beliefs
    names = [place(culprit, revisions) for culprit in found.culprits]
    wrong = f"wrong with a probability of at most {percent(max(1 - found.probability, 1e-6))}"
    match found.answer:
        case BisectionAnswer.CULPRIT:
            return f"culprit: {names[0]}: {change(result, found.culprits[0])}; {wrong}"
        case BisectionAnswer.TWO_CULPRITS:
            each = "; ".join(
                f"{name}: {change(result, culprit)}" for name, culprit in zip(names, found.culprits, strict=True)
            )
            return f"two culprits: {each}; {wrong}"
        case BisectionAnswer.NOT_HERE:
            return f"not in these revisions: good and bad do not differ when measured now; {wrong}"
        case _:
            return f"undecided: {'most probable: ' + ', '.join(names) if names else 'good and bad may not differ'}"


def place(culprit: Culprit, revisions: Sequence[Revision]) -> str:
    """The revision, or those of which one is it."""
    last = revisions[culprit.last].label
    if culprit.first == culprit.last:
        return last
    count = culprit.last - culprit.first + 1
    return f"one of {count} revisions from {revisions[culprit.first].label} to {last}"


def change(result: BisectionResult, culprit: Culprit) -> str:
    """By how much the metric changes from one side of a culprit to the other."""
    levels = result.beliefs.levels
    before, after = levels.get(culprit.first - 1), levels.get(culprit.last)
    if before is None or after is None:
        return "change unknown"
    share = percent(exp(after.mean - before.mean) - 1, signed=True)
    return f"{rate(exp(before.mean))} to {rate(exp(after.mean))} ({share})"


def effort(result: BisectionResult, revisions: Sequence[Revision]) -> str:
    """Cost of the bisection."""
    deployments = sum(map(len, result.observed.values()))
    skipped = f", {len(result.skipped)} could not be measured" if result.skipped else ""
    return (
        f"{result.trials} trials in {deployments} deployments of {len(result.observed)} of {len(revisions)} "
        f"revisions{skipped}, {seconds(result.seconds)}"
    )


def as_object(result: BisectionResult, revisions: Sequence[Revision]) -> dict[str, Any]:
    """The result as one JSON object. Rates are in packets per second."""
    found = result.beliefs
    return {
        "answer": found.answer.value if found.answer else None,
        "probability": found.probability,
        "culprits": [
            {
                "revisions": [each.name for each in revisions[culprit.first : culprit.last + 1]],
                "label": place(culprit, revisions),
                "probability": culprit.probability,
            }
            for culprit in found.culprits
        ],
        "revisions": [
            {
                "number": number,
                "name": revisions[number].name,
                "label": revisions[number].label,
                "values": list(values),
                "level": exp(found.levels[number].mean) if number in found.levels else None,
                "relative_stdev": found.levels[number].stdev if number in found.levels else None,
            }
            for number, values in sorted(result.observed.items())
        ],
        "skipped": [
            {"number": number, "name": revisions[number].name, "reason": reason}
            for number, reason in sorted(result.skipped.items())
        ],
        "trials": result.trials,
        "seconds": result.seconds,
    }


def render_bisection(result: BisectionResult, revisions: Sequence[Revision], title: str, *, simulated: bool) -> str:
    """Return the page; one file that needs no network and no script.

    `revisions`: All of them, in order.
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
    """Coordinates of the drawing: points, intervals, bands of culprits, ticks."""
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
    step = -(-len(numbers) // _MAX_LABELS)
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
