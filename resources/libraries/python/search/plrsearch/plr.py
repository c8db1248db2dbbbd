"""Critical load by PLRsearch (draft-vpolak-bmwg-plrsearch-03): the load whose mean loss ratio is the goal's, estimated.

Where `soak` decides loads by whether they kept a loss ratio, this fits two functions of mean loss over load to all
trials by Bayesian inference (see `plr_inference`), and reports the mean and the standard deviation of the load at which
they reach the ratio. So it speaks of loss ratios far below what a single trial can show, as far as the functions fit.

Loads, after the draft: the middle of the range, its top, twice what came back; then the present estimate. Trials
without loss far below the critical load teach little, so after each of them the estimate is drawn towards the smallest
load that lost enough, with a weight that doubles from one such trial to the next. Each trial is a tenth of a second
longer than the one before. The search ends at its time limit.
"""

from resources.libraries.python.model.cell import Frame
from resources.libraries.python.model.goal import GoalResult, LoadEstimate, Prior, SearchProfile
from resources.libraries.python.model.trial import Trial, TrialResult
from resources.libraries.python.search.plrsearch.inference import Inference, Observation
from resources.libraries.python.search.session import Session, TimeUp

PURPOSE = "plr"
_LONGER_S = 0.1
_ADDED, _DRAINED = 4, 3
"""Copies of a load that lost enough for each trial without such a loss before it; copies that each of these uses up."""
_BY_RATE = 4
"""From this trial on loads are chosen by the estimate."""


class Plr:
    """A search of the one goal of a profile.

    Raises:
        ValueError: There is not exactly one goal, or it allows no loss at all.
    """

    def __init__(self, session: Session, profile: SearchProfile, frame: Frame) -> None:
        if len(profile.goals) != 1 or not profile.goals[0].loss_ratio:
            raise ValueError("PLRsearch has one goal, with a loss ratio above 0")
        self._session, self._frame, self._goal = session, frame, profile.goals[0]
        self.prior: Prior | None = None
        self.prior_refuted = False
        self.estimate: LoadEstimate | None = None

    def run(self, min_load_pps: float, max_load_pps: float) -> tuple[GoalResult, ...]:
        """Search up to a highest load until the time is over; `estimate` is what was found."""
        inference = Inference(self._goal.loss_ratio, min_load_pps, max_load_pps)
        lossy, without = [max_load_pps], 0
        load_pps, duration_s = (min_load_pps + max_load_pps) / 2, self._goal.final_trial_duration_s
        while True:
            trial = Trial(load_pps=load_pps, duration_s=duration_s, frame=self._frame, purpose=PURPOSE)
            try:
                result, _ = self._session.run(trial)
            except TimeUp:
                return ()
            seen = _observation(result)
            self.estimate = inference.add(seen)
            if seen.lost >= self._goal.loss_ratio * seen.intended:
                lossy = sorted([*lossy, *[load_pps] * (_ADDED * (without + 1))])
                without = 0
            else:
                without += 1
            load_pps = min(max_load_pps, max(min_load_pps, self._next_pps(result, lossy, without, max_load_pps)))
            if without and len(inference.seen) >= _BY_RATE and len(lossy) > _DRAINED:
                lossy = lossy[_DRAINED:]
            duration_s += _LONGER_S

    def known(self, max_load_pps: float) -> tuple[GoalResult, ...]:  # noqa: ARG002 - it has no bounds
        """Nothing: the estimate is all that is found."""
        return ()

    def _next_pps(self, result: TrialResult, lossy: list[float], without: int, max_load_pps: float) -> float:
        done = sum(each.trial.purpose == PURPOSE and each.is_evidence for each in self._session.trials)
        if done == 1:
            return max_load_pps
        if done < _BY_RATE or self.estimate is None:
            return result.forwarded_pps / (1 - self._goal.loss_ratio)
        load_pps = self.estimate.mean_pps
        if without and lossy[0] > load_pps:
            weight = 2.0 ** (1 - without)
            load_pps = (lossy[0] + weight * load_pps) / (1 + weight)
        return load_pps


def _observation(result: TrialResult) -> Observation:
    lost, unsent = max(0, result.sent - result.received), result.unsent or 0
    return Observation(result.trial.load_pps, result.sent + unsent, lost + unsent)
