"""Our own search: MLRsearch's goals and classification of loads, another choice of loads, trials that end early.

See docs/search.md for the method and for what was measured. `Controller` chooses, `Session` measures, and the result is
read from the trials alone, by `bounds`.
"""

from collections.abc import Sequence

from resources.libraries.python.model.cell import Frame
from resources.libraries.python.model.goal import Goal, GoalResult, LoadEstimate, Prior, SearchProfile
from resources.libraries.python.model.trial import Trial, TrialResult
from resources.libraries.python.search.bounds import best_known, gather, proven_bounds
from resources.libraries.python.search.controller import Controller
from resources.libraries.python.search.ladder import Ladder
from resources.libraries.python.search.session import Session


class LadderSearch:
    """One search.

    Args:
        session: Runs trials.
        profile: Goals.
        frame: Of all trials.
        prior: From an earlier search; left out unless it knows all goals.
    """

    def __init__(self, session: Session, profile: SearchProfile, frame: Frame, prior: Prior | None = None) -> None:
        self._session, self._goals, self._frame = session, profile.goals, frame
        names = {goal.name for goal in profile.goals}
        self.prior = prior if prior is not None and names <= prior.lower_pps.keys() else None
        self.prior_refuted = False
        self.estimate: LoadEstimate | None = None

    def run(self, min_load_pps: float, max_load_pps: float) -> tuple[GoalResult, ...]:
        """Search up to a highest load."""
        ladder = Ladder(min(goal.relative_width for goal in self._goals), min_load_pps, max_load_pps)
        hints = {goal.name: self.prior.lower_pps[goal.name] for goal in self._goals} if self.prior else None
        controller = Controller(self._goals, ladder, hints)
        while (choice := controller.next()) is not None:
            trial = Trial(
                load_pps=choice.load_pps,
                duration_s=choice.duration_s,
                frame=self._frame,
                abort_loss_ratio=choice.abort_loss_ratio,
            )
            result, _ = self._session.run(trial)
            controller.add(result)
            self.prior_refuted = controller.prior_refuted
        return tuple(_goal_result(goal, self._session.trials, max_load_pps) for goal in self._goals)

    def known(self, max_load_pps: float) -> tuple[GoalResult, ...]:  # noqa: ARG002 - loads above it count as well
        """Return the result from the trials so far."""
        return tuple(best_known(self._session.trials, goal) for goal in self._goals)


def _goal_result(goal: Goal, trials: Sequence[TrialResult], max_load_pps: float) -> GoalResult:
    rows = [row for row in gather(trials, goal) if row.load_pps <= max_load_pps]
    found = proven_bounds(rows, goal)
    return found.answer(goal, complete=True, lowest_tried_pps=found.pair[1])
