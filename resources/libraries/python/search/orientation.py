"""First loads of a search: the threshold, estimated from what came back in trials that lost packets."""

from collections.abc import Sequence
from dataclasses import dataclass

_APART = 1.005
"""Two loads of which a slope is taken differ by at least this factor."""


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """Outcome of one trial at a load, complete or aborted."""

    load_pps: float
    forwarded_pps: float
    lossy: bool

    def excess_pps(self, loss_ratio: float) -> float:
        """Loss beyond the loss ratio."""
        return self.load_pps * (1 - loss_ratio) - self.forwarded_pps


def at_overload(points: Sequence[LoadPoint], load_pps: float, loss_ratio: float) -> float | None:
    """The load that fits the best of the trials at one (the highest) load, were all that is too much lost.

    The best and not the mean: a system that runs in two bands is expected in the better one, and a load that is too
    high costs less time than one that is too low, as its trials end early.
    """
    rates = [point.forwarded_pps for point in points if point.load_pps == load_pps]
    return max(rates) / (1 - loss_ratio) if rates else None


def crossing_pps(points: Sequence[LoadPoint], loss_ratio: float) -> float | None:
    """The load at which losses reach the loss ratio, extrapolated from the lowest loads that exceeded it.

    The secant through two such trials; with one, or where the secant does not fall towards lower loads, the line on
    which every packet too many is lost. None when no trial has exceeded the ratio.
    """
    beyond = [(point.load_pps, point.excess_pps(loss_ratio)) for point in points if point.lossy]
    beyond = [each for each in beyond if each[1] > 0]
    if not beyond:
        return None
    load_pps, excess_pps = min(beyond)
    slope = 1 - loss_ratio
    further = [each for each in beyond if each[0] > load_pps * _APART]
    if further:
        other_pps, other_excess_pps = min(further)
        secant = (other_excess_pps - excess_pps) / (other_pps - load_pps)
        slope = secant if secant > 0 else slope
    return max(0.0, load_pps - excess_pps / slope)
