"""Search for what a generator can do by itself: rates, rate error, gaps and latency of a loop-back.

The figures bound results from above (rates) and from below (latency). A trial of a generator on a busy machine may lose
packets by chance, so a rate counts as reached when one of a few trials reaches it.
"""

import math
from collections.abc import Callable
from contextlib import suppress

from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.measurements.qualification import QualifiedPoint
from resources.libraries.python.model.measurements.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.quantities import rate

PURPOSE = "qualification"
GAP_PPS = 100_000.0
"""Load at which gaps are measured, of all flows."""
PROBE_PPS = 1000.0
"""Probe frames of each flow without load."""
_ERROR_SHARES = (0.1, 0.5)
"""Of the highest rate: loads at which the error of the rate is measured, besides that of gaps and the highest."""
_STEP = 0.98
"""A next load is this share of what arrived of a load that lost packets."""
_CLEARLY, _LOWER = 0.9, 0.7
"""Shares of a load that lost packets: a next load below the first is taken from what arrived, else it is the second."""
_HIGHER = 1.1
"""A next load is that much above one that lost nothing, where none has failed: generators give their highest load with
some headroom."""
_FLOOR_TRIALS = 3
"""Trials without load: the shortest latency of a thread that sleeps between two looks is another one in each."""
_MIN_PPS = 1000.0
_HIGHEST_S = 0.3
"""A trial of the most that a generator sends is no shorter."""


class Effort(Frozen):
    """How much is spent on a point."""

    trial_s: float = 0.5
    width: float = 0.02
    """Relative distance of the bounds of a rate at which its search ends."""
    tries: int = 2
    """Trials at a load before it counts as not reached."""
    most_trials: int = 24
    """Of the search for one rate."""


BRIEF = Effort(trial_s=0.1, width=0.05, tries=2, most_trials=9)
"""At the start of a run that finds none: at most 4 s for each point."""
LOGGED = Effort(trial_s=1.0, width=0.1, tries=1, most_trials=8)
"""The same for a generator that logs every second, whose trials take 2 to 3 s: at most 20 trials, a minute or two."""


class _Rate:
    """Search of the highest rate whose loss ratio is within a limit, over all trials so far."""

    def __init__(self, run: Callable[[float], TrialResult], effort: Effort, trials: list[TrialResult]) -> None:
        self._run = run
        self._effort = effort
        self._trials = trials

    def highest(self, offered_pps: float, allowed: float) -> float | None:
        """Return the highest rate found, from a load on that can be offered; None where no load was low enough."""
        good = max((each.trial.load_pps for each in self._trials if _passes(each, allowed)), default=0.0)
        failed = [each for each in self._trials if each.trial.load_pps > good]
        bad = min((each.trial.load_pps for each in failed), default=math.inf)
        arrived_pps = max((each.forwarded_pps for each in failed), default=0.0)
        load_pps = _next(good, bad, arrived_pps) if good or failed else offered_pps
        left = self._effort.most_trials
        while left > 0 and load_pps > _MIN_PPS and bad > good * (1 + self._effort.width):
            tried: list[TrialResult] = []
            while left > 0 and len(tried) < self._effort.tries:
                left -= 1
                tried.append(self._run(load_pps))
                self._trials.append(tried[-1])
                if _passes(tried[-1], allowed):
                    good = max(good, load_pps)
                    break
            else:
                bad = min(bad, load_pps)
            load_pps = _next(good, bad, max(each.forwarded_pps for each in tried))
        return good or None


def qualify_point(
    run: Callable[[Trial], TrialResult],
    highest_loads: Callable[[Trial], HighestLoads],
    frame: Frame,
    flows: int,
    effort: Effort,
    *,
    loss_ratio: float,
    numbers_packets: bool,
    sends_probes: bool,
) -> QualifiedPoint:
    """Measure a generator that is looped back.

    `numbers_packets`: Whether the generator counts packets by their numbers, too.

    Raises:
        CsitError: Nothing comes back.
    """
    trial = Trial(load_pps=0.0, duration_s=effort.trial_s, frame=frame, purpose=PURPOSE)

    def at(load_pps: float, **asked: float) -> TrialResult:
        return run(trial.model_copy(update={"load_pps": load_pps, **asked}))

    # Brief trials are many, and the most that a generator sends is measured once: a stall may not count for so much.
    offered_pps = highest_loads(trial.model_copy(update={"duration_s": max(trial.duration_s, _HIGHEST_S)})).offered_pps
    trials: list[TrialResult] = []
    search = _Rate(at, effort, trials)
    loss_free_pps = search.highest(offered_pps, 0.0)
    highest_pps = search.highest(offered_pps, loss_ratio)
    received_pps = max((each.forwarded_pps for each in trials), default=0.0)
    if not received_pps:
        raise CsitError(f"nothing of {rate(offered_pps)} of {frame.name} frames came back over the loop")
    best_pps = highest_pps or received_pps
    paced = [at(share * best_pps) for share in _ERROR_SHARES]
    gaps = at(min(GAP_PPS, best_pps / 2), measure_gaps=True)
    paced.append(gaps)
    counted = None
    if numbers_packets:
        with suppress(Unsupported):
            counted = at(offered_pps, count_losses=True)
    floors = [at(0.0, probe_pps=PROBE_PPS) for _ in range(_FLOOR_TRIALS)] if sends_probes else paced
    worst = max(gaps.gaps, key=lambda flow: flow.p999_ns, default=None)
    latency = [flow for each in floors for flow in each.latency]
    shortest = [flow.min_ns for flow in latency if flow.min_ns is not None]
    medians = [flow.p50_ns for flow in latency if flow.p50_ns is not None]
    errors = [error for each in (*trials, *paced) if (error := rate_error(each)) is not None]
    return QualifiedPoint(
        frame=frame,
        flows=flows,
        loss_free_pps=loss_free_pps,
        highest_pps=highest_pps,
        offered_pps=max(each.offered_pps for each in trials),
        received_pps=received_pps,
        counted_pps=counted.forwarded_pps or None if counted is not None else None,
        rate_error=max(errors, default=None),
        gap_load_pps=gaps.trial.load_pps if worst is not None else None,
        gap_p50_ns=worst.p50_ns if worst is not None else None,
        gap_p99_ns=worst.p99_ns if worst is not None else None,
        gap_p999_ns=worst.p999_ns if worst is not None else None,
        floor_ns=min(shortest, default=None),
        floor_p50_ns=min(medians, default=None),
    )


def rate_error(result: TrialResult) -> float | None:
    """Return the error of a trial's rate, relative; None of one that was short, or had no load."""
    if not result.trial.load_pps or result.generator_limited or not result.offered_duration_s:
        return None
    return abs(result.offered_pps / result.trial.load_pps - 1)


def _next(good: float, bad: float, arrived_pps: float) -> float:
    """Return the load between two bounds to try next: just below what arrived, where that is clearly lower."""
    if bad == math.inf:
        return _HIGHER * good
    hint = _STEP * arrived_pps
    if good < hint < _CLEARLY * bad:
        return hint
    return (good + bad) / 2 if good else _LOWER * bad


def _passes(result: TrialResult, allowed: float) -> bool:
    ratio = result.loss_ratio
    return not result.generator_limited and ratio is not None and ratio <= allowed
