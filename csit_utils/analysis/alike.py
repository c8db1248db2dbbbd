"""May two results be compared? Names alone do not tell: tools mean different things by NDR, PDR and IMIX.

Peers' definitions, as read in their sources: FD.io CSIT's PDR allows 0.5 % loss and its IMIX is 7:4:1 of 64/570/1518
bytes; NFVbench's NDR allows 0.001 %, its PDR 0.1 % (both can be set), and its IMIX is 7:4:1 of 64/594/1518 bytes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from csit_utils.analysis.grouping import Metric, Series
from csit_utils.analysis.measures import Measure
from csit_utils.dataset.goal_words import FORWARDED, GoalWords, one_way, percent_words, read_goal
from csit_utils.dataset.rows import TestRow


@dataclass(frozen=True)
class Likeness:
    """What stands between two results. Whole sentences, for people."""

    differences: tuple[str, ...] = ()
    """Why they mean different things: not to be compared unless a person insists, and then with these beside it."""
    remarks: tuple[str, ...] = ()
    """They may be compared, and this is to be known then."""

    @property
    def alike(self) -> bool:
        """Whether they may be compared."""
        return not self.differences


@dataclass(frozen=True)
class _Side:
    """What of a result decides the meaning of its figure."""

    called: str
    simulated: bool | None
    origin: str
    frame: str
    one_way: bool
    goal: GoalWords | None
    sent: str
    """Of a characterization: what its loads are."""


def likeness(
    one: TestRow | Series, other: TestRow | Series, metric: Metric | Measure, called: tuple[str, str] = ("A", "B")
) -> Likeness:
    """Whether a figure means the same in two results.

    Args:
        one: A test or a series.
        other: Another one.
        metric: The figure.
        called: How the sentences call the two.
    """
    a, b = _side(one, metric, called[0]), _side(other, metric, called[1])
    return Likeness(tuple(_differences(a, b, metric)), tuple(_remarks(a, b)))


def resolution_pps(result: TestRow | Series, metric: Metric | Measure) -> float:
    """How far a figure may lie from what was measured because it was rounded; 0.0 where it was not."""
    goal = read_goal(result.goals or "", metric.value)
    return goal.step_pps / 2 if goal and goal.step_pps else 0.0


def without_bounds(row: TestRow, metric: Metric, value_pps: float) -> tuple[float, float]:
    """Where a figure lies that another tool gives without its bounds, in pps, as far as its definition tells.

    A rounded one lies half a step to either side. Above a load there is the width that its search ends with, above a
    rate that was forwarded the loss that was allowed as well; infinite where no width is told.
    """
    half = resolution_pps(row, metric)
    goal = read_goal(row.goals or "", metric.value)
    if half or goal is None or goal.relative_width is None:
        return value_pps - half, value_pps + half if half else inf
    lost = (goal.loss_ratio or 0.0) if goal.given_as == FORWARDED else 0.0
    return value_pps, value_pps * (1 + goal.relative_width) / (1 - lost)


def _side(result: TestRow | Series, metric: Metric | Measure, called: str) -> _Side:
    goals = result.goals or ""
    of_system = result.system if isinstance(result, Series) else result
    return _Side(
        called,
        of_system.simulated,
        of_system.origin,
        result.frame or "",
        one_way(goals),
        read_goal(goals, metric.value),
        goals if isinstance(metric, Measure) else "",
    )


def _differences(a: _Side, b: _Side, metric: Metric | Measure) -> Iterator[str]:
    if a.simulated != b.simulated:
        yield f"{a.called} is {_world(a)} and {b.called} is {_world(b)}"
    if a.frame.upper() != b.frame.upper():
        yield _frames(a, b)
    if a.one_way != b.one_way:
        yield f"{a.called} counts {_directions(a)} and {b.called} {_directions(b)}"
    if isinstance(metric, Measure):
        if a.sent != b.sent:
            yield f"{a.called} is loaded by {a.sent} and {b.called} by {b.sent}"
    elif a.goal and b.goal:
        yield from _goals_differ(a.goal, b.goal, (a.called, b.called))
    else:
        yield from (f"{side.called} does not say what {metric} means in it" for side in (a, b) if not side.goal)


def _goals_differ(a: GoalWords, b: GoalWords, called: tuple[str, str]) -> Iterator[str]:
    one, other = called
    if a.loss_ratio != b.loss_ratio:
        yield f"{a.name} means loss <= {_percent(a.loss_ratio)} in {one} and <= {_percent(b.loss_ratio)} in {other}"
    if None not in (a.exceed_ratio, b.exceed_ratio) and a.exceed_ratio != b.exceed_ratio:
        yield (
            f"a load still counts as {a.name} when {_percent(a.exceed_ratio)} of its trial time loses more in {one}, "
            f"and {_percent(b.exceed_ratio)} in {other}"
        )
    if None not in (a.trial_s, b.trial_s) and a.trial_s != b.trial_s:
        yield f"{a.name} is decided by trials of {a.trial_s:g} s in {one} and of {b.trial_s:g} s in {other}"


def _remarks(a: _Side, b: _Side) -> Iterator[str]:
    if a.goal and b.goal:
        yield from _remark(a.goal, b.goal, a.called)
        yield from _remark(b.goal, a.goal, b.called)
        widths = (a.goal.relative_width, b.goal.relative_width)
        if None not in widths and widths[0] != widths[1]:
            yield f"bounds lie within {_percent(widths[0])} in {a.called} and {_percent(widths[1])} in {b.called}"
    if a.origin != b.origin:
        yield f"{a.called} is a result of {a.origin} and {b.called} of {b.origin}"


def _remark(goal: GoalWords, against: GoalWords, called: str) -> Iterator[str]:
    """What is to be known of one of two goals."""
    if goal.trial_s is None and against.trial_s is not None:
        yield f"{called} does not tell how long its trials are"
    if goal.exceed_ratio is None and against.exceed_ratio is not None:
        yield f"{called} does not tell which share of its trials may lose more"
    same = goal.given_as == FORWARDED and not goal.loss_ratio  # without loss all of the load was forwarded
    if goal.given_as and goal.given_as != against.given_as and not same:
        yield f"{goal.name} of {called} is a {goal.given_as}, which {_against_load(goal)}"
    if goal.step_pps:
        step, half = f"{goal.step_pps:,.0f}", f"{goal.step_pps / 2:,.0f}"
        yield f"{goal.name} of {called} is rounded to {step} pps, so it may be off by {half} pps"


def _against_load(goal: GoalWords) -> str:
    if goal.given_as == FORWARDED and goal.loss_ratio is not None:
        return f"may be lower than the load by {_percent(goal.loss_ratio)}"
    return "is no load"


def _percent(ratio: float | None) -> str:
    return "any" if ratio is None else percent_words(ratio).replace("%", " %")


def _world(side: _Side) -> str:
    return {True: "simulated", False: "measured", None: "of unknown origin"}[side.simulated]


def _directions(side: _Side) -> str:
    return "one direction" if side.one_way else "both directions"


def _frames(a: _Side, b: _Side) -> str:
    parts = [re.fullmatch(r"(\S+) \((.+)\)", side.frame) for side in (a, b)]
    if parts[0] and parts[1] and parts[0][1].upper() == parts[1][1].upper():
        return f"{parts[0][1]} is {_mix(parts[0][2])} in {a.called} and {_mix(parts[1][2])} in {b.called}"
    return f"frames are {a.frame or 'not told'} in {a.called} and {b.frame or 'not told'} in {b.called}"


def _mix(parts: str) -> str:
    """`7x64, 4x570, 1x1518` as people write it: `7:4:1 of 64/570/1518 B`."""
    pairs = re.findall(r"(\d+)x(\d+)", parts)
    return f"{':'.join(weight for weight, _ in pairs)} of {'/'.join(size for _, size in pairs)} B"
