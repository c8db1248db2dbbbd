"""How far beyond what a system forwards it makes sense to load it in a search, found by short trials."""

from collections.abc import Callable

from resources.libraries.python.model.trial import HighestLoads

GLANCE_S = 0.1
_OVERLOAD = 4.0
_ENOUGH = 0.5
_LEAST_PPS = 10_000.0


def highest_loads(
    offered_pps: float, forwarded_pps: float, forwarded_at: Callable[[float, float], float]
) -> HighestLoads:
    """Lower the highest load of a search to four times what comes back.

    More would show nothing but the collapse of a kernel whose receiving threads take all of their core (3.8 Mpps into
    a service that can forward 0.4 Mpps gave 0.02 Mpps back). A service that collapses gives back most when little more
    than it can do is asked of it, so the load is halved until at least half of it comes back, and the most that came
    back counts.

    Args:
        offered_pps: Line rate, or what the generator can send, aggregate.
        forwarded_pps: What came back at that load.
        forwarded_at: What comes back at a load (pps) offered for a time (s).
    """
    load_pps = offered_pps
    best_pps = forwarded_pps
    while forwarded_pps < _ENOUGH * load_pps and load_pps > _LEAST_PPS:
        load_pps /= 2
        forwarded_pps = forwarded_at(load_pps, GLANCE_S)
        best_pps = max(best_pps, forwarded_pps)
    search_pps = min(offered_pps, _OVERLOAD * best_pps) if best_pps else offered_pps
    return HighestLoads(offered_pps=offered_pps, search_pps=search_pps)
