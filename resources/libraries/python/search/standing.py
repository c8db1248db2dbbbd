"""Standing of one goal after the trials on a ladder: bounds, and the likely threshold.

A *threshold* at rung t means: loads up to t meet the goal, loads above do not. Trials of real systems contradict any
threshold now and then. The likely threshold is the one that contradicts fewest trials; a guess adds to that a penalty
for thresholds that are far from it, of at most as much as a few contradicted trials. So a guess breaks ties and bridges
accidents, and trials overrule it.
"""

from dataclasses import dataclass
from itertools import pairwise

from resources.libraries.python.model.goal import Goal
from resources.libraries.python.search.bounds import GoalReading, LoadEvidence
from resources.libraries.python.search.ladder import Ladder


@dataclass(frozen=True, slots=True)
class Guess:
    """Expected threshold before it is proven."""

    rung: int
    weight: float
    """A threshold far from the guess costs as much as this number of contradicted trials."""
    per_rung: float
    """A near one costs this much for each rung of distance."""

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


class GoalEvidence:
    """Evidence for one goal. Rungs below the ladder count as good, rungs above as bad."""

    def __init__(self, goal: Goal, ladder: Ladder) -> None:
        self.goal = goal
        self._ladder = ladder
        self._rungs: dict[int, _Rung] = {}

    def add(self, rung: int, loss_ratio: float, effective_s: float) -> None:
        """Count one trial of the goal's full length."""
        row = self._rungs.setdefault(rung, _Rung(LoadEvidence(self._ladder.load_pps(rung))))
        if loss_ratio > self.goal.loss_ratio:
            row.bad += 1
            row.evidence.bad_s += effective_s
        else:
            row.good += 1
            row.evidence.good_s += effective_s

    def reading(self, rung: int) -> GoalReading:
        """Whether a rung is decided, by the goal's whole duration sum."""
        if rung < self._ladder.bottom:
            return GoalReading.GOOD
        if rung > self._ladder.top:
            return GoalReading.BAD
        row = self._rungs.get(rung)
        return row.evidence.proven(self.goal) if row else GoalReading.OPEN

    def margin(self, rung: int) -> int | None:
        """Lead of one classification of a rung, in trials; None when it has no trials."""
        row = self._rungs.get(rung)
        return abs(row.good - row.bad) if row else None

    @property
    def relevant(self) -> tuple[int | None, int | None]:
        """Relevant bounds: the lowest bad rung, and the highest good one below it."""
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
        lower, upper = self.relevant
        first = self._ladder.bottom - 1 if lower is None else lower
        last = self._ladder.top if upper is None else upper - 1
        edges = [self._ladder.bottom - 1, *sorted(self._rungs), self._ladder.top + 1]
        contradicted: float = sum(row.good for row in self._rungs.values())
        best, found = float("inf"), list[ThresholdRange]()
        for one, other in pairwise(edges):
            if one in self._rungs:
                contradicted += self._rungs[one].bad - self._rungs[one].good
            lowest, highest = max(one, first), min(other - 1, last)
            if highest < lowest:
                continue
            cost, guessed = contradicted, None
            if guess is not None:
                nearest = min(max(guess.rung, lowest), highest)
                cost += guess.penalty(nearest)
                guessed = nearest if guess.penalty(nearest) < guess.weight else None
            if cost <= best:
                found = found if cost == best else []
                best = cost
                found.append(ThresholdRange(lowest, highest, guessed))
        return found
