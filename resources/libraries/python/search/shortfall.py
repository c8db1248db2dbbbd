"""Upper bounds that come from the generator: made by packets that it did not send, not by packets that were lost.

A trial that is charged counts what the generator did not send as lost (see `session`). Where a load is an upper bound
only because of such charges, nothing is known of the system under test at that load. What was proven below it stays.
"""

from collections.abc import Sequence

from resources.libraries.python.model.goal import GoalResult
from resources.libraries.python.model.trial import TrialResult
from resources.libraries.python.search.bounds import GoalReading, gather
from resources.libraries.python.search.soak import PURPOSE, series_of


def uncharged(result: GoalResult, trials: Sequence[TrialResult]) -> GoalResult:
    """The result without an upper bound that only charges have made.

    Without a lower bound nothing is left of it, and it is not complete.
    """
    if result.upper_pps is None or _lost_too_much(result, trials, result.upper_pps):
        return result
    reached = result.lower_pps is not None
    return result.model_copy(
        update={"upper_pps": None, "lowest_tried_pps": None, "complete": result.complete and reached}
    )


def shortfall(result: GoalResult, trials: Sequence[TrialResult]) -> str:
    """Return the shortfall of the generator at the upper bound of a result, as text."""
    at = [trial for trial in trials if trial.trial.load_pps == result.upper_pps and trial.is_evidence]
    short = [trial for trial in at if trial.unsent is not None]
    best_pps = max(trial.offered_pps for trial in short)
    return (
        f"the generator fell short in {len(short)} of {len(at)} trials at {result.upper_pps:.0f} pps, also when they "
        f"were repeated (offered {best_pps:.0f} pps in the best of them): the upper bound there is the generator's, "
        "not that of the system under test"
    )


def _lost_too_much(result: GoalResult, trials: Sequence[TrialResult], load_pps: float) -> bool:
    """Whether a load fails the goal by packets that were sent and lost."""
    at = [trial for trial in trials if trial.trial.load_pps == load_pps]
    if all(trial.unsent is None for trial in at):
        return True
    at = [trial.model_copy(update={"unsent": None if trial.unsent is None else 0}) for trial in at]
    series = series_of(at)
    if any(trial.trial.purpose == PURPOSE for trial in at):
        return series[load_pps].failed(result.goal)
    row = gather(at, result.goal)[0]
    return (row.proven(result.goal) if result.complete else row.likely(result.goal)) is GoalReading.BAD
