"""What NDR, PDR, SOAK and MRR mean in a result, as `TestRow.goals` says it in words: written and read back.

The words are those of `profile_text`. Results of other tools tell less, or give another number for the same goal; what
they do not tell stays out of the text, and is None here.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from resources.libraries.python.model.goal import Goal, SearchProfile

FORWARDED = "forwarded rate"
"""The figure is what came through at a load, not the load."""
ONE_WAY = "traffic in one direction only"
"""Stands once for all goals of a result; without it rates are aggregates of both directions."""

_N = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_GOAL = re.compile(
    rf"(?P<name>[A-Z]+) loss <= (?P<loss>{_N})%"
    rf"(?: width (?P<width>{_N})%)?"
    rf"(?: exceed (?P<exceed>{_N})%)?"
    rf"(?: trials {_N}\.\.(?P<final>{_N}) s)?"
    rf"(?: sum {_N} s)?"
    r"(?: given as (?P<given>[a-z ]+?))?"
    rf"(?: rounded to (?P<step>{_N}) pps)?"
)
_MRR = re.compile(rf"MRR \d+ (?:x (?P<final>{_N}) s|trials)")


def goal_text(goal: Goal) -> str:
    """The definition of a goal in one line: names alone mean different things to different people."""
    return (
        f"{goal.name} loss <= {_percent(goal.loss_ratio)} width {goal.relative_width:.3%} "
        f"exceed {goal.exceed_ratio:.0%} trials {goal.initial_trial_duration_s:g}..{goal.final_trial_duration_s:g} s "
        f"sum {goal.duration_sum_s:g} s"
    )


def _percent(ratio: float) -> str:
    """Three decimals, or more where those would be 0: a soak's loss ratio is tiny."""
    return f"{ratio:.3%}" if ratio == 0 or ratio >= 1e-5 else f"{Decimal(f'{100 * ratio:.3g}'):f}%"


def profile_text(profile: SearchProfile) -> str:
    """All that decides what a result of this profile means."""
    mrr = f"MRR {profile.mrr_trials} x {profile.mrr_duration_s:g} s"
    return "; ".join([*(goal_text(goal) for goal in profile.goals), mrr])


@dataclass(frozen=True)
class GoalWords:
    """One goal of a result. Ratios are in [0, 1]; what is not told is None."""

    name: str
    loss_ratio: float | None = None
    """None for MRR, which allows any loss."""
    exceed_ratio: float | None = None
    """Share of the trial time at a load that may lose more."""
    relative_width: float | None = None
    trial_s: float | None = None
    """Length of the trials that decide."""
    given_as: str | None = None
    """What the figure is; None for the load itself."""
    step_pps: float | None = None
    """Figures were rounded to whole steps of this; None where they are as measured."""

    @property
    def text(self) -> str:
        """In the words of `TestRow.goals`. MRR has other words, see `mrr_words`."""
        parts = [f"{self.name} loss <= {percent_words(self.loss_ratio or 0.0)}"]
        if self.relative_width is not None:
            parts.append(f"width {percent_words(self.relative_width)}")
        if self.exceed_ratio is not None:
            parts.append(f"exceed {percent_words(self.exceed_ratio)}")
        if self.trial_s is not None:
            parts.append(f"trials {self.trial_s:g}..{self.trial_s:g} s")
        if self.given_as is not None:
            parts.append(f"given as {self.given_as}")
        if self.step_pps is not None:
            parts.append(f"rounded to {self.step_pps:g} pps")
        return " ".join(parts)


def percent_words(ratio: float) -> str:
    """A ratio as percent with all its digits and no others: `0.001%`."""
    return f"{(Decimal(repr(ratio)) * 100).normalize():f}%"


def mrr_words(trials: int, trial_s: float | None) -> str:
    """The words for MRR of several trials."""
    return f"MRR {trials} trials" if trial_s is None else f"MRR {trials} x {trial_s:g} s"


@lru_cache(maxsize=4096)
def read_goal(goals: str, name: str) -> GoalWords | None:
    """What a text of `TestRow.goals` says of one goal; None where it says nothing."""
    for part in goals.split("; "):
        mrr = _MRR.fullmatch(part)
        if mrr is not None and name == "MRR":
            return GoalWords("MRR", trial_s=_number(mrr["final"]))
        found = _GOAL.fullmatch(part)
        if found is not None and found["name"] == name:
            return GoalWords(
                name,
                loss_ratio=_share(found["loss"]),
                exceed_ratio=_share(found["exceed"]),
                relative_width=_share(found["width"]),
                trial_s=_number(found["final"]),
                given_as=found["given"],
                step_pps=_number(found["step"]),
            )
    return None


def one_way(goals: str) -> bool:
    """Whether a text of `TestRow.goals` is of traffic in one direction."""
    return ONE_WAY in goals.split("; ")


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)


def _share(percent: str | None) -> float | None:
    """By decimals: 0.1 % is 0.001 and nothing beside it."""
    return None if percent is None else float(Decimal(percent) / 100)
