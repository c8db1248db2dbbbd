"""The highest load that makes sense, found by short trials."""

from collections.abc import Callable

from resources.libraries.python.model.trial import TrialResult

DURATION_S = 0.3
GLANCE_S = 0.1
SOFTWARE_PPS = 4_000_000.0
"""More than ports of the kernel take, aggregate; where line rates are known, those are asked for."""
_HEADROOM = 0.9
"""A sender at its limit cannot catch up after a stall."""
_TRIES = 4
_OVERLOAD = 4.0
_ENOUGH = 0.5
_LEAST_PPS = 10_000.0


def maximum_pps(run: Callable[[float, float], TrialResult], line_pps: float | None) -> float:
    """Find what can be offered, and does not only show how the system under test collapses.

    First everything is asked for, and what was really offered in the time it took is tried again, a little less of it
    each time, until a trial is not limited by the generator. Then the load is lowered to four times what comes back;
    as a system that collapses gives back most when little more than it can do is asked of it, the load is halved until
    at least half of it comes back, and the most that came back counts.

    Args:
        run: Runs a trial with this load (aggregate pps) and duration (s).
        line_pps: What fills the links, aggregate; None where that is not known.

    Returns:
        Aggregate pps.
    """
    asked_pps = line_pps or SOFTWARE_PPS
    result = run(asked_pps, DURATION_S)
    most_pps = asked_pps
    for _ in range(_TRIES):
        if not result.generator_limited:
            break
        most_pps = _HEADROOM * min(most_pps, result.offered_pps)
        result = run(most_pps, DURATION_S)
    load_pps = most_pps
    best_pps = result.forwarded_pps
    while result.forwarded_pps < _ENOUGH * load_pps and load_pps > _LEAST_PPS:
        load_pps /= 2
        result = run(load_pps, GLANCE_S)
        best_pps = max(best_pps, result.forwarded_pps)
    return min(most_pps, _OVERLOAD * best_pps) if best_pps else most_pps
