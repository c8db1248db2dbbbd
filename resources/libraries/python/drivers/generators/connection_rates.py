"""The highest rate of new connections that a peer and the way between its ports take, looked for step by step."""

from collections.abc import Callable

from resources.libraries.python.model.trial import HighestLoads

FIRST_CPS = 500.0
"""Rate of each instance at the first step."""
_STEP = 1.5


def highest(all_answered: Callable[[float], bool], most_cps: float, instances: int) -> HighestLoads:
    """Raise the rate until some connections have no answer.

    Args:
        all_answered: Opens connections at a rate of each instance, and says whether all had an answer.
        most_cps: The highest rate of each instance that can be asked for.
        instances: How many.

    Returns:
        The highest rate of which all had an answer, in sum, as the one to begin a search at; as the highest one a rate
        two steps above, so that the search has a rate that is too high.
    """
    rate_cps, answered_cps = FIRST_CPS, 0.0
    while rate_cps <= most_cps and all_answered(rate_cps):
        answered_cps, rate_cps = rate_cps, _STEP * rate_cps
    offered_cps = instances * min(most_cps, _STEP * rate_cps)
    return HighestLoads(offered_pps=offered_cps, search_pps=instances * answered_cps or offered_cps)
