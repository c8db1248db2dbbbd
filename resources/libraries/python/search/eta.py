"""Remaining time of a search: a rough estimate from the trials so far."""

from collections.abc import Sequence
from math import ceil, log, log2

from resources.libraries.python.model.goal import Goal
from resources.libraries.python.search.bounds import LoadEvidence, likely_bounds, proven_bounds

_DECISION = 0.6
"""Share of a duration sum that deciding one load takes: just above a half when all trials agree."""
_UNKNOWN_LOADS = 2
"""Decisions that the search of a missing bound is assumed to take."""


def remaining_s(rows: Sequence[LoadEvidence], goal: Goal) -> float:
    """Seconds until both bounds of a goal are decided and close enough.

    Counts what is missing at the present bounds, and half a decision for each halving of the interval: most halvings
    are made with less evidence, by the coarser goals that precede the goal itself.

    Args:
        rows: Loads with their trials, ascending; the highest load that can be offered is among them.
        goal: What is searched.
    """
    if proven_bounds(rows, goal).narrow(goal):
        return 0.0
    bounds = likely_bounds(rows, goal)
    decision_s = goal.duration_sum_s * _DECISION
    if bounds.lower is None:
        return _UNKNOWN_LOADS * decision_s
    if bounds.upper is None:
        # Even the highest load meets the goal so far: there may be nothing to search.
        return bounds.lower.missing_s(goal)
    width = log(bounds.upper.load_pps / bounds.lower.load_pps) / -log(1 - goal.relative_width)
    halvings = max(0, ceil(log2(width) - 1e-6))
    return bounds.lower.missing_s(goal) + bounds.upper.missing_s(goal) + halvings * decision_s / 2
