"""Trials of peers that open connections: how many are asked for, and the highest rate at which all are answered."""

from collections.abc import Callable

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.trial import HighestLoads, Protocol, Trial

FIRST_CPS = 500.0
"""Rate of each instance at the first step."""
_STEP = 1.5


def connections_of(trial: Trial, instances: int, most: int, tool: str) -> int:
    """Return how many connections of each instance a trial asks for.

    Args:
        trial: Its load is connections per second of all instances.
        instances: How many.
        most: Connections that a client address has ports for.
        tool: The peer's name.

    Raises:
        Unsupported: The trial asks for something else, or for more connections than there are ports.
    """
    if trial.protocol is not Protocol.TCP or not trial.load_pps or trial.probe_pps:
        raise Unsupported(f"{tool} opens TCP connections, for studies of stateful density; it sends no packets")
    connections = max(1, round(trial.load_pps / instances * trial.duration_s))
    if connections > most:
        raise Unsupported(
            f"{connections:,} connections of an instance in a trial: a client address has ports for {most:,}"
        )
    return connections


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
