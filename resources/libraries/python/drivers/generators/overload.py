"""How far beyond what a system forwards it makes sense to load it in a search, found by short trials."""

from collections.abc import Callable

from resources.libraries.python.model.measurements.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.linerate import max_rate
from resources.libraries.python.testbed.roles.part import TrafficGenerator

GLANCE_S = 0.1
_OVERLOAD = 4.0
_ENOUGH, _FAR = 0.5, 0.125
"""Shares of a load that come back: enough to look no further, and so little that the next load is a quarter of it."""
_NOTHING = 0.01
_MIN_PPS = 10_000.0
DURATION_S = 0.3
SOFTWARE_PPS = 4_000_000.0
"""More than ports of the kernel take, aggregate; where line rates are known, those are asked for."""
_HEADROOM = 0.9
"""A sender at its limit cannot catch up after a stall."""
_TRIES = 4


def highest_loads(
    offered_pps: float, forwarded_pps: float, forwarded_at: Callable[[float, float], float]
) -> HighestLoads:
    """Lower the highest load of a search to four times what comes back.

    More would show nothing but the collapse of a kernel whose receiving threads take all of their core (3.8 Mpps into
    a service that can forward 0.4 Mpps gave 0.02 Mpps back). A service that collapses gives back most when little more
    than it can do is asked of it, so the load is halved until at least half of it comes back, and the most that came
    back counts. Far above that it is quartered, which takes half of the trials; the load in between is then offered
    last. A system that gives back nothing at the lowest load either, less than 1 % of 10,000 pps, is broken: no
    load in between is offered.

    `offered_pps`: Line rate, or what the generator can send, aggregate.
    `forwarded_pps`: What came back at that load.
    `forwarded_at`: What comes back at a load (pps) offered for a time (s).
    """
    load_pps = offered_pps
    best_pps = forwarded_pps
    nothing = load_pps > _MIN_PPS and forwarded_pps < _NOTHING * load_pps
    if nothing and forwarded_at(_MIN_PPS, GLANCE_S) < _NOTHING * _MIN_PPS:
        load_pps = _MIN_PPS
    step = 1
    while forwarded_pps < _ENOUGH * load_pps and load_pps > _MIN_PPS:
        step = 4 if forwarded_pps < _FAR * load_pps else 2
        load_pps /= step
        forwarded_pps = forwarded_at(load_pps, GLANCE_S)
        best_pps = max(best_pps, forwarded_pps)
    if step == 4:
        best_pps = max(best_pps, forwarded_at(2 * load_pps, GLANCE_S))
    search_pps = min(offered_pps, _OVERLOAD * best_pps) if best_pps else offered_pps
    return HighestLoads(offered_pps=offered_pps, search_pps=search_pps)


class SearchedByTrials(TrafficGenerator):
    """A generator whose highest load is found by trials of its plan."""

    _plan: Plan

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """Find what can be offered, and where a search should begin.

        First everything is asked for, for as long as the trial, 0.3 s at most, and what was really offered in the time
        it took is tried again, a little less of it each time, until a trial is not limited by the generator. The load
        of a search is lowered where far less comes back, see `highest_loads` of this module.

        `trial`: Repeated at other loads and durations, to its end and without probes.

        Raises:
            CsitError: As `run`.
        """

        def at(load_pps: float, duration_s: float = min(DURATION_S, trial.duration_s)) -> TrialResult:
            changes = {"load_pps": load_pps, "duration_s": duration_s, "probe_pps": 0.0, "abort_loss_ratio": None}
            return self.run(trial.model_copy(update=changes))

        line = max_rate(self._plan, trial.frame)
        most_pps = line.aggregate_pps if line else SOFTWARE_PPS
        result = at(most_pps)
        for _ in range(_TRIES):
            if not result.generator_limited:
                break
            most_pps = _HEADROOM * min(most_pps, result.offered_pps)
            result = at(most_pps)
        return highest_loads(most_pps, result.forwarded_pps, lambda *load: at(*load).forwarded_pps)
