"""Our own search: MLRsearch's goals and classification of loads, another choice of loads, trials that end early.

See docs/search.md for the method and for what was measured. `Controller` chooses, `Session` measures, and the result is
read from the trials alone, by `bounds`. Steps of a search:

1. Orientation. Without a prior, a few early-aborted trials at the highest load estimate what the system forwards.
2. For each goal the likely threshold t is estimated again after every trial. Rung t has to be proven a lower bound and
   rung t + 1 an upper bound; the trial goes to an undecided one of them.
3. Trials end early as soon as they are decided for all goals that may need their load.
4. A goal is complete when its relevant bounds are neighbours.

A *threshold* at rung t means: loads up to t meet the goal, loads above do not. Trials of real systems contradict any
threshold now and then. The likely threshold is the one that contradicts fewest trials; a guess adds a penalty for
thresholds that are far from it, of at most as much as a few contradicted trials. So a guess breaks ties, and trials
overrule it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp, floor, log

from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.goal import Goal, GoalResult, Prior, SearchProfile
from resources.libraries.python.search.algorithms.bounds import (
    GoalReading,
    LoadEvidence,
    best_known,
    effective_s,
    gather,
    informs,
    proven_bounds,
)
from resources.libraries.python.search.neighbours import Overload
from resources.libraries.python.search.session import Session

_HAIR = 1e-9
"""The width's share by which the step is smaller: rounding must not push neighbours apart."""


class Ladder:
    """Rungs from the lowest to the highest load.

    `min_load_pps`: Load of the bottom rung, aggregate.
    `max_load_pps`: Load of the top rung, aggregate.
    """

    def __init__(self, relative_width: float, min_load_pps: float, max_load_pps: float) -> None:
        self._step = -log(1 - relative_width) * (1 - _HAIR)
        self._min_load_pps, self._max_load_pps = min_load_pps, max_load_pps
        self.bottom = floor(log(min_load_pps) / self._step + _HAIR)
        self.top = ceil(log(max_load_pps) / self._step - _HAIR)

    def load_pps(self, rung: int) -> float:
        """The load of a rung."""
        if rung <= self.bottom:
            return self._min_load_pps
        return self._max_load_pps if rung >= self.top else exp(rung * self._step)

    def below(self, load_pps: float) -> int:
        """The highest rung that is not above a load; the bottom where none is."""
        if load_pps >= self._max_load_pps:
            return self.top
        if load_pps <= self._min_load_pps:
            return self.bottom
        return min(max(floor(log(load_pps) / self._step + _HAIR), self.bottom), self.top - 1)


PRIOR_WEIGHT, PRIOR_PER_RUNG = 4.0, 1.0
"""Four contradicted trials more than another threshold would have refute a prior."""
PREDICTION_WEIGHT, PREDICTION_PER_RUNG = 2.0, 0.5
"""Predictions by other cells are less certain than an earlier result of the same one."""
HINT_WEIGHT, HINT_PER_RUNG = 1.0, 0.25
"""Hints from overload are less certain: systems forward less in overload, or a little more."""
ORIENTATION_TRIALS = 5
"""So many that hardly ever all of them meet the low band of a system that runs in two bands."""
PROGRESS_WEIGHT = 0.25
"""Of guesses that come from earlier searches: where capacity varies, a search that follows each variation leaves loads
behind that are nearly decided. A search without them has to follow, as its first loads may be far off."""
NEAR = 3
"""Rungs around a goal's likely threshold that the goal may come to need."""
_WIDE = 4
"""Rungs; a range that is wider is halved, a narrower one is climbed."""
_APART = 1.005
"""Two loads of which a slope is taken differ by at least this factor."""


@dataclass(frozen=True, slots=True)
class Guess:
    """Expected threshold before it is proven."""

    rung: int
    weight: float
    """A threshold far from the guess costs as much as this number of contradicted trials."""
    per_rung: float
    """A near one costs this much for each rung of distance."""
    progress: float = 0.0
    """A good trial at a threshold, or a bad one on the next rung, outweighs so many contradicted trials."""

    def penalty(self, rung: int) -> float:
        """In contradicted trials."""
        return min(self.weight, self.per_rung * abs(rung - self.rung))


@dataclass(frozen=True, slots=True)
class ThresholdRange:
    """Thresholds between which no trial has decided so far."""

    lowest: int
    highest: int
    guessed: int | None
    """The one nearest to the guess; None when the guess is far, or there is none."""


@dataclass(slots=True)
class _Rung:
    evidence: LoadEvidence
    good: int = 0
    bad: int = 0
    reading: GoalReading = GoalReading.OPEN
    """By the goal's whole duration sum; changes with each trial only, and is asked for far more often."""


class GoalEvidence:
    """Evidence for one goal. Rungs below the ladder count as good, rungs above as bad."""

    def __init__(self, goal: Goal, ladder: Ladder) -> None:
        self.goal = goal
        self._ladder = ladder
        self._rungs: dict[int, _Rung] = {}
        self._relevant: tuple[int | None, int | None] | None = (None, None)
        self._likely: dict[Guess | None, list[ThresholdRange]] = {}
        """Both are found again after a trial."""

    def add(self, rung: int, loss_ratio: float, effective_s: float) -> None:
        """Count one trial of the goal's full length."""
        self._relevant = None
        self._likely.clear()
        row = self._rungs.setdefault(rung, _Rung(LoadEvidence(self._ladder.load_pps(rung))))
        if loss_ratio > self.goal.loss_ratio:
            row.bad += 1
            row.evidence.bad_s += effective_s
        else:
            row.good += 1
            row.evidence.good_s += effective_s
        row.reading = row.evidence.proven(self.goal)

    def reading(self, rung: int) -> GoalReading:
        """Whether a rung is decided, by the goal's whole duration sum."""
        if rung < self._ladder.bottom:
            return GoalReading.GOOD
        if rung > self._ladder.top:
            return GoalReading.BAD
        row = self._rungs.get(rung)
        return row.reading if row else GoalReading.OPEN

    def margin(self, rung: int) -> int | None:
        """Lead of one classification of a rung, in trials; None when it has no trials."""
        row = self._rungs.get(rung)
        return abs(row.good - row.bad) if row else None

    def _progress(self, threshold: int) -> int:
        """Trials that help to prove the bounds of a threshold."""
        lower, upper = self._rungs.get(threshold), self._rungs.get(threshold + 1)
        return (lower.good if lower else 0) + (upper.bad if upper else 0)

    def _parts(self, lowest: int, highest: int, guess: Guess | None) -> Iterator[tuple[int, int, float]]:
        """A range of thresholds that the same trials contradict, its ends apart where trials help to prove them.

        With what the progress there outweighs.
        """
        weight = guess.progress if guess else 0.0
        for end in dict.fromkeys((lowest, highest)) if weight else ():
            progress = weight * self._progress(end)
            if progress and lowest <= highest:
                yield end, end, progress
                lowest, highest = lowest + (end == lowest), highest - (end == highest)
        if lowest <= highest:
            yield lowest, highest, 0.0

    @property
    def relevant(self) -> tuple[int | None, int | None]:
        """Relevant bounds: the lowest bad rung, and the highest good one below it."""
        if self._relevant is None:
            self._relevant = self._read()
        return self._relevant

    def _read(self) -> tuple[int | None, int | None]:
        lower: int | None = None
        for rung in sorted(self._rungs):
            reading = self.reading(rung)
            if reading is GoalReading.BAD:
                return lower, rung
            if reading is GoalReading.GOOD:
                lower = rung
        return lower, None

    @property
    def complete(self) -> bool:
        """Whether relevant bounds are neighbours, or one of them is the end of the ladder."""
        lower, upper = self.relevant
        if lower == self._ladder.top or upper == self._ladder.bottom:
            return True
        return lower is not None and upper is not None and upper - lower == 1

    def likely(self, guess: Guess | None) -> list[ThresholdRange]:
        """Ranges of thresholds that contradict fewest trials, the guess included; never empty.

        What is proven is not contradicted: thresholds lie below the relevant upper bound and not below the lower one.
        """
        if guess not in self._likely:
            self._likely[guess] = self._least_contradicted(guess)
        return self._likely[guess]

    def _least_contradicted(self, guess: Guess | None) -> list[ThresholdRange]:
        lower, upper = self.relevant
        first = self._ladder.bottom - 1 if lower is None else lower
        last = self._ladder.top if upper is None else upper - 1
        edges = [self._ladder.bottom - 1, *sorted(self._rungs), self._ladder.top + 1]
        contradicted: float = sum([row.good for row in self._rungs.values()])
        weight = guess.progress if guess else 0.0
        best, found = float("inf"), list[ThresholdRange]()
        row: _Rung | None = None
        for one, other in pairwise(edges):
            if one > last:
                break
            if row:
                contradicted += row.bad - row.good
            above = self._rungs.get(other)
            most = weight * ((row.good if row else 0) + (above.bad if above else 0))  # that progress can outweigh
            row = above
            if other <= first or contradicted - most > best:  # most ranges of a long search
                continue
            lowest, highest = max(one, first), min(other - 1, last)
            for low, high, progress in self._parts(lowest, highest, guess) if most else ((lowest, highest, 0.0),):
                cost, guessed = contradicted - progress, None
                if guess is not None:
                    nearest = min(max(guess.rung, low), high)
                    penalty = guess.penalty(nearest)
                    cost += penalty
                    guessed = nearest if penalty < guess.weight else None
                if cost <= best:
                    found = found if cost == best else []
                    best = cost
                    found.append(ThresholdRange(low, high, guessed))
        return found


class LadderSearch:
    """One search.

    `prior`: From an earlier search, or from neighbours; left out unless it knows all goals.
    """

    def __init__(
        self,
        session: Session,
        profile: SearchProfile,
        frame: Frame,
        prior: Prior | None = None,
        from_overload: Overload | None = None,
    ) -> None:
        self._session, self._goals, self._frame, self._from_overload = session, profile.goals, frame, from_overload
        names = {goal.name for goal in profile.goals}
        self.prior = prior if prior is not None and names <= prior.lower_pps.keys() else None
        self.prior_refuted = False

    def run(self, min_load_pps: float, max_load_pps: float) -> tuple[GoalResult, ...]:
        """Search up to a highest load."""
        ladder = Ladder(min(goal.relative_width for goal in self._goals), min_load_pps, max_load_pps)
        controller = Controller(self._goals, ladder, self.prior, self._from_overload)
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


@dataclass(frozen=True, slots=True)
class NextTrial:
    """Load and duration of the next trial."""

    load_pps: float
    duration_s: float
    abort_loss_ratio: float


class Controller:
    """Chooses loads and takes in results.

    `goals`: What is searched; their order does not matter.
    `prior`: Lower bounds found earlier, or predicted; knows all goals.
    """

    def __init__(
        self,
        goals: Sequence[Goal],
        ladder: Ladder,
        prior: Prior | None = None,
        from_overload: Overload | None = None,
    ) -> None:
        self._ladder, self._from_overload = ladder, from_overload
        self._evidence = [GoalEvidence(goal, ladder) for goal in goals]
        self._points: list[LoadPoint] = []
        self._orienting = prior is None
        self._with_prior = prior is not None
        self._guesses: dict[str, Guess] = {}
        if prior is not None:
            own = prior.cells is None
            weight, per_rung = (PRIOR_WEIGHT, PRIOR_PER_RUNG) if own else (PREDICTION_WEIGHT, PREDICTION_PER_RUNG)
            self._guesses = {
                goal.name: Guess(ladder.below(prior.lower_pps[goal.name]), weight, per_rung, PROGRESS_WEIGHT)
                for goal in goals
            }
        self.prior_refuted = False

    def add(self, result: TrialResult) -> None:
        """Take in a trial that is evidence. Loads that are not on the ladder are left out."""
        trial, loss_ratio = result.trial, result.charged_loss_ratio
        rung = self._ladder.below(trial.load_pps)
        if loss_ratio is None or self._ladder.load_pps(rung) != trial.load_pps:
            return
        self._points.append(LoadPoint(trial.load_pps, result.forwarded_pps, lossy=loss_ratio > 0))
        for each in self._evidence:
            if informs(trial, each.goal) and trial.duration_s >= each.goal.final_trial_duration_s:
                each.add(rung, loss_ratio, effective_s(result))

    def next(self) -> NextTrial | None:
        """The next trial; None when all goals are complete."""
        open_goals = [each for each in self._evidence if not each.complete]
        if not open_goals:
            return None
        if self._with_prior and any(self._refutes(each) for each in open_goals):
            self._with_prior, self._orienting, self.prior_refuted, self._guesses = False, True, True, {}
        if self._orienting:
            if self._needs_orientation():
                return NextTrial(
                    self._ladder.load_pps(self._ladder.top),
                    max(each.goal.initial_trial_duration_s for each in self._evidence),
                    max(each.goal.loss_ratio for each in self._evidence),
                )
            self._orient()
        return self._choose(open_goals)

    def _refutes(self, evidence: GoalEvidence) -> bool:
        """Whether the trials speak for thresholds far from the prior."""
        guess = self._guesses.get(evidence.goal.name)
        return guess is not None and all(each.guessed is None for each in evidence.likely(guess))

    def _needs_orientation(self) -> bool:
        at_top = [point for point in self._points if point.load_pps == self._ladder.load_pps(self._ladder.top)]
        enough = 1 if self._from_overload is not None and self._from_overload.steady else ORIENTATION_TRIALS
        return len(at_top) < enough and all(point.lossy for point in at_top)

    def _orient(self) -> None:
        self._orienting = False
        top_pps = self._ladder.load_pps(self._ladder.top)
        for each in self._evidence:
            hint_pps = at_overload(self._points, top_pps, each.goal.loss_ratio)
            if hint_pps is not None:
                better_pps = (
                    self._from_overload.throughput_pps(each.goal.name, hint_pps) if self._from_overload else None
                )
                rung = self._ladder.below(better_pps or hint_pps)
                progress = PROGRESS_WEIGHT if better_pps else 0.0
                self._guesses[each.goal.name] = Guess(rung, HINT_WEIGHT, HINT_PER_RUNG, progress)

    def _choose(self, open_goals: Sequence[GoalEvidence]) -> NextTrial:
        thresholds = {each.goal.name: self._threshold(each) for each in open_goals}
        wanted: dict[int, list[GoalEvidence]] = {}
        for each in open_goals:
            threshold = thresholds[each.goal.name]
            for rung in (threshold, threshold + 1):
                if each.reading(rung) is GoalReading.OPEN:
                    wanted.setdefault(rung, []).append(each)
        rung = min(wanted, key=lambda each: _urgency(each, wanted[each]))
        needing = [
            each.goal
            for each in open_goals
            if each in wanted[rung] or -NEAR <= rung - thresholds[each.goal.name] <= NEAR + 1
        ]
        return NextTrial(
            self._ladder.load_pps(rung),
            max(each.goal.final_trial_duration_s for each in wanted[rung]),
            max(goal.loss_ratio for goal in needing),
        )

    def _threshold(self, evidence: GoalEvidence) -> int:
        """The likely threshold, one of those that contradict fewest trials."""
        ranges = evidence.likely(self._guesses.get(evidence.goal.name))
        guessed = [each.guessed for each in ranges if each.guessed is not None]
        if guessed:
            return guessed[0]
        hint_pps = crossing_pps(self._points, evidence.goal.loss_ratio)
        hint = None if hint_pps is None else self._ladder.below(hint_pps)
        target = self._ladder.top if hint is None else hint
        return min((self._inside(each, hint) for each in ranges), key=lambda rung: abs(rung - target))

    def _inside(self, each: ThresholdRange, hint: int | None) -> int:
        """A threshold in a range: the hint where it is in it, else one that halves a wide range."""
        if hint is None:
            return (each.lowest + each.highest + 1) // 2
        if hint >= each.lowest:
            return min(hint, each.highest)
        return (each.lowest + each.highest) // 2 if each.highest - each.lowest > _WIDE else each.lowest


def _urgency(rung: int, evidence: Sequence[GoalEvidence]) -> tuple[float, bool, int, int]:
    """Priority of a rung among those that goals need; the smallest is most urgent.

    1. Rungs that the goal with the largest loss ratio needs. It is complete first then, and trials at lower loads,
       which are there for other goals, end at the first lost packet and cannot shake it.
    2. Rungs without any trial: one there may move the threshold.
    3. Rungs on the brink, where good and bad trials differ least.
    4. Higher rungs: their trials end earlier, and from above fewer of them distinguish an accident from a bound.
    """
    margins = [each.margin(rung) for each in evidence]
    tried = [margin for margin in margins if margin is not None]
    loss_ratio = max(each.goal.loss_ratio for each in evidence)
    return -loss_ratio, len(tried) == len(margins), min(tried, default=0), -rung


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """Outcome of one trial at a load, complete or aborted."""

    load_pps: float
    forwarded_pps: float
    lossy: bool

    def excess_pps(self, loss_ratio: float) -> float:
        """Loss beyond the loss ratio."""
        return self.load_pps * (1 - loss_ratio) - self.forwarded_pps


def at_overload(points: Sequence[LoadPoint], load_pps: float, loss_ratio: float) -> float | None:
    """The load that fits the best of the trials at one (the highest) load, were all that is too much lost.

    The best and not the mean: a system that runs in two bands is expected in the better one, and a load that is too
    high costs less time than one that is too low, as its trials end early.
    """
    rates = [point.forwarded_pps for point in points if point.load_pps == load_pps]
    return max(rates) / (1 - loss_ratio) if rates else None


def overload_rates_pps(trials: Sequence[TrialResult], max_load_pps: float) -> tuple[float, ...]:
    """Forwarded rates in the trials of a search at its highest load, where packets were lost."""
    return tuple(
        result.forwarded_pps
        for result in trials
        if result.is_evidence and result.trial.load_pps == max_load_pps and (result.charged_loss_ratio or 0) > 0
    )


def crossing_pps(points: Sequence[LoadPoint], loss_ratio: float) -> float | None:
    """The load at which losses reach the loss ratio, extrapolated from the lowest loads that exceeded it.

    The secant through two such trials; with one, or where the secant does not fall towards lower loads, the line on
    which every packet too many is lost. None when no trial has exceeded the ratio.
    """
    beyond = [(point.load_pps, point.excess_pps(loss_ratio)) for point in points if point.lossy]
    beyond = [each for each in beyond if each[1] > 0]
    if not beyond:
        return None
    load_pps, excess_pps = min(beyond)
    slope = 1 - loss_ratio
    further = [each for each in beyond if each[0] > load_pps * _APART]
    if further:
        other_pps, other_excess_pps = min(further)
        secant = (other_excess_pps - excess_pps) / (other_pps - load_pps)
        slope = secant if secant > 0 else slope
    return max(0.0, load_pps - excess_pps / slope)
