"""Re-goal: what the trials of a search say about goals that it did not search.

Tools define NDR and PDR differently, so that figures of two tools are not comparable. The trials of a record show for
each load how much was lost in how much time. Bounds for another definition follow from that, or the number of trials
that are missing. Loads are classified as in draft-ietf-bmwg-mlrsearch (becoming RFC 9971) by trials of at least the
goal's duration. Shorter trials give a bound by two facts:

- A trial that loses more packets than a full-length trial may lose makes the full-length trial that contains it fail.
- A full-length trial composed of trials within the goal's loss ratio passes.

The share of such trials at a load has a confidence interval (Clopper and Pearson, one-sided 95 %), from which the
probability follows that enough of the goal's trials fail, or pass. This assumes that trials are independent of each
other: where losses come in groups, a full-length trial passes more often than assumed, so that an upper bound by
shorter trials may be too low.

All rates are aggregates of both directions in packets per second.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import ValidationError

from csit_utils.dataset.items import ImportedTrial
from resources.libraries.python import special_functions
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import reason_of_value
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.goal import Goal
from resources.libraries.python.search.algorithms.bounds import GoalReading, LoadEvidence, effective_s, informs
from resources.libraries.python.search.profiles import LADDER

_CONFIDENCE = 0.95
_SHORTEST_S, _LONGEST_S = 1e-3, 1e6
"""Bounds of the durations that a user may ask for; so an answer has at most 10^9 trials."""
_EQUAL = 1 + 1e-9
"""Durations and loads that differ by a smaller factor are equal."""


@dataclass(frozen=True, slots=True)
class OtherGoal:
    """A definition of a throughput figure, and where it comes from."""

    goal: Goal
    source: str


def _single_trial(name: str, loss_ratio: float, duration_s: float, width: float) -> Goal:
    return Goal(
        name=name,
        loss_ratio=loss_ratio,
        exceed_ratio=0.0,
        relative_width=width,
        initial_trial_duration_s=duration_s,
        final_trial_duration_s=duration_s,
        duration_sum_s=duration_s,
    )


_RFC2544 = _single_trial("rfc2544", 0.0, 60.0, 0.005)
GOALS = tuple(
    OtherGoal(goal, source)
    for goal, source in (
        *(
            (goal.model_copy(update={"name": f"csit-{goal.name.lower()}"}), f"FD.io CSIT, {goal.name}")
            for goal in LADDER.goals
        ),
        (_RFC2544, "RFC 2544, 26.1 and 24"),
        (
            _RFC2544.model_copy(update={"name": "tst009", "exceed_ratio": 0.5, "duration_sum_s": 120.0}),
            "ETSI GS NFV-TST 009, binary search with loss verification, one repeat",
        ),
        (_single_trial("nfvbench-ndr", 1e-5, 60.0, 0.001), "NFVbench, NDR by default"),
        (_single_trial("nfvbench-pdr", 1e-3, 60.0, 0.001), "NFVbench, PDR by default"),
        (_single_trial("trex-ndr", 1e-3, 20.0, 0.01), "TRex, ndr by default"),
    )
)
"""Definitions of other tools with their defaults."""


@dataclass(frozen=True, slots=True)
class TrialsNeeded:
    """Trials that decide the next load, if they go as most have gone there."""

    load_pps: float
    trials: int
    duration_s: float
    """Of each."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A load that meets a goal, or does not."""

    load_pps: float
    by_shorter: bool
    """Known by shorter trials than the goal asks for, with 95 % confidence."""


@dataclass(frozen=True, slots=True)
class GoalAnswer:
    """Evidence of trials for a goal."""

    asked: OtherGoal
    lower: Bound | None
    upper: Bound | None
    """None where no load is known to fail."""
    needed: TrialsNeeded | None
    """None where the bounds are as close as the goal asks, or no higher load can be offered."""
    most_pps: float
    """Highest load that was tried."""

    @property
    def complete(self) -> bool:
        """Whether the question is answered."""
        return self.needed is None


def other_goals(
    trials: Iterable[TrialResult | ImportedTrial], goals: Sequence[OtherGoal] = GOALS
) -> tuple[GoalAnswer, ...]:
    """Return what the search trials of a test say about each goal; empty if there are none."""
    by_load: dict[float, list[_TrialSeen]] = defaultdict(list)
    for found in trials:
        if (seen := _TrialSeen.of(found)) is not None:
            by_load[seen.load_pps].append(seen)
    rows = sorted(by_load.items())
    return tuple(_answer(asked, rows) for asked in goals) if rows else ()


@dataclass(frozen=True, slots=True)
class _TrialSeen:
    load_pps: float
    duration_s: float
    loss_ratio: float
    lost: float
    effective_s: float
    trial: Trial | None = None
    """None of another tool's, which none was to end early."""
    aborted: bool = False

    @classmethod
    def of(cls, found: TrialResult | ImportedTrial) -> "_TrialSeen | None":
        """Return a trial that is evidence; None for others."""
        if isinstance(found, ImportedTrial):
            lost = found.loss_ratio * found.load_pps * found.duration_s
            return cls(found.load_pps, found.duration_s, found.loss_ratio, lost, found.duration_s)
        trial, loss_ratio = found.trial, found.charged_loss_ratio
        if trial.purpose != "search" or trial.load_pps <= 0 or not found.is_evidence or loss_ratio is None:
            return None
        lost = max(0, found.sent - found.received) + (found.unsent or 0)
        effective = effective_s(found)
        return cls(trial.load_pps, trial.duration_s, loss_ratio, lost, effective, trial, found.aborted)

    def informs(self, goal: Goal) -> bool:
        """As `informs`."""
        return self.trial is None or informs(self.trial, goal)


def _answer(asked: OtherGoal, rows: Sequence[tuple[float, list[_TrialSeen]]]) -> GoalAnswer:
    goal, most_pps = asked.goal, rows[-1][0]
    lower = upper = None
    between: list[_LoadSeen] = []
    for load_pps, results in rows:
        load = _LoadSeen.of(load_pps, results, goal)
        reading, by_shorter = load.reading(goal)
        if reading is GoalReading.BAD:
            upper = Bound(load.load_pps, by_shorter)
            break
        if reading is GoalReading.GOOD:
            lower, between = Bound(load.load_pps, by_shorter), []
        else:
            between.append(load)
    answer = GoalAnswer(asked, lower, upper, None, most_pps)
    return GoalAnswer(asked, lower, upper, _needed(answer, between), most_pps)


def _needed(known: GoalAnswer, between: Sequence["_LoadSeen"]) -> TrialsNeeded | None:
    goal, lower, upper = known.asked.goal, known.lower, known.upper
    if lower is not None:
        if lower.load_pps * _EQUAL >= known.most_pps:
            return None
        if upper is not None and lower.load_pps * _EQUAL >= upper.load_pps * (1 - goal.relative_width):
            return None
    if between:
        passing = [load for load in between if load.mostly_passes]
        chosen = passing[-1] if passing else between[0]
    else:
        # No load between the bounds was tried.
        top_pps = upper.load_pps if upper else known.most_pps
        chosen = _LoadSeen(((lower.load_pps if lower else 0.0) + top_pps) / 2)
    trials = math.ceil(chosen.full_length.missing_s(goal) / goal.final_trial_duration_s - 1e-6)
    return TrialsNeeded(chosen.load_pps, max(1, trials), goal.final_trial_duration_s)


class _LoadSeen:
    """Trials at one load, as one goal sees them."""

    def __init__(self, load_pps: float) -> None:
        self.load_pps = load_pps
        self.full_length = LoadEvidence(load_pps)
        self._shorter = self._too_lossy = self._above_ratio = 0
        self._shorter_s = 0.0
        self._passed = self._failed = 0

    @classmethod
    def of(cls, load_pps: float, results: Iterable[_TrialSeen], goal: Goal) -> "_LoadSeen":
        seen, results = cls(load_pps), tuple(results)
        # Trials that would have ended at a smaller loss count where none did: good and bad ones alike.
        whole = not any(result.aborted and not result.informs(goal) for result in results)
        for result in results:
            failed = result.loss_ratio > goal.loss_ratio
            seen._failed += failed
            seen._passed += not failed
            if whole or result.informs(goal):
                seen._add(result, failed, goal)
        return seen

    def _add(self, result: _TrialSeen, failed: bool, goal: Goal) -> None:
        duration_s = result.duration_s
        if duration_s * _EQUAL < goal.final_trial_duration_s:
            self._shorter += 1
            self._shorter_s += duration_s
            self._above_ratio += failed
            self._too_lossy += result.lost > goal.loss_ratio * self.load_pps * goal.final_trial_duration_s
        elif not failed:
            self.full_length.good_s += result.effective_s
        elif not goal.exceed_ratio or duration_s <= goal.final_trial_duration_s * _EQUAL:
            # A longer trial that fails contains one of the goal's duration that fails, and may contain many that pass.
            self.full_length.bad_s += result.effective_s

    def reading(self, goal: Goal) -> tuple[GoalReading, bool]:
        """Verdict of the trials, and whether it rests on shorter ones."""
        proven = self.full_length.proven(goal)
        if proven is not GoalReading.OPEN or not self._shorter:
            return proven, False
        trials = math.ceil(goal.duration_sum_s / goal.final_trial_duration_s - 1e-6)
        allowed = math.floor(trials * goal.exceed_ratio + 1e-6)
        likely = self.full_length.likely(goal) if self.full_length.good_s + self.full_length.bad_s else None
        contains = goal.final_trial_duration_s * self._shorter / self._shorter_s
        failing = 1 - (1 - _least_share(self._too_lossy, self._shorter)) ** contains
        if special_functions.bdtrc(allowed, trials, failing) >= _CONFIDENCE and likely is not GoalReading.GOOD:
            return GoalReading.BAD, True
        failing = 1 - (1 - _largest_share(self._above_ratio, self._shorter)) ** contains
        if special_functions.bdtrc(allowed, trials, failing) <= 1 - _CONFIDENCE and likely is not GoalReading.BAD:
            return GoalReading.GOOD, True
        return GoalReading.OPEN, False

    @property
    def mostly_passes(self) -> bool:
        """Whether more trials passed than failed, those included that cannot show it."""
        return self._passed > self._failed


@lru_cache(4096)
def _least_share(found: int, of: int) -> float:
    return float(special_functions.betaincinv(found, of - found + 1, 1 - _CONFIDENCE)) if found else 0.0


def _largest_share(found: int, of: int) -> float:
    return 1 - _least_share(of - found, of)


_SETTINGS = {
    "loss": "loss_ratio",
    "exceed": "exceed_ratio",
    "width": "relative_width",
    "trial": "final_trial_duration_s",
    "sum": "duration_sum_s",
}


def goal_of(text: str) -> OtherGoal:
    """Return a goal by its name, or by its settings: `loss=1e-4,trial=10,sum=60,exceed=0.5,width=0.01`.

    Settings that are not given are those of one trial that decides: `trial` 60 s, `sum` as long as `trial`, `exceed` 0,
    `width` 0.005.

    Raises:
        ConfigError: There is none of that name, or a setting is unknown or does not fit.
    """
    known = {asked.goal.name: asked for asked in GOALS}
    if text in known:
        return known[text]
    if "=" not in text:
        raise ConfigError(
            f"no goal {quoted(text)}; choose from {', '.join(known)}, or describe one: loss=1e-4,trial=10"
        )
    fields = {"name": text, **_RFC2544.model_dump(include={*_SETTINGS.values()})}
    given: dict[str, float] = {}
    for setting in text.split(","):
        key, _, value = setting.partition("=")
        if key not in _SETTINGS:
            raise ConfigError(
                f"--goal {quoted(text)}: unknown setting {quoted(key)}; choose from {', '.join(_SETTINGS)}"
            )
        try:
            given[_SETTINGS[key]] = float(value)
        except ValueError:
            raise ConfigError(f"--goal {quoted(text)}: {key} is no number") from None
        least = _SHORTEST_S if key in {"trial", "sum"} else 0
        if not least <= given[_SETTINGS[key]] <= _LONGEST_S:
            raise ConfigError(f"--goal {quoted(text)}: {key} is not between {least:g} and {_LONGEST_S:g}")
    fields |= {"duration_sum_s": given.get("final_trial_duration_s", 60.0), **given}
    fields["initial_trial_duration_s"] = fields["final_trial_duration_s"]
    try:
        goal = Goal.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        keys = {field: key for key, field in _SETTINGS.items()} | {"initial_trial_duration_s": "trial"}
        raise ConfigError(f"--goal {quoted(text)}: {keys[str(first['loc'][0])]}: {reason_of_value(first)}") from error
    if goal.duration_sum_s < goal.final_trial_duration_s:
        durations = f"sum of {goal.duration_sum_s:g} s is below one trial of {goal.final_trial_duration_s:g} s"
        raise ConfigError(f"--goal {quoted(text)}: {durations}")
    return OtherGoal(goal, "as given")
