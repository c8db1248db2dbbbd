"""Receive rates in overload: what comes back at one load, whatever is lost.

- MRR, maximum receive rate, as in FD.io CSIT: at line rate, or at the most that the generator can send. RFC 2285
  (3.6.2) calls it forwarding rate at maximum offered load.
- ORR, overload receive rate: at the load where a search begins, which is lowered where so much more would only show how
  an overloaded system collapses.
"""

from collections.abc import Callable
from statistics import fmean, stdev
from typing import Literal

from resources.libraries.python.model.cell import Frame
from resources.libraries.python.model.goal import SearchProfile
from resources.libraries.python.model.result import ReceiveRate
from resources.libraries.python.model.trial import Trial, TrialResult


def measure_receive_rate(
    measure: Callable[[Trial], TrialResult],
    profile: SearchProfile,
    frame: Frame,
    load_pps: float,
    purpose: Literal["mrr", "orr"] = "mrr",
) -> tuple[ReceiveRate, tuple[TrialResult, ...]]:
    """Run the profile's MRR trials at a load.

    A trial that the generator limited counts: the rate was received all the same, and `offered_pps` says at what load.

    Args:
        measure: Runs one trial.
        profile: Number and duration of trials.
        frame: Of all trials.
        load_pps: Aggregate.
        purpose: Which of the rates it is.
    """
    trial = Trial(load_pps=load_pps, duration_s=profile.mrr_duration_s, frame=frame, purpose=purpose)
    results = []
    for _ in range(profile.mrr_trials):
        results.append(measure(trial))
    rates = tuple(result.forwarded_pps for result in results)
    found = ReceiveRate(
        offered_pps=fmean(result.offered_pps for result in results),
        receive_rates_pps=rates,
        mean_pps=fmean(rates),
        stdev_pps=stdev(rates) if len(rates) > 1 else None,
    )
    return found, tuple(results)
