"""Soak: the highest load that keeps a small loss ratio over minutes.

A load is decided by a *series*: trials of the goal's final duration, one after the other, until they add up to the
goal's duration sum. It has held when no more than the goal's loss ratio of all packets of the series was lost, and it
has failed as soon as more is lost for certain; the trial in which that happens ends at once.

1. A short search on the ladder (`ORIENTATION`) finds where to start.
2. Series at that rung; after one that fails 1, 2, 4, … rungs lower, after one that holds 1, 2, 4, … rungs higher.
3. Between a rung that held and one that failed rungs are halved until they are neighbours.

FD.io CSIT's soak tests fit a model of loss to trials at many loads (PLRsearch) and report where it crosses the ratio.
Here nothing is extrapolated: the loss ratio was kept, or it was not, at the load that is reported, over the time that
is said.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.goal import (
    Algorithm,
    Goal,
    GoalResult,
    LoadEstimate,
    Prior,
    SearchProfile,
)
from resources.libraries.python.search.algorithms.ladder import Ladder
from resources.libraries.python.search.algorithms.laddersearch import LadderSearch
from resources.libraries.python.search.session import Session

PURPOSE = "soak"
_ORIENTATION_S = 1.0
_ORIENTATION_TRIALS = 6
_EXACT = 1 - 1e-9


@dataclass(slots=True)
class SoakSeries:
    """All trials of a series at one load."""

    load_pps: float
    seconds: float = 0.0
    sent: int = 0
    lost: int = 0

    def allowed(self, goal: Goal) -> float:
        """Packets that may still be lost in the rest of the series."""
        return goal.loss_ratio * self.load_pps * goal.duration_sum_s - self.lost

    def failed(self, goal: Goal) -> bool:
        """More is lost than the whole series may lose."""
        return self.allowed(goal) < 0

    def held(self, goal: Goal) -> bool:
        """The series is over and has not failed."""
        return not self.failed(goal) and self.seconds >= goal.duration_sum_s * _EXACT


def series_of(trials: Iterable[TrialResult]) -> dict[float, SoakSeries]:
    """Series by load, of the trials that belong to one."""
    found: dict[float, SoakSeries] = defaultdict(lambda: SoakSeries(0.0))
    for result in trials:
        if result.trial.purpose == PURPOSE and result.is_evidence:
            series = found[result.trial.load_pps]
            series.load_pps = result.trial.load_pps
            series.seconds += result.offered_duration_s if result.aborted else result.trial.duration_s
            unsent = result.unsent or 0
            series.sent += result.sent + unsent
            series.lost += max(0, result.sent - result.received) + unsent
    return dict(found)


class Soak:
    """A soak search of the one goal of a profile.

    Raises:
        ValueError: There is not exactly one goal.
    """

    def __init__(self, session: Session, profile: SearchProfile, frame: Frame) -> None:
        if len(profile.goals) != 1:
            raise ValueError(f"a soak search has one goal, not {len(profile.goals)}")
        self._session, self._frame, self._goal = session, frame, profile.goals[0]
        self._orientation = LadderSearch(session, _orientation(profile), frame)
        self.prior: Prior | None = None
        self.prior_refuted = False
        self.estimate: LoadEstimate | None = None

    def run(self, min_load_pps: float, max_load_pps: float) -> tuple[GoalResult, ...]:
        """Search up to a highest load."""
        ladder = Ladder(self._goal.relative_width, min_load_pps, max_load_pps)
        (start,) = self._orientation.run(min_load_pps, max_load_pps)
        rung, step = ladder.below(start.lower_pps or min_load_pps), 1
        held: int | None = None
        failed: int | None = None
        while True:
            if self._series(ladder.load_pps(rung)):
                held = rung if held is None else max(held, rung)
            else:
                failed = rung if failed is None else min(failed, rung)
            if held is not None and failed is not None:
                if failed - held <= 1:
                    break
                rung = (held + failed) // 2
            elif rung in (ladder.bottom, ladder.top) and (held == ladder.top or failed == ladder.bottom):
                break
            else:
                rung = min(max(rung + (step if failed is None else -step), ladder.bottom), ladder.top)
                step *= 2
        return tuple(each.model_copy(update={"complete": True}) for each in self.known(max_load_pps))

    def known(self, max_load_pps: float) -> tuple[GoalResult, ...]:
        """Return the incomplete result from the series so far."""
        series = [each for each in series_of(self._session.trials).values() if each.load_pps <= max_load_pps]
        upper_pps = min((each.load_pps for each in series if each.failed(self._goal)), default=None)
        below = [each for each in series if upper_pps is None or each.load_pps < upper_pps]
        lower = max((each for each in below if each.held(self._goal)), key=lambda each: each.load_pps, default=None)
        result = GoalResult(
            goal=self._goal,
            lower_pps=lower.load_pps if lower else None,
            upper_pps=upper_pps,
            throughput_pps=lower.load_pps * (1 - lower.lost / lower.sent) if lower else None,
            complete=False,
            lowest_tried_pps=None if lower else min((each.load_pps for each in series), default=None),
        )
        return (result,)

    def _series(self, load_pps: float) -> bool:
        """Run a series; return whether it held."""
        while True:
            series = series_of(self._session.trials).get(load_pps, SoakSeries(load_pps))
            if series.failed(self._goal):
                return False
            if series.held(self._goal):
                return True
            duration_s = min(self._goal.final_trial_duration_s, self._goal.duration_sum_s - series.seconds)
            share = series.allowed(self._goal) / (load_pps * duration_s)
            trial = Trial(
                load_pps=load_pps,
                duration_s=duration_s,
                frame=self._frame,
                abort_loss_ratio=share if share < 1 else None,
                purpose=PURPOSE,
            )
            self._session.run(trial)


def _orientation(profile: SearchProfile) -> SearchProfile:
    """The profile with a goal that takes seconds instead of minutes."""
    goal = profile.goals[0].model_copy(
        update={
            "exceed_ratio": 0.5,
            "initial_trial_duration_s": _ORIENTATION_S,
            "final_trial_duration_s": _ORIENTATION_S,
            "duration_sum_s": _ORIENTATION_S * _ORIENTATION_TRIALS,
        }
    )
    return profile.model_copy(update={"algorithm": Algorithm.LADDER, "goals": (goal,)})
