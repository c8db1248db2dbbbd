"""Definitions of NDR, PDR, SOAK and MRR in a result, as text in `TestRow.goals`: formatting and parsing.

The format is that of `profile_text`. Results of other tools have fewer properties, or another number for the same goal;
unknown properties are omitted in the text, and None here.

Also the remark on results whose PDR is below their NDR, for every reader: searches of this project make it themselves.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, get_args, get_type_hints

import msgspec

from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.goal import Goal, SearchProfile
from resources.libraries.python.model.result import Finding
from resources.libraries.python.search.findings.verdict import GoalBound, out_of_order, rank, verdict_of
from resources.libraries.python.studies.density.model import DensityRecord

FORWARDED = "forwarded rate"
"""The figure is the forwarded rate at a load, not the load."""
ONE_WAY = "traffic in one direction only"
"""Occurs once for all goals of a result; without it rates are aggregates of both directions."""

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
_MRR = re.compile(rf"MRR \d+ (?:x (?P<final>{_N}) s|trials)(?: at (?P<load>{_N}) pps)?")


def goal_text(goal: Goal) -> str:
    """Return the definition of a goal in one line."""
    return (
        f"{goal.name} loss <= {_percent(goal.loss_ratio)} width {goal.relative_width:.3%} "
        f"exceed {goal.exceed_ratio:.0%} trials {goal.initial_trial_duration_s:g}..{goal.final_trial_duration_s:g} s "
        f"sum {goal.duration_sum_s:g} s"
    )


def _percent(ratio: float) -> str:
    """Percent with three decimals, or more for smaller values such as the loss ratio of a soak."""
    return f"{ratio:.3%}" if ratio == 0 or ratio >= 1e-5 else f"{Decimal(f'{100 * ratio:.3g}'):f}%"


def profile_text(profile: SearchProfile) -> str:
    """Return the definitions of all goals of a profile."""
    mrr = f"MRR {profile.mrr_trials} x {profile.mrr_duration_s:g} s"
    return "; ".join([*(goal_text(goal) for goal in profile.goals), mrr])


@dataclass(frozen=True)
class GoalWords:
    """One goal of a result. Ratios are in [0, 1]; None is unknown."""

    name: str
    loss_ratio: float | None = None
    """None for MRR, which allows any loss."""
    exceed_ratio: float | None = None
    """Share of the trial time at a load that may lose more."""
    relative_width: float | None = None
    trial_s: float | None = None
    """Length of the final trials."""
    given_as: str | None = None
    """Kind of the figure; None for the load itself."""
    step_pps: float | None = None
    """Rounding step of figures; None if not rounded."""
    load_pps: float | None = None
    """Load of MRR; None for the highest that the generator sends."""

    @property
    def text(self) -> str:
        """The goal as in `TestRow.goals`. For MRR see `mrr_words`."""
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
    """Return a ratio in percent with exactly its digits: `0.001%`."""
    return f"{(Decimal(repr(ratio)) * 100).normalize():f}%"


def mrr_words(trials: int, trial_s: float | None, load_pps: float | None = None) -> str:
    """Return the definition of MRR over several trials, at a load if it was not the highest."""
    words = f"MRR {trials} trials" if trial_s is None else f"MRR {trials} x {trial_s:g} s"
    return words if load_pps is None else f"{words} at {load_pps:.0f} pps"


@lru_cache(maxsize=4096)
def read_goal(goals: str, name: str) -> GoalWords | None:
    """Return one goal of a text of `TestRow.goals`; None without it."""
    for part in goals.split("; "):
        mrr = _MRR.fullmatch(part)
        if mrr is not None and name == "MRR":
            return GoalWords("MRR", trial_s=_number(mrr["final"]), load_pps=_number(mrr["load"]))
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


def readable(goals: str) -> str:
    """Return a text of `TestRow.goals` for a heading: `NDR loss ≤ 0.001 %, trials of 30 s`."""
    text = goals.replace("<=", "≤").replace("%", " %").replace(" exceed 0 %", "")
    return re.sub(rf" trials ({_N})\.\.\1 s", r", trials of \1 s", text)


def one_way(goals: str) -> bool:
    """Whether a text of `TestRow.goals` means traffic in one direction."""
    return ONE_WAY in goals.split("; ")


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)


def _share(percent: str | None) -> float | None:
    """Convert percent by decimal arithmetic: 0.1 % is exactly 0.001."""
    return None if percent is None else float(Decimal(percent) / 100)


def order_remark(column: Callable[[str], Any]) -> Finding | None:
    """Return the remark on a row; `column` returns one of its values."""
    ndr, pdr = (
        GoalBound(name.upper(), column(f"{name}_loss_ratio"), column(f"{name}_lower_pps")) for name in ("ndr", "pdr")
    )
    return out_of_order(ndr, pdr)


def remarked(record: Record) -> Record:
    """Return a record with the remark, where it lacks it."""
    if not isinstance(record, DensityRecord) or (found := _of_parts(record)) is None:
        return record
    return record.model_copy(update={"verdict": verdict_of((found, *record.verdict.findings))})


def remarked_head(head: Any) -> Any:  # noqa: ANN401 - its type is made at runtime
    """Return a `Head` with the remark, where it lacks it."""
    if (found := _of_parts(head)) is None:
        return head
    (kind_of_findings, _) = get_args(get_type_hints(type(head.verdict))["findings"])
    finding = msgspec.convert(found.model_dump(mode="json"), kind_of_findings)
    every = sorted((finding, *head.verdict.findings), key=lambda each: rank(each.kind))
    return msgspec.structs.replace(head, verdict=msgspec.structs.replace(head.verdict, findings=tuple(every)))


def remark_columns(columns: Mapping[str, Any], remarks: list[str]) -> dict[str, str]:
    """Add the remark on the columns of a row to its others; return the columns of its verdicts."""
    if (found := order_remark(columns.get)) is None:
        return {}
    remarks.append(found.text)
    return dict.fromkeys(("verdicts", "ndr_verdict", "pdr_verdict"), found.kind.value)


def _of_parts(record: Any) -> Finding | None:  # noqa: ANN401 - a record, or the head of one
    ndr, pdr = record.ndr, record.pdr
    if ndr is None or pdr is None or not record.passed:
        return None
    found = out_of_order(
        GoalBound("NDR", ndr.goal.loss_ratio, ndr.lower_pps), GoalBound("PDR", pdr.goal.loss_ratio, pdr.lower_pps)
    )
    return None if found is None or any(found.text == each.text for each in record.verdict.findings) else found
