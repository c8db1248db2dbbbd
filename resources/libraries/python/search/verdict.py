"""May this number be trusted, and what limits it? From what was found to a verdict with its evidence."""

from collections.abc import Iterable, Sequence

from resources.libraries.python.model.goal import GoalResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Affinity, Verdict, VerdictKind
from resources.libraries.python.model.trial import TrialResult
from resources.libraries.python.search.throughput import SearchOutcome

Finding = tuple[VerdictKind, str]

_ORDER = (
    VerdictKind.NO_TRAFFIC,
    VerdictKind.GENERATOR_BOUND,
    VerdictKind.BELOW_RANGE,
    VerdictKind.INCOMPLETE,
    VerdictKind.AFFINITY_LOST,
    VerdictKind.EMULATED,
    VerdictKind.OVERSUBSCRIBED,
    VerdictKind.UNSTABLE,
    VerdictKind.VSWITCH_BOUND,
    VerdictKind.NF_BOUND,
    VerdictKind.MEASURED,
)
"""Most important first: no number at all, a number about something else, part of a number, a number with a flaw."""


def judge(
    plan: Plan,
    *,
    outcome: SearchOutcome | None = None,
    mrr_trials: Sequence[TrialResult] = (),
    affinity: Iterable[Affinity] = (),
    complaints: Sequence[str] = (),
) -> Verdict:
    """Judge a test by all that is known of it.

    Args:
        plan: What was deployed.
        outcome: Of the throughput search, if there was one.
        mrr_trials: Trials at the highest load, if there were any.
        affinity: Planned and real placement of the data threads.
        complaints: Flows that did not arrive, from `connectivity.diagnose`.
    """
    findings: list[Finding] = [(VerdictKind.NO_TRAFFIC, complaint) for complaint in complaints]
    if outcome is not None:
        findings += _of_search(outcome)
    findings += _of_mrr(mrr_trials)
    findings += _of_affinity(affinity)
    findings += _of_cores(plan)
    kinds = {kind for kind, _ in findings}
    if not kinds:
        findings.append((VerdictKind.MEASURED, _calm(outcome, mrr_trials)))
        kinds = {VerdictKind.MEASURED}
    # Remarks of a search that changed no kind come last.
    remarks = [line for line in outcome.evidence if line not in {text for _, text in findings}] if outcome else []
    ordered = [text for kind in _ORDER for found, text in findings if found is kind]
    return Verdict(kinds=tuple(kind for kind in _ORDER if kind in kinds), evidence=(*ordered, *remarks))


def _of_search(outcome: SearchOutcome) -> list[Finding]:
    findings: list[Finding] = []
    if outcome.generator_bound:
        findings += [(VerdictKind.GENERATOR_BOUND, line) for line in outcome.evidence]
    for result in outcome.goals:
        if not result.complete:
            findings.append((VerdictKind.INCOMPLETE, _incomplete(result, outcome)))
        elif result.lower_pps is None:
            findings.append((VerdictKind.BELOW_RANGE, _below(result)))
    return findings


def _incomplete(result: GoalResult, outcome: SearchOutcome) -> str:
    name = result.goal.name
    if result.lower_pps is None or result.upper_pps is None:
        which = "lower" if result.lower_pps is None else "upper"
        return f"{name}: no {which} bound after {len(outcome.trials)} trials in {outcome.elapsed_s:.1f} s"
    width = 1 - result.lower_pps / result.upper_pps
    return (
        f"{name}: between {result.lower_pps:.0f} and {result.upper_pps:.0f} pps, {100 * width:.2g} % apart instead of "
        f"{100 * result.goal.relative_width:g} %, or with too few trials, after {len(outcome.trials)} trials in "
        f"{outcome.elapsed_s:.1f} s"
    )


def _below(result: GoalResult) -> str:
    return (
        f"{result.goal.name}: loss ratio {result.goal.loss_ratio:g} was exceeded even at {result.lowest_tried_pps:.0f} "
        "pps, the lowest load tried"
    )


def _of_mrr(trials: Sequence[TrialResult]) -> list[Finding]:
    limited = [trial for trial in trials if trial.generator_limited]
    if limited:
        worst = min(limited, key=lambda trial: trial.offered_pps)
        line = (
            f"MRR: the generator limited {len(limited)} of {len(trials)} trials, down to "
            f"{worst.offered_pps:.0f} pps of {worst.trial.load_pps:.0f} pps"
        )
        return [(VerdictKind.GENERATOR_BOUND, line)]
    if trials and all(trial.loss_ratio == 0 for trial in trials):
        line = f"MRR: nothing was lost at {trials[0].trial.load_pps:.0f} pps, the highest load that can be offered"
        return [(VerdictKind.GENERATOR_BOUND, line)]
    return []


def _of_affinity(rows: Iterable[Affinity]) -> list[Finding]:
    findings: list[Finding] = []
    for row in rows:
        if row.actual_cpus == (row.planned_cpu,):
            continue
        where = f"may run on CPUs {', '.join(map(str, row.actual_cpus))}" if row.actual_cpus else "was not found"
        line = f"the data thread of {row.owner} {row.interface} is planned on CPU {row.planned_cpu} and {where}"
        findings.append((VerdictKind.AFFINITY_LOST, line))
    return findings


def _of_cores(plan: Plan) -> list[Finding]:
    if not plan.cores.oversubscribed:
        return []
    line = f"the plan needs {plan.cores.cores_needed} cores and {plan.cores.cores_there} are there: data threads share"
    return [(VerdictKind.OVERSUBSCRIBED, line)]


def _calm(outcome: SearchOutcome | None, mrr_trials: Sequence[TrialResult]) -> str:
    if outcome is not None:
        return (
            f"bounds of {', '.join(result.goal.name for result in outcome.goals)} are as close as asked, from "
            f"{len(outcome.trials)} trials in {outcome.elapsed_s:.1f} s, none limited by the generator"
            if not any(trial.generator_limited for trial in outcome.trials)
            else f"bounds are as close as asked, from {len(outcome.trials)} trials, "
            f"{sum(trial.generator_limited for trial in outcome.trials)} of them repeated because of the generator"
        )
    if mrr_trials:
        return f"{len(mrr_trials)} trials at the highest load, none limited by the generator"
    return "packets of every service instance arrived in both directions"
