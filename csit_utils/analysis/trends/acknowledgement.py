"""Acknowledged steps among the steps of a cell: matching by date, and steps that repeat or undo one.

Later figures may move the place of a step, and people date a step by its cause. So a date means the nearest step within
`MAX_SHIFT` figures, in the same direction.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import UTC, date, datetime

from csit_utils.analysis.trends.steps import MIN_RUNS, Step
from csit_utils.dataset.ledger import AcknowledgedStep

MAX_SHIFT = MIN_RUNS
"""Figures between a date and the first one of a step at most."""
_SAME_LEVEL = 0.25
"""Difference of equal levels at most, relative to the height of the acknowledged step."""


def matched(
    steps: Sequence[Step], times: Sequence[datetime], known: Sequence[AcknowledgedStep]
) -> tuple[AcknowledgedStep | None, ...]:
    """Return the acknowledgement of each step, the nearest first; one belongs to one step at most.

    `times`: Of all figures of the cell, in order.
    """
    places = [bisect_left(times, each.since) for each in known]
    pairs = sorted(
        (shift, number, place)
        for number, step in enumerate(steps)
        for place, each in enumerate(known)
        if (shift := abs(step.index - places[place])) <= MAX_SHIFT
        and (step.after > step.before) == (each.after > each.before)
    )
    found: dict[int, int] = {}
    for _, number, place in pairs:
        if number not in found and place not in found.values():
            found[number] = place
    return tuple(known[found[number]] if number in found else None for number in range(len(steps)))


def step_near(steps: Sequence[Step], times: Sequence[datetime], day: date) -> Step | None:
    """Return the step nearest to a day (UTC); None if none is within `MAX_SHIFT` figures of it.

    The first figure after the day is as near as those of the day.
    """
    days = [at.astimezone(UTC).date() for at in times]
    first, after = bisect_left(days, day), bisect_right(days, day)
    shifts = [(max(first - step.index, step.index - after, 0), abs(step.index - first), step) for step in steps]
    shift, _, step = min(shifts, key=lambda each: each[:2], default=(MAX_SHIFT + 1, 0, None))
    return step if shift <= MAX_SHIFT else None


def relation(step: Step, earlier: Sequence[AcknowledgedStep]) -> str:
    """Return in words that a step is an earlier acknowledged one that came back, or undoes one; empty if neither."""

    def same(level: float, other: float, known: AcknowledgedStep) -> bool:
        return abs(level - other) <= _SAME_LEVEL * abs(known.after - known.before)

    for known in reversed(earlier):
        if same(step.before, known.before, known) and same(step.after, known.after, known):
            return f"the step of {known.day} ({known.cause}) came back"
    for known in reversed(earlier):
        opposite = (step.after > step.before) != (known.after > known.before)
        if opposite and same(step.after, known.before, known):
            return f"back to the level before the step of {known.day} ({known.cause})"
    return ""
