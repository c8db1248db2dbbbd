"""Goals out of order: one that permits more loss, as PDR does, with less throughput than one that permits less.

A search that shares its trials between goals may end so on an unsteady system, and one that searches each goal by
itself does so easily. Records and files of other tools may have it without a remark: their readers ask here, too.
"""

from typing import NamedTuple

from resources.libraries.python.model.result import Finding, VerdictKind
from resources.libraries.python.quantities import rates


class GoalBound(NamedTuple):
    """The lower bound of a goal."""

    name: str
    loss_ratio: float | None
    """None where it was not searched."""
    lower_pps: float | None
    """None where no load met the goal."""


def out_of_order(strict: GoalBound, other: GoalBound) -> Finding | None:
    """Return what is wrong with two goals, if the first one permits less loss."""
    if strict.loss_ratio is None or other.loss_ratio is None or strict.lower_pps is None:
        return None
    other_pps = other.lower_pps or 0.0
    if strict.loss_ratio >= other.loss_ratio or other_pps >= strict.lower_pps:
        return None
    low, high = rates(other_pps, strict.lower_pps)
    text = (
        f"{other.name} of {low} is below {strict.name} of {high}, though it permits more loss: the system was unsteady "
        "between the trials of the two, and another search may find other rates"
    )
    return Finding(kind=VerdictKind.UNSTABLE, text=text, numbers=(strict.name, other.name))
