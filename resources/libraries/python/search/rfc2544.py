"""Binary search after RFC 2544 (26.1 throughput, 24 trial duration): one trial of full length decides.

The RFC allows shorter trials on the way and asks for the final determination with full length. So a load is first tried
for the goal's initial duration; the lower bound has to pass a trial of the final duration as well. A trial that fails
has failed whatever its length, and ends early. Loads are halved arithmetically, from the highest load down, until the
bounds are as close as the goal's relative width. Goals are searched one after the other and share trials.
"""

from resources.libraries.python.model.cell import Frame
from resources.libraries.python.model.goal import Goal, GoalResult, SearchProfile
from resources.libraries.python.model.trial import Trial
from resources.libraries.python.search.bounds import Bounds, GoalReading, LoadEvidence, best_known, gather
from resources.libraries.python.search.session import Session


def binary_search(
    session: Session, profile: SearchProfile, frame: Frame, min_load_pps: float, max_load_pps: float
) -> tuple[GoalResult, ...]:
    """Search all goals of a profile.

    Raises:
        ValueError: A goal allows bad trials at a load, or asks for more than one trial of final length.
    """
    for goal in profile.goals:
        if goal.exceed_ratio or goal.duration_sum_s > goal.final_trial_duration_s:
            raise ValueError(f"{goal.name}: in a binary search one trial decides, so exceed_ratio is 0")
    return tuple(_search(session, goal, frame, min_load_pps, max_load_pps) for goal in profile.goals)


def _search(session: Session, goal: Goal, frame: Frame, min_load_pps: float, max_load_pps: float) -> GoalResult:
    def run(load_pps: float, duration_s: float) -> None:
        session.run(Trial(load_pps=load_pps, duration_s=duration_s, frame=frame, abort_loss_ratio=goal.loss_ratio))

    while True:
        trials = [result for result in session.trials if result.trial.load_pps <= max_load_pps]
        bounds = _bounds(gather(trials, goal))
        lower, upper = bounds.lower, bounds.upper
        at_end = upper is None and lower is not None and lower.load_pps >= max_load_pps
        if lower is not None and (at_end or bounds.narrow(goal)):
            if lower.proven(goal) is GoalReading.GOOD:
                break
            run(lower.load_pps, goal.final_trial_duration_s)
        elif lower is None and upper is not None and upper.load_pps <= min_load_pps:
            break
        else:
            run(_next_pps(bounds, goal, min_load_pps, max_load_pps), goal.initial_trial_duration_s)
    known = best_known(trials, goal)
    return known.model_copy(update={"complete": True, "lowest_tried_pps": None if lower else upper and upper.load_pps})


def _bounds(rows: list[LoadEvidence]) -> Bounds:
    """The lowest load that failed, and the highest one below it that has not failed so far."""
    lower = None
    for row in rows:
        if row.bad_s > 0:
            return Bounds(lower, row)
        lower = row
    return Bounds(lower, None)


def _next_pps(bounds: Bounds, goal: Goal, min_load_pps: float, max_load_pps: float) -> float:
    if bounds.upper is None:
        return max_load_pps
    if bounds.lower is None and min_load_pps >= bounds.upper.load_pps * (1 - goal.relative_width):
        return min_load_pps
    lower_pps = bounds.lower.load_pps if bounds.lower else min_load_pps
    return (lower_pps + bounds.upper.load_pps) / 2
