"""Comparability of two results, and the differences of their environments, most relevant first.

Tools define NDR, PDR and IMIX differently under the same names.

Definitions of other tools, from their sources: FD.io CSIT's PDR allows 0.5 % loss and its IMIX is 7:4:1 of 64/570/1518
bytes; NFVbench's NDR allows 0.001 %, its PDR 0.1 % (both can be set), and its IMIX is 7:4:1 of 64/594/1518 bytes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from csit_utils.analysis.grouping import Series
from csit_utils.dataset.goal_words import FORWARDED, GoalWords, one_way, percent_words, read_goal
from csit_utils.dataset.measures import PPS, Measure
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.model.result import Environment


@dataclass(frozen=True)
class ResultDifferences:
    """Differences between two results, as sentences."""

    differences: tuple[str, ...] = ()
    """Reasons not to compare them; shown beside the comparison if the user insists."""
    remarks: tuple[str, ...] = ()
    """Notes on a comparison that is valid."""

    @property
    def alike(self) -> bool:
        """Whether they may be compared."""
        return not self.differences


@dataclass(frozen=True)
class _Side:
    """Properties of a result that decide the meaning of its figure."""

    called: str
    simulated: bool | None
    origin: str
    frame: str
    one_way: bool
    goal: GoalWords | None
    sent: str
    """The load, for a figure that no goal of a search decides."""


def likeness(one: TestRow | Series, other: TestRow | Series, metric: Measure) -> ResultDifferences:
    """Return the differences in meaning of a figure between two results, A and B."""
    a, b = _side(one, metric, "A"), _side(other, metric, "B")
    return ResultDifferences(tuple(_differences(a, b, metric)), tuple(_remarks(a, b)))


def resolution_pps(result: TestRow | Series, metric: Measure) -> float:
    """Return the rounding error of a figure in pps; 0.0 if it is not rounded."""
    goal = read_goal(result.goals or "", metric.goal) if metric.unit == PPS else None
    return goal.step_pps / 2 if goal and goal.step_pps else 0.0


def without_bounds(row: TestRow, metric: Measure, value_pps: float) -> tuple[float, float]:
    """Return lower and upper bound, in pps, of a figure that another tool gives without bounds.

    A rounded figure may be off by half a step. The true value may be above a load by the final width of the search, and
    above a forwarded rate also by the allowed loss; the upper bound is infinite if the width is unknown.
    """
    half = resolution_pps(row, metric)
    goal = read_goal(row.goals or "", metric.goal)
    if half or goal is None or goal.relative_width is None:
        return value_pps - half, value_pps + half if half else inf
    lost = (goal.loss_ratio or 0.0) if goal.given_as == FORWARDED else 0.0
    return value_pps, value_pps * (1 + goal.relative_width) / (1 - lost)


def _side(result: TestRow | Series, metric: Measure, called: str) -> _Side:
    goals = result.goals or ""
    of_system = result.system if isinstance(result, Series) else result
    return _Side(
        called,
        of_system.simulated,
        of_system.origin,
        result.frame or "",
        one_way(goals),
        read_goal(goals, metric.goal),
        "" if metric.goal else goals,
    )


def _differences(a: _Side, b: _Side, metric: Measure) -> Iterator[str]:
    if a.simulated != b.simulated:
        yield f"{a.called} is {_world(a)} and {b.called} is {_world(b)}"
    if a.frame.upper() != b.frame.upper():
        yield _frames(a, b)
    if a.one_way != b.one_way:
        yield f"{a.called} counts {_directions(a)} and {b.called} {_directions(b)}"
    if not metric.goal:
        if a.sent != b.sent:
            yield f"{a.called} is loaded by {a.sent} and {b.called} by {b.sent}"
    elif a.goal and b.goal:
        yield from _goals_differ(a.goal, b.goal)
    else:
        yield from (f"{side.called} does not say what {metric.goal} means in it" for side in (a, b) if not side.goal)


def _goals_differ(a: GoalWords, b: GoalWords) -> Iterator[str]:
    if a.loss_ratio != b.loss_ratio:
        yield f"{a.name} means loss <= {_percent(a.loss_ratio)} in A and <= {_percent(b.loss_ratio)} in B"
    if None not in (a.exceed_ratio, b.exceed_ratio) and a.exceed_ratio != b.exceed_ratio:
        yield (
            f"a load still counts as {a.name} when {_percent(a.exceed_ratio)} of its trial time loses more in A, "
            f"and {_percent(b.exceed_ratio)} in B"
        )
    if None not in (a.trial_s, b.trial_s) and a.trial_s != b.trial_s:
        yield f"{a.name} is decided by trials of {a.trial_s:g} s in A and of {b.trial_s:g} s in B"
    if a.load_pps != b.load_pps:
        loads = ["the highest load" if goal.load_pps is None else f"{goal.load_pps:,.0f} pps" for goal in (a, b)]
        yield f"{a.name} is measured at {loads[0]} in A and at {loads[1]} in B"


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
    if goal.trial_s is None and against.trial_s is not None:
        yield f"{called} does not report the length of its trials"
    if goal.exceed_ratio is None and against.exceed_ratio is not None:
        yield f"{called} does not report its exceed ratio"
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
    return f"frames are {a.frame or 'unknown'} in {a.called} and {b.frame or 'unknown'} in {b.called}"


def _mix(parts: str) -> str:
    """`7x64, 4x570, 1x1518` in the usual form `7:4:1 of 64/570/1518 B`."""
    pairs = re.findall(r"(\d+)x(\d+)", parts)
    return f"{':'.join(weight for weight, _ in pairs)} of {'/'.join(size for _, size in pairs)} B"


_EFFECTS = (
    (r"option .* of", "what vSwitch or NFs do with each packet"),
    (r"PCIe link|speed", "caps the packet rate of the NIC"),
    (r"governors|turbo", "scales clock frequency, and with it every rate"),
    (r"\bcpu_model$|memory modules|cpus_online$", "clocks per packet"),
    (r"mitigation of|microcode$|command_line$", "clocks per packet, most in the kernel"),
    (r"\bkernel$|versions\.|driver of|NIC of|firmware of", "other code on the path"),
    (r"isolated|nohz|rt_runtime|smt|BIOS", "interruptions of data threads: rare loss"),
    (r"ring sizes|coalescing|netdev_budget", "loss of bursts, and latency"),
    (r"pause frames|FEC", "loss moves to the sender, or becomes latency"),
    (r"idle states|dma_latency", "latency at low load"),
    (r"NUMA balancing|huge pages", "page faults: rare loss"),
    (r"\bsettings\.|\bvirtualization$|\bmemory_bytes$", ""),
    (r"\bdistribution$|\bpython$|\bgit_", ""),
    (r"\bhostname$", ""),
)
"""Paths with what they are known to change, from the largest effect on a rate to none; names of machines are last, and
other paths come before them."""
_COMMAND_LINE = "command_line"


@dataclass(frozen=True)
class Difference:
    """A value that differs."""

    path: str
    """Path of keys of the model, such as `settings./sys/devices/system/cpu/smt/control` or `nodes.TG.kernel`."""
    a: str | None
    """None: absent or unknown."""
    b: str | None

    @property
    def effect(self) -> str:
        """What it is known to change; empty where nothing is."""
        found = _index(self.path)
        return _EFFECTS[found][1] if found is not None else ""


def environment_differences(a: Environment, b: Environment) -> tuple[Difference, ...]:
    """Return differences of two environments and their nodes; of command lines only the words that differ."""
    one, other = leaves(a), leaves(b)
    paths = by_relevance(path for path in (*one, *other) if one.get(path) != other.get(path))
    return tuple(_shortened(Difference(path, one.get(path), other.get(path))) for path in paths)


def leaves(environment: Environment) -> dict[str, str]:
    """Return all values of an environment and its nodes by path."""
    return _flat(environment.model_dump(mode="json"))


def by_relevance(paths: Iterable[str]) -> list[str]:
    """Return each path once, most relevant first."""
    return sorted(set(paths), key=lambda path: (_rank(path), path))


def _rank(path: str) -> float:
    found = _index(path)
    return (len(_EFFECTS) - 1.5 if found is None else found) + (0.1 if path.startswith("nodes.") else 0.0)


def _index(path: str) -> int | None:
    return next((index for index, (pattern, _) in enumerate(_EFFECTS) if re.search(pattern, path)), None)


def _shortened(found: Difference) -> Difference:
    """Reduce two command lines to the words that the other one does not have."""
    if not found.path.endswith(_COMMAND_LINE) or found.a is None or found.b is None:
        return found
    a, b = found.a.split(), found.b.split()
    only_a, only_b = (
        " ".join(word for word in own if word not in other) for own, other in ((a, b), (b, a))
    )  # fmt: skip
    return Difference(found.path, only_a or None, only_b or None) if only_a or only_b else found


def _flat(value: Any, path: str = "") -> dict[str, str]:  # noqa: ANN401 - what JSON holds
    """Leaves by path, without those that are None."""
    if isinstance(value, Mapping):
        inside: Sequence[tuple[str, Any]] = [(str(key), each) for key, each in value.items()]
    elif isinstance(value, list):
        inside = [(str(index), each) for index, each in enumerate(value, 1)]
    elif isinstance(value, bool):
        return {path: "yes" if value else "no"}
    else:
        return {} if value is None else {path: str(value)}
    return {
        name: leaf for key, each in inside for name, leaf in _flat(each, f"{path}.{key}" if path else key).items()
    }  # fmt: skip
