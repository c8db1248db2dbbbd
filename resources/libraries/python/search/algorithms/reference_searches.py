"""Reference searches: plain MLRsearch (draft-ietf-bmwg-mlrsearch, the library of that name) and RFC 2544's binary one.

Units: our trials and results carry aggregate rates of both directions, the library's loads are per port, one direction.
They are converted in `_Measurer.measure` and `_goal_result`, by `DIRECTIONS`, and nowhere else.

Decisions where the library of MLRsearch leaves a choice:

- A trial counts towards a duration sum with its overhead, as in CSIT (see `bounds.effective_s`).
- The library distinguishes long from short trials by the *intended* duration, so it gets that, whatever the
  generator made of it.
- The library derives its grid of loads from the lowest and highest load. Both stay fixed within a search.
- Bounds are the library's; the conditional throughput at the lower bound is our own (see `bounds.LoadEvidence`).
- A goal that no load meets is a result: `lower_pps` None, `lowest_tried_pps` given.
- The library's time limit is real time and discards all results, so it is set out of reach; `Session` keeps ours.

In the binary search after RFC 2544 (26.1 throughput, 24 trial duration) one trial of full length decides. The RFC
allows shorter trials on the way and asks for the final determination with full length. So a load is first tried for the
goal's initial duration; the lower bound has to pass a trial of the final duration as well. A trial that fails has
failed whatever its length, and ends early. Loads are halved arithmetically, from the highest load down, until the
bounds are as close as the goal's relative width. Goals are searched one after the other, and share trials: the goal
with the least loss comes first, and its lower bound is one of the next goal, which is searched from there on.
"""

from collections.abc import Sequence
from math import inf

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal
from MLRsearch import GoalResult as LibraryResult

from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.goal import Goal, GoalResult, SearchProfile
from resources.libraries.python.search.algorithms.bounds import Bounds, GoalReading, LoadEvidence, gather, proven_bounds
from resources.libraries.python.search.session import Session

DIRECTIONS = 2


class _Measurer(AbstractMeasurer):  # type: ignore[misc]
    """Trials in the library's terms: load per port, counts of all ports."""

    def __init__(self, session: Session, frame: Frame) -> None:
        self._session = session
        self._frame = frame

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """Run one trial at a load per port."""
        trial = Trial(load_pps=intended_load * DIRECTIONS, duration_s=intended_duration, frame=self._frame)
        result, counted_s = self._session.run(trial)
        # A packet that came twice must not hide nor count as a lost one.
        lost = max(0, result.sent - result.received)
        return MeasurementResult(
            intended_duration,
            intended_load,
            offered_count=result.sent,
            loss_count=lost,
            intended_count=result.sent + (result.unsent or 0),
            duration_with_overheads=counted_s,
        )


def search_by_library(
    session: Session, profile: SearchProfile, frame: Frame, min_load_pps: float, max_load_pps: float
) -> tuple[GoalResult, ...]:
    """Run the library once."""
    wanted = {goal.name: _library_goal(goal) for goal in profile.goals}
    config = Config()
    # Equal goals are one to the library, whatever we call them.
    config.goals = list(dict.fromkeys(wanted.values()))
    # The highest load is refused below the lowest one, which is 9001 pps until it is set.
    config.min_load, config.max_load = min_load_pps / DIRECTIONS, max_load_pps / DIRECTIONS
    config.search_duration_max = inf
    config.warmup_duration = 0.0
    found = MultipleLossRatioSearch(config).search(_Measurer(session, frame))
    return tuple(_goal_result(goal, found[wanted[goal.name]], session.trials) for goal in profile.goals)


def _library_goal(goal: Goal) -> SearchGoal:
    return SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=goal.relative_width,
        initial_trial_duration=goal.initial_trial_duration_s,
        final_trial_duration=goal.final_trial_duration_s,
        duration_sum=goal.duration_sum_s,
        fail_fast=False,
    )


def _goal_result(goal: Goal, found: LibraryResult, trials: Sequence[TrialResult]) -> GoalResult:
    """The library's bounds for one goal in aggregate rates, and our throughput at the lower one."""
    per_port = (found.relevant_lower_bound, found.relevant_upper_bound)
    lower_pps, upper_pps = (None if load is None else float(load) * DIRECTIONS for load in per_port)
    throughput_pps = next((row.throughput_pps(goal) for row in gather(trials, goal) if row.load_pps == lower_pps), None)
    return GoalResult(
        goal=goal,
        lower_pps=lower_pps,
        upper_pps=upper_pps,
        throughput_pps=throughput_pps,
        complete=True,
        lowest_tried_pps=upper_pps if lower_pps is None else None,
    )


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
    known: LoadEvidence | None = None
    for goal in sorted(profile.goals, key=lambda goal: goal.loss_ratio):
        known = _search(session, goal, frame, min_load_pps, max_load_pps, known) or known
    found = ((goal, proven_bounds(_rows(session, goal, max_load_pps), goal)) for goal in profile.goals)
    return tuple(bounds.answer(goal, complete=True, lowest_tried_pps=bounds.pair[1]) for goal, bounds in found)


def _rows(session: Session, goal: Goal, max_load_pps: float) -> list[LoadEvidence]:
    return gather((result for result in session.trials if result.trial.load_pps <= max_load_pps), goal)


def _search(  # noqa: PLR0917 - those of `binary_search`, for one goal
    session: Session,
    goal: Goal,
    frame: Frame,
    min_load_pps: float,
    max_load_pps: float,
    known: LoadEvidence | None,
) -> LoadEvidence | None:
    """Run the trials of one goal; return its lower bound, which is at least that of a goal with less loss."""

    def run(load_pps: float, duration_s: float) -> None:
        session.run(Trial(load_pps=load_pps, duration_s=duration_s, frame=frame, abort_loss_ratio=goal.loss_ratio))

    while True:
        rows = _rows(session, goal, max_load_pps)
        if known is not None:
            rows = [known, *(row for row in rows if row.load_pps > known.load_pps)]
        bounds = _bounds(rows)
        lower, upper = bounds.lower, bounds.upper
        at_end = upper is None and lower is not None and lower.load_pps >= max_load_pps
        if lower is not None and (at_end or bounds.narrow(goal)):
            if lower is known or lower.proven(goal) is GoalReading.GOOD:
                return lower
            run(lower.load_pps, goal.final_trial_duration_s)
        elif lower is None and upper is not None and upper.load_pps <= min_load_pps:
            return None
        else:
            run(_next_pps(bounds, goal, min_load_pps, max_load_pps), goal.initial_trial_duration_s)


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
