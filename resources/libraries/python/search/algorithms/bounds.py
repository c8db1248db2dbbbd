"""Our own reading of trials: which loads meet a goal, which do not.

Follows the load classification of draft-ietf-bmwg-mlrsearch without its short trials: a load is a lower bound once so
much of the goal's duration sum has passed in good trials that bad ones can no longer exceed the exceed ratio, an upper
bound once bad trials have exceeded it. The library that searches decides by the same rule; this copy is for what it
does not tell: bounds while it runs, and bounds of a search that was cut short.

All rates are aggregates of both directions in packets per second.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from math import inf

from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.goal import Goal, GoalResult

_ROUNDING_S = 1e-6
"""Durations that differ by less are equal."""


def effective_s(result: TrialResult) -> float:
    """Seconds that a trial counts towards a duration sum (the draft's Trial Effective Duration).

    The trial's whole time, overhead included, as in CSIT: so our evidence per load is CSIT's, and search time hardly
    depends on overhead. The price: a generator with less overhead takes more trials for the same decision. A trial that
    was ended early counts as if it had run to its end: it is as bad as it would have been, and must not weigh less.
    """
    return max(result.total_duration_s + _cut_s(result), result.trial.duration_s)


def overhead_s(result: TrialResult) -> float:
    """Duration of a trial besides sending."""
    return max(0.0, result.total_duration_s + _cut_s(result) - result.trial.duration_s)


def _cut_s(result: TrialResult) -> float:
    """Seconds that an early end has saved."""
    return max(0.0, result.trial.duration_s - result.offered_duration_s) if result.aborted else 0.0


def informs(trial: Trial, goal: Goal) -> bool:
    """Whether a trial could show what a goal asks: not one that was to end before the goal's loss ratio was exceeded.

    Decided by what was intended, never by what came out. Else good trials at a load would count and bad ones not.
    """
    return trial.abort_loss_ratio is None or trial.abort_loss_ratio >= goal.loss_ratio


class GoalReading(Enum):
    """Verdict of the trials at one load about one goal."""

    GOOD = "lower bound"
    BAD = "upper bound"
    OPEN = "not decided"


@dataclass(slots=True)
class LoadEvidence:
    """Trials at one load, as one goal sees them."""

    load_pps: float
    good_s: float = 0.0
    bad_s: float = 0.0
    losses: list[tuple[float, float]] = field(default_factory=list)
    """Loss ratio and effective duration of each trial."""

    def proven(self, goal: Goal) -> GoalReading:
        """Decided by the goal's whole duration sum."""
        total_s = max(self.good_s + self.bad_s, goal.duration_sum_s)
        allowed_s = total_s * goal.exceed_ratio
        if self.bad_s > allowed_s:
            return GoalReading.BAD
        return GoalReading.GOOD if total_s - self.good_s <= allowed_s else GoalReading.OPEN

    def likely(self, goal: Goal) -> GoalReading:
        """Decided by the trials so far, as if there were no more to come."""
        exceeded = self.bad_s > (self.good_s + self.bad_s) * goal.exceed_ratio
        return GoalReading.BAD if exceeded else GoalReading.GOOD

    def missing_s(self, goal: Goal) -> float:
        """Trial time until the load is decided, if further trials go as most have gone so far."""
        if self.proven(goal) is not GoalReading.OPEN:
            return 0.0
        if self.likely(goal) is GoalReading.BAD:
            return max(0.0, goal.duration_sum_s * goal.exceed_ratio - self.bad_s)
        return max(0.0, goal.duration_sum_s * (1 - goal.exceed_ratio) - self.good_s)

    def throughput_pps(self, goal: Goal) -> float:
        """Conditional throughput: the load less the loss ratio that the goal's exceed ratio leaves over.

        Of a proven lower bound that is a quantile over the whole duration sum, in which trials not made count as lost,
        otherwise one over the trials there are. The library sums durations without regard to rounding, and so at
        times takes the loss of a trial that was not made.
        """
        total_s = self.good_s + self.bad_s
        if self.proven(goal) is GoalReading.GOOD:
            total_s = max(total_s, goal.duration_sum_s)
        left_s = total_s * (1 - goal.exceed_ratio) - _ROUNDING_S
        quantile = 0.0
        for loss_ratio, duration_s in sorted(self.losses):
            quantile = loss_ratio
            left_s -= duration_s
            if left_s <= 0:
                break
        return self.load_pps * (1 - quantile)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Relevant bounds: the lowest bad load, and the highest good load below it."""

    lower: LoadEvidence | None
    upper: LoadEvidence | None

    @property
    def pair(self) -> tuple[float | None, float | None]:
        """Both loads in pps."""
        return (
            self.lower.load_pps if self.lower else None,
            self.upper.load_pps if self.upper else None,
        )

    def answer(self, goal: Goal, *, complete: bool, lowest_tried_pps: float | None) -> GoalResult:
        """The same as the result of a goal."""
        lower_pps, upper_pps = self.pair
        return GoalResult(
            goal=goal,
            lower_pps=lower_pps,
            upper_pps=upper_pps,
            throughput_pps=self.lower.throughput_pps(goal) if self.lower else None,
            complete=complete,
            lowest_tried_pps=lowest_tried_pps if self.lower is None else None,
        )

    def narrow(self, goal: Goal) -> bool:
        """Whether both are there and as close as the goal asks (width relative to the upper bound)."""
        if self.lower is None or self.upper is None:
            return False
        return self.lower.load_pps >= self.upper.load_pps * (1 - goal.relative_width) * (1 - 1e-9)


def gather(results: Iterable[TrialResult], goal: Goal) -> list[LoadEvidence]:
    """Sort trials by load for one goal. Trials that say nothing about the system under test are left out.

    What the generator did not send in a trial that is charged counts as lost. Left out are also trials that were to end
    too early for this goal (see `informs`), and trials shorter than the goal's final duration, once there is one long
    enough at the same load.
    """
    by_load: dict[float, list[tuple[TrialResult, float]]] = defaultdict(list)
    for result in results:
        if informs(result.trial, goal) and result.is_evidence and (loss_ratio := result.loss_ratio) is not None:
            charged = result.charged_loss_ratio if result.unsent else loss_ratio
            by_load[result.trial.load_pps].append((result, charged or 0.0))
    rows = []
    for load_pps, group in sorted(by_load.items()):
        long = [each for each in group if each[0].trial.duration_s >= goal.final_trial_duration_s]
        row = LoadEvidence(load_pps)
        for result, loss_ratio in long or group:
            duration_s = effective_s(result)
            row.losses.append((loss_ratio, duration_s))
            if loss_ratio > goal.loss_ratio:
                row.bad_s += duration_s
            else:
                row.good_s += duration_s
        rows.append(row)
    return rows


def in_order(results: Iterable[GoalResult]) -> tuple[GoalResult, ...]:
    """Raise the lower bound of a goal, and its throughput there, to those of a goal that permits less loss.

    What is proven with less loss is proven with more. But each goal counts trials that may not count for the other: a
    trial for NDR that ends with the first lost packet says nothing about PDR. Bounds that contradict each other stay.
    """
    results = tuple(results)
    found = []
    for result in results:
        stricter = [
            (each.lower_pps, each.throughput_pps or 0.0)
            for each in results
            if each.goal.loss_ratio < result.goal.loss_ratio
            and each.goal.exceed_ratio <= result.goal.exceed_ratio
            and each.lower_pps is not None
            and (result.lower_pps or 0.0) <= each.lower_pps < (result.upper_pps or inf)
            and each.complete >= result.complete
        ]
        if stricter:
            lower_pps, throughput_pps = max(stricter)
            best_pps = max(throughput_pps, result.throughput_pps or 0.0)
            update = {"lower_pps": lower_pps, "throughput_pps": best_pps, "lowest_tried_pps": None}
            found.append(result.model_copy(update=update))
        else:
            found.append(result)
    return tuple(found)


def proven_bounds(rows: Iterable[LoadEvidence], goal: Goal) -> Bounds:
    """Bounds with all the evidence that the goal asks for. `rows` ascend by load."""
    return _relevant((row, row.proven(goal)) for row in rows)


def likely_bounds(rows: Iterable[LoadEvidence], goal: Goal) -> Bounds:
    """Bounds by the trials so far. `rows` ascend by load."""
    return _relevant((row, row.likely(goal)) for row in rows)


def _relevant(readings: Iterable[tuple[LoadEvidence, GoalReading]]) -> Bounds:
    lower = None
    for row, reading in readings:
        if reading is GoalReading.BAD:
            return Bounds(lower, row)
        if reading is GoalReading.GOOD:
            lower = row
    return Bounds(lower, None)


def best_known(results: Iterable[TrialResult], goal: Goal) -> GoalResult:
    """Return the result of a goal from the trials of a search that did not finish."""
    rows = gather(results, goal)
    proven = proven_bounds(rows, goal)
    complete = proven.narrow(goal)
    found = proven if complete else likely_bounds(rows, goal)
    return found.answer(goal, complete=complete, lowest_tried_pps=rows[0].load_pps if rows else None)
