"""The highest load that can be offered, found by short trials."""

from collections.abc import Callable

from resources.libraries.python.drivers.generators import overload
from resources.libraries.python.model.trial import HighestLoads, TrialResult

DURATION_S = 0.3
SOFTWARE_PPS = 4_000_000.0
"""More than ports of the kernel take, aggregate; where line rates are known, those are asked for."""
_HEADROOM = 0.9
"""A sender at its limit cannot catch up after a stall."""
_TRIES = 4


def highest_loads(run: Callable[[float, float], TrialResult], line_pps: float | None) -> HighestLoads:
    """Find what can be offered, and where a search should begin.

    First everything is asked for, and what was really offered in the time it took is tried again, a little less of it
    each time, until a trial is not limited by the generator. The load of a search is lowered where far less comes back,
    see `overload.highest_loads`.

    Args:
        run: Runs a trial with this load (aggregate pps) and duration (s).
        line_pps: What fills the links, aggregate; None where that is not known.
    """
    asked_pps = line_pps or SOFTWARE_PPS
    result = run(asked_pps, DURATION_S)
    most_pps = asked_pps
    for _ in range(_TRIES):
        if not result.generator_limited:
            break
        most_pps = _HEADROOM * min(most_pps, result.offered_pps)
        result = run(most_pps, DURATION_S)
    return overload.highest_loads(most_pps, result.forwarded_pps, lambda *load: run(*load).forwarded_pps)
