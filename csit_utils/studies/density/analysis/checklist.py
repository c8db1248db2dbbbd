"""Checklist of the requirements of RFC 9971 (MLRsearch) for the result of a search, each with its evidence."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from csit_utils.report.units import percent, rate, seconds
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.model.request.goal import GoalResult
from resources.libraries.python.search.algorithms.bounds import overhead_s
from resources.libraries.python.search.algorithms.conformance import REQUIREMENTS
from resources.libraries.python.studies.density.model import DensityRecord


@dataclass(frozen=True)
class CheckedRequirement:
    """A requirement, and how a result meets it."""

    key: str
    """A key of `search.algorithms.conformance.REQUIREMENTS`."""
    requirement: str
    evidence: str
    """Numbers of this result."""
    deviations: tuple[str, ...]
    """How the result deviates; empty where it meets the requirement."""

    @property
    def met(self) -> bool:
        """Whether the result meets the requirement."""
        return not self.deviations


def checklist(record: DensityRecord) -> tuple[CheckedRequirement, ...]:
    """Return all requirements in the order of the RFC; empty without a search, or for a record without deviations."""
    if record.search is None or record.search.deviations is None:
        return ()
    deviations: dict[str, list[str]] = {}
    for found in record.search.deviations:
        deviations.setdefault(found.requirement, []).append(found.text)
    evidence = _evidence(record)
    return tuple(
        CheckedRequirement(key, text, evidence.get(key, ""), tuple(deviations.get(key, ())))
        for key, text in REQUIREMENTS.items()
    )


def _evidence(record: DensityRecord) -> Mapping[str, str]:
    trials = [each for each in record.trials if each.trial.purpose in ("search", "soak")]
    results = [found for found in (record.ndr, record.pdr, record.soak) if found is not None]
    durations = sorted({each.trial.duration_s for each in trials})
    per_goal = {
        "goal-values": _goal_values,
        "goal-width": _width,
        "relevant-lower-bound": _bounds,
        "irregular-result": _regularity,
    }
    return {
        "units": "rates in packets (L2 frames) per second, durations in seconds, ratios in percent",
        "trial-duration": f"{len(trials)} trials of {_listed(durations)}" if trials else "",
        "trial-load": "loads are aggregates of both directions; the load of one interface is half of it",
        "traffic-profile": "; ".join(_traffic(record)),
        "trial-effective-duration": _effective(trials),
        "trial-forwarding-ratio": f"loss ratios from {_extremes(trials)}" if trials else "",
        "load-classification": f"{len({each.trial.load_pps for each in trials})} loads were tried",
        "search-result": ", ".join(found.goal.name for found in results),
        "max-load": f"highest load of a trial: {rate(max(each.trial.load_pps for each in trials))}" if trials else "",
        "attributes": "; ".join(_attributes(found) for found in results),
        **{key: "; ".join(f"{found.goal.name} {text(found)}" for found in results) for key, text in per_goal.items()},
    }


def _listed(durations: list[float]) -> str:
    shown = [seconds(each) for each in durations]
    return shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"


def _traffic(record: DensityRecord) -> Iterator[str]:
    yield f"frames of {record.asked.frame.name}"
    yield "both directions with equal load"
    if record.plan is not None:
        yield f"{len(record.plan.flows)} flows, one per service instance and direction"
    yield f"IPv{record.asked.frame.ip_version}"


def _effective(trials: list[TrialResult]) -> str:
    if not trials:
        return ""
    mean_s = sum(map(overhead_s, trials)) / len(trials)
    return f"duration and overhead, {1e3 * mean_s:.0f} ms on average"


def _extremes(trials: list[TrialResult]) -> str:
    ratios = [ratio for each in trials if (ratio := each.loss_ratio) is not None]
    return f"{percent(min(ratios))} to {percent(max(ratios))}" if ratios else "no trial"


def _goal_values(found: GoalResult) -> str:
    goal = found.goal
    return f"loss ratio {percent(goal.loss_ratio)}, exceed ratio {percent(goal.exceed_ratio)}"


def _attributes(found: GoalResult) -> str:
    goal = found.goal
    return (
        f"{goal.name} loss ratio {percent(goal.loss_ratio)}, exceed ratio {percent(goal.exceed_ratio)}, final trial "
        f"duration {seconds(goal.final_trial_duration_s)}, duration sum {seconds(goal.duration_sum_s)}, initial trial "
        f"duration {seconds(goal.initial_trial_duration_s)}, width {percent(goal.relative_width)} of the upper bound"
    )


def _width(found: GoalResult) -> str:
    if found.lower_pps is None or found.upper_pps is None:
        return "has one bound"
    width = 1 - found.lower_pps / found.upper_pps
    return f"{percent(width)} of the upper bound, {percent(found.goal.relative_width)} asked"


def _bounds(found: GoalResult) -> str:
    lower = rate(found.lower_pps) if found.lower_pps is not None else "none"
    return lower + (f", upper bound {rate(found.upper_pps)}" if found.upper_pps is not None else ", no upper bound")


def _regularity(found: GoalResult) -> str:
    regular = found.complete and found.lower_pps is not None and found.upper_pps is not None
    return "regular" if regular else "irregular"
