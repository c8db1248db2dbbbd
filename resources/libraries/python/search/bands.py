"""Does the system do the same when asked the same? Two bands, and NDR far under PDR.

**Two bands.** A system in two bands forwards one of two rates at the same load, trial by trial. For each load the
*shortfall* of a trial is how much less it forwarded than the best trial of that load, as a share of what that one
forwarded; a system without any variation has shortfalls of 0 at every load. Shortfalls of loads around the bounds are
pooled, sorted, and split at their largest gap. There are two bands when

- the gap is at least `LEAST_GAP`: closer bands are within what other noise does,
- the gap is at least `GAP_OVER_SPREAD` times as wide as either group: groups, and not the tail of one distribution,
- either group has at least `LEAST_TRIALS` trials and `LEAST_SHARE` of all trials: a band, and not an accident.

**NDR far under PDR.** Where the load without loss is bounded below `LEAST_NDR` of the load that keeps within PDR's loss
ratio, a third of the load range loses packets all the time without being full.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from resources.libraries.python.model.goal import GoalResult
from resources.libraries.python.model.trial import TrialResult

LEAST_GAP = 0.02
GAP_OVER_SPREAD = 2.0
LEAST_TRIALS = 3
LEAST_SHARE = 0.1
NEAR = 0.03
"""Loads that differ from a bound by no more are around it, relatively."""
LEAST_NDR = 0.7
_LEAST_SENT = 0.05
"""Share of a trial that must have been sent to count: what was ended at once says little about a rate. Losses of a
trial that was ended early may be those of a burst; then they differ from trial to trial, and make no narrow group."""


@dataclass(frozen=True, slots=True)
class Bands:
    """Two groups of trials at equal loads."""

    upper_trials: int
    lower_trials: int
    gap: float
    """Between the groups, as a share of what the best trial of the same load forwarded."""
    upper: float
    """Mean share of the best trial of the same load that the upper group forwarded."""
    lower: float
    """The same of the lower group."""
    loads: int
    """Different loads that were looked at."""


def find_bands(trials: Iterable[TrialResult], around_pps: Sequence[float] = ()) -> Bands | None:
    """Look for two bands.

    Args:
        trials: Any trials; those that say nothing about the system are left out.
        around_pps: Bounds, aggregate; empty looks at all loads.
    """
    rates: dict[tuple[float, float], list[float]] = defaultdict(list)
    for trial in trials:
        load_pps = trial.trial.load_pps
        if trial.generator_limited or not trial.sent or trial.offered_duration_s < _LEAST_SENT * trial.trial.duration_s:
            continue
        if not around_pps or any(abs(load_pps - bound) <= NEAR * bound for bound in around_pps):
            rates[load_pps, trial.trial.duration_s].append(1 - (trial.loss_ratio or 0.0))
    groups = [shares for shares in rates.values() if len(shares) > 1 and max(shares) > 0]
    shortfalls = sorted(1 - share / max(shares) for shares in groups for share in shares)
    if len(shortfalls) < 2 * LEAST_TRIALS:
        return None
    gap, split = max((later - one, index) for index, (one, later) in enumerate(pairwise(shortfalls), 1))
    good, bad = shortfalls[:split], shortfalls[split:]
    fewest = min(len(good), len(bad))
    spread = max(good[-1] - good[0], bad[-1] - bad[0])
    if gap < max(LEAST_GAP, GAP_OVER_SPREAD * spread) or fewest < max(LEAST_TRIALS, LEAST_SHARE * len(shortfalls)):
        return None
    return Bands(
        upper_trials=len(good),
        lower_trials=len(bad),
        gap=gap,
        upper=1 - sum(good) / len(good),
        lower=1 - sum(bad) / len(bad),
        loads=len(groups),
    )


def ndr_share(ndr: GoalResult | None, pdr: GoalResult | None) -> float | None:
    """NDR's upper bound over PDR's lower bound where that is far too low; None otherwise, or where one is unknown."""
    if ndr is None or pdr is None or ndr.upper_pps is None or not pdr.lower_pps:
        return None
    share = ndr.upper_pps / pdr.lower_pps
    return share if share < LEAST_NDR else None
