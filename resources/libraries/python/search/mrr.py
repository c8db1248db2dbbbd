"""Maximum receive rate: what comes back at the highest load that can be offered, whatever is lost."""

from collections.abc import Callable
from statistics import fmean, stdev

from resources.libraries.python.model.cell import Frame
from resources.libraries.python.model.goal import SearchProfile
from resources.libraries.python.model.result import Mrr
from resources.libraries.python.model.trial import Trial, TrialResult


def measure_mrr(
    measure: Callable[[Trial], TrialResult], profile: SearchProfile, frame: Frame, max_load_pps: float
) -> tuple[Mrr, tuple[TrialResult, ...]]:
    """Run the profile's MRR trials.

    A trial that the generator limited counts: the rate was received all the same, and `offered_pps` says at what load.

    Args:
        measure: Runs one trial.
        profile: Number and duration of trials.
        frame: Of all trials.
        max_load_pps: Highest load that can be offered, aggregate.
    """
    trial = Trial(load_pps=max_load_pps, duration_s=profile.mrr_duration_s, frame=frame, purpose="mrr")
    results = tuple(measure(trial) for _ in range(profile.mrr_trials))
    rates = tuple(result.forwarded_pps for result in results)
    found = Mrr(
        offered_pps=fmean(result.offered_pps for result in results),
        receive_rates_pps=rates,
        mean_pps=fmean(rates),
        stdev_pps=stdev(rates) if len(rates) > 1 else None,
    )
    return found, results
