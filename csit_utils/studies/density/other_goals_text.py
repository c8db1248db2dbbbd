"""Answers about other goals in words."""

from dataclasses import dataclass

from csit_utils.report.units import common_unit, digits3, percent, rate, seconds
from csit_utils.studies.density.analysis.other_goals import GoalAnswer
from resources.libraries.python.model.goal import Goal


@dataclass(frozen=True)
class OtherGoalView:
    """One line of a table of other goals."""

    name: str
    definition: str
    source: str
    bounds: str
    evidence: str
    decided: bool


def other_goal_view(answer: GoalAnswer) -> OtherGoalView:
    """Return an answer as texts."""
    asked = answer.asked
    return OtherGoalView(
        asked.goal.name,
        _definition(asked.goal),
        asked.source,
        _bounds(answer),
        _evidence(answer),
        answer.complete,
    )


def _bounds(answer: GoalAnswer) -> str:
    lower, upper = answer.lower, answer.upper
    if upper is None:
        return "no bound" if lower is None else f"at least {rate(lower.load_pps)}"
    if lower is None:
        return f"below {rate(upper.load_pps)}"
    factor, _ = common_unit([upper.load_pps])
    return f"{digits3(lower.load_pps / factor)} … {rate(upper.load_pps)}"


def _evidence(answer: GoalAnswer) -> str:
    bounds = (("lower", answer.lower), ("upper", answer.upper))
    shorter = [name for name, bound in bounds if bound is not None and bound.by_shorter]
    parts = [f"{' and '.join(shorter)} bound by shorter trials (95 %)"] if shorter else []
    if answer.needed is not None:
        needed = answer.needed
        trials = "trial" if needed.trials == 1 else "trials"
        parts.append(
            f"undecided: {needed.trials} {trials} of {seconds(needed.duration_s)} at {rate(needed.load_pps)} needed"
        )
    return "; ".join(parts) or "decided"


def _definition(goal: Goal) -> str:
    text = f"loss ≤ {percent(goal.loss_ratio)}, trials of {seconds(goal.final_trial_duration_s)}"
    if goal.duration_sum_s > goal.final_trial_duration_s:
        text += f" that add up to {seconds(goal.duration_sum_s)}"
    if goal.exceed_ratio:
        text += f", of which {percent(goal.exceed_ratio)} may lose more"
    return text
