"""May this number be trusted, and what limits it? From what was found to a verdict with its evidence."""

from collections.abc import Iterable, Mapping, Sequence

from resources.libraries.python.model.findings.evidence import LocatedLosses
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.goal import GoalResult
from resources.libraries.python.model.result import (
    Affinity,
    Finding,
    LatencyAtLoad,
    ReceiveRate,
    Verdict,
    VerdictKind,
)
from resources.libraries.python.quantities import rate, rates
from resources.libraries.python.search.findings.generator_range import GeneratorRange
from resources.libraries.python.search.findings.host_noise import HostNoise, LossCause, TailCause
from resources.libraries.python.search.findings.itemize import OVERLOAD
from resources.libraries.python.search.findings.limits import limits
from resources.libraries.python.search.findings.stability import (
    LATENCY,
    of_bands,
    of_bounds,
    of_latency,
    of_repetition,
    of_unseen,
)
from resources.libraries.python.search.throughput import SearchOutcome

MRR = "MRR"
ORR = "ORR"
_COLLAPSE = 0.9
"""Below this share of the rate at a lower load a system forwards less because more is asked of it."""

_ORDER = (
    VerdictKind.NO_TRAFFIC,
    VerdictKind.GENERATOR_BOUND,
    VerdictKind.UNQUALIFIED,
    VerdictKind.DECAYING,
    VerdictKind.BELOW_RANGE,
    VerdictKind.INCOMPLETE,
    VerdictKind.AFFINITY_LOST,
    VerdictKind.EMULATED,
    VerdictKind.OVERSUBSCRIBED,
    VerdictKind.HOST_NOISE,
    VerdictKind.UNSTABLE,
    VerdictKind.VSWITCH_BOUND,
    VerdictKind.NF_BOUND,
    VerdictKind.MEASURED,
)
"""Most important first: no number at all, a number about something else, part of a number, a number with a flaw."""
_SAME_RANK = {VerdictKind.NF_BOUND: VerdictKind.VSWITCH_BOUND}
"""Of the two, the one with more losses comes first, as `limits` orders them."""


def judge(
    plan: Plan,
    *,
    outcome: SearchOutcome | None = None,
    mrr: ReceiveRate | None = None,
    orr: ReceiveRate | None = None,
    mrr_trials: Sequence[TrialResult] = (),
    orr_trials: Sequence[TrialResult] = (),
    latency_trials: Sequence[TrialResult] = (),
    located: LocatedLosses | None = None,
    affinity: Iterable[Affinity] = (),
    affinity_after: Iterable[Affinity] = (),
    complaints: Sequence[str] = (),
    facts: Mapping[str, Mapping[str, str]] | None = None,
    noise: HostNoise | None = None,
    tails: Iterable[TailCause] = (),
    losses: Iterable[LossCause] = (),
    generator: GeneratorRange | None = None,
    latency: Sequence[LatencyAtLoad] = (),
) -> Verdict:
    """Judge a test by all that is known of it.

    Args:
        plan: What was deployed.
        outcome: Of the throughput search, if there was one.
        mrr: Maximum receive rate, if it was measured.
        orr: Overload receive rate, if it was measured.
        mrr_trials: Trials at the highest load, if there were any.
        orr_trials: Trials at a chosen overload, if there were any.
        latency_trials: Trials in which latency was measured, if there were any.
        located: Where packets are lost beyond the limit, if that was looked for.
        affinity: Planned and real placement of the data threads after deployment.
        affinity_after: The same after measuring.
        complaints: Flows that did not arrive, from `load_trials.diagnose`.
        facts: What was found out about the parts, by role.
        noise: The noise floor along the paths, if it was observed.
        tails: Causes of latency tails.
        losses: Causes of losses at NDR and PDR.
        generator: What the generator is qualified for, if it is known.
        latency: By load, if it was measured.
    """
    findings = [Finding(kind=VerdictKind.NO_TRAFFIC, text=complaint) for complaint in complaints]
    if outcome is not None:
        findings += _of_search(outcome)
        findings += of_bounds(outcome)
        findings += noise.findings(outcome.goals) if noise is not None else ()
    if generator is not None:
        findings += generator.of_goals(outcome.goals if outcome is not None else ())
        findings += [*generator.of_rate(MRR, mrr), *generator.of_rate(ORR, orr)]
        findings += generator.of_latency(latency, LATENCY)
    findings += _of_mrr(mrr_trials)
    findings += of_bands(orr_trials, (), (ORR,))
    findings += of_latency(latency_trials, outcome)
    if located is not None:
        findings += _of_location(plan, located, outcome, facts)
    findings += _of_affinity(affinity, affinity_after)
    findings += _of_accelerator(facts or {})
    findings += _of_cores(plan)
    if not findings:
        findings.append(Finding(kind=VerdictKind.MEASURED, text=_calm(outcome, mrr_trials)))
    if mrr is not None and orr is not None and mrr.mean_pps < _COLLAPSE * orr.mean_pps:
        findings.append(Finding(kind=VerdictKind.MEASURED, text=_collapse(mrr, orr), numbers=(MRR,)))
    if outcome is not None:
        # Remarks of a search that changed no kind come last.
        known = {finding.text for finding in findings}
        names = tuple(result.goal.name for result in outcome.goals)
        findings += [
            Finding(kind=VerdictKind.MEASURED, text=line, numbers=names)
            for line in outcome.evidence
            if line not in known
        ]
        findings += of_unseen(outcome)
    findings += [Finding(kind=VerdictKind.MEASURED, text=str(tail), numbers=(LATENCY,)) for tail in tails]
    findings += [Finding(kind=VerdictKind.MEASURED, text=str(cause), numbers=(cause.label,)) for cause in losses]
    return verdict_of(findings)


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Findings in order of importance. `measured` is a verdict only where it is the only one."""
    ordered = sorted(findings, key=lambda finding: _rank(finding.kind))
    return Verdict(
        kinds=ranked(finding.kind for finding in ordered),
        evidence=tuple(dict.fromkeys(finding.text for finding in ordered)),
        findings=tuple(ordered),
    )


def ranked(kinds: Iterable[VerdictKind]) -> tuple[VerdictKind, ...]:
    """Return kinds in order of importance, each once."""
    found = tuple(dict.fromkeys(sorted(kinds, key=_rank)))
    return tuple(kind for kind in found if kind != VerdictKind.MEASURED) or found


def _rank(kind: VerdictKind) -> int:
    own = _SAME_RANK.get(kind, kind)
    return _ORDER.index(own) if own in _ORDER else -1


def verdict_text(kinds: Mapping[str, Sequence[str]]) -> str:
    """Return the verdicts of the figures of a test in one line, separately where they differ.

    Args:
        kinds: By number: NDR, PDR, MRR.
    """
    distinct = list(dict.fromkeys(tuple(row) for row in kinds.values()))
    if len(distinct) == 1:
        return ", ".join(distinct[0])
    return "; ".join(f"{name} {', '.join(row)}" for name, row in kinds.items())


def _of_search(outcome: SearchOutcome) -> list[Finding]:
    findings: list[Finding] = []
    names = tuple(result.goal.name for result in outcome.goals)
    if outcome.generator_bound:
        by_goal = {line: tuple(name for name in names if line.startswith(f"{name}:")) for line in outcome.evidence}
        # Without a line about a goal the generator offered nothing at all.
        lines = {line: about for line, about in by_goal.items() if about} or dict.fromkeys(by_goal, names)
        for line, about in lines.items():
            findings.append(Finding(kind=VerdictKind.GENERATOR_BOUND, text=line, numbers=about))
    if outcome.decay:
        findings.append(Finding(kind=VerdictKind.DECAYING, text=outcome.decay, numbers=names))
    for result in outcome.goals:
        about = (result.goal.name,)
        if not result.complete:
            line = _incomplete(result, outcome)
            findings.append(Finding(kind=VerdictKind.INCOMPLETE, text=line, numbers=about))
        elif result.lower_pps is None:
            findings.append(Finding(kind=VerdictKind.BELOW_RANGE, text=_below(result), numbers=about))
    return findings


def _incomplete(result: GoalResult, outcome: SearchOutcome) -> str:
    name = result.goal.name
    if result.lower_pps is None or result.upper_pps is None:
        which = "lower" if result.lower_pps is None else "upper"
        return f"{name}: no {which} bound after {len(outcome.trials)} trials in {outcome.elapsed_s:.1f} s"
    width = 1 - result.lower_pps / result.upper_pps
    lower, upper = rates(result.lower_pps, result.upper_pps)
    return (
        f"{name}: between {lower} and {upper}, {100 * width:.2g} % apart instead of "
        f"{100 * result.goal.relative_width:g} %, or with too few trials, after {len(outcome.trials)} trials in "
        f"{outcome.elapsed_s:.1f} s"
    )


def _below(result: GoalResult) -> str:
    allowed, lowest = f"{result.goal.loss_ratio:g}", rate(result.lowest_tried_pps)
    return f"{result.goal.name}: loss ratio {allowed} was exceeded even at {lowest}, the lowest load tried"


def _of_mrr(trials: Sequence[TrialResult]) -> list[Finding]:
    findings: list[Finding] = []
    limited = [trial for trial in trials if trial.generator_limited]
    if limited:
        worst = min(limited, key=lambda trial: trial.offered_pps)
        line = (
            f"MRR: the generator limited {len(limited)} of {len(trials)} trials, down to "
            f"{' of '.join(rates(worst.offered_pps, worst.trial.load_pps))}"
        )
        findings.append(Finding(kind=VerdictKind.GENERATOR_BOUND, text=line, numbers=(MRR,)))
    elif trials and all(trial.loss_ratio == 0 for trial in trials):
        line = f"MRR: nothing was lost at {rate(trials[0].trial.load_pps)}, the highest load that can be offered"
        findings.append(Finding(kind=VerdictKind.GENERATOR_BOUND, text=line, numbers=(MRR,)))
    return findings + of_bands(trials, (), (MRR,))


def _collapse(mrr: ReceiveRate, orr: ReceiveRate) -> str:
    return (
        f"MRR: {rate(mrr.mean_pps)} received of {rate(mrr.offered_pps)}, and {rate(orr.mean_pps)} of only "
        f"{rate(orr.offered_pps)}: under more load the system forwards less, so MRR may be below NDR"
    )


def _of_location(
    plan: Plan,
    located: LocatedLosses,
    outcome: SearchOutcome | None,
    facts: Mapping[str, Mapping[str, str]] | None,
) -> list[Finding]:
    if located.purpose == "mrr":
        return limits(plan, located, (MRR, ORR), facts)
    goals = [
        result for result in (outcome.goals if outcome else ()) if result.upper_pps is not None or not result.complete
    ]
    findings = limits(plan, located, (*(result.goal.name for result in goals), OVERLOAD), facts) if goals else []
    return findings + of_repetition(located, goals)


def _of_affinity(rows: Iterable[Affinity], rows_after: Iterable[Affinity]) -> list[Finding]:
    findings: list[Finding] = []
    before = list(rows)
    kept = {row.name for row in before if row.actual_cpus == (row.planned_cpu,)}
    for row in before:
        if row.name not in kept:
            findings.append(Finding(kind=VerdictKind.AFFINITY_LOST, text=f"{_planned(row)} and {_placed(row)}"))
    for row in rows_after:
        if row.actual_cpus != (row.planned_cpu,) and row.name in kept:
            line = f"{_planned(row)}, was there after deployment, and after measuring {_placed(row)}"
            findings.append(Finding(kind=VerdictKind.AFFINITY_LOST, text=line))
    return findings


def _planned(row: Affinity) -> str:
    return f"the data thread of {row.owner} {row.name} is planned on CPU {row.planned_cpu}"


def _placed(row: Affinity) -> str:
    return f"may run on CPUs {', '.join(map(str, row.actual_cpus))}" if row.actual_cpus else "was not found"


def _of_accelerator(facts: Mapping[str, Mapping[str, str]]) -> list[Finding]:
    found = facts.get("functions", {})
    if found.get("accelerator") != "tcg":
        return []
    line = f"virtual machines ran in software emulation (TCG): {found.get('why', 'the reason is not known')}"
    return [Finding(kind=VerdictKind.EMULATED, text=line)]


def _of_cores(plan: Plan) -> list[Finding]:
    if not plan.cores.oversubscribed:
        return []
    rows = [("the plan", plan.cores.cores_needed, plan.cores.cores_there)]
    rows += [(f"the plan for {each.machine}", each.cores_needed, each.cores_there) for each in plan.cores.elsewhere]
    lines = [
        f"{what} needs {needed} cores, {there} are available: data threads share cores"
        for what, needed, there in rows
        if needed > there
    ]
    # Enough cores, and some of them with too few threads: the plan says which.
    lines = lines or [
        f"{text}: data threads share cores" for text in plan.warnings if text.startswith("oversubscribed: ")
    ]
    return [Finding(kind=VerdictKind.OVERSUBSCRIBED, text=line) for line in lines]


def _calm(outcome: SearchOutcome | None, mrr_trials: Sequence[TrialResult]) -> str:
    if outcome is not None:
        return (
            f"bounds of {', '.join(result.goal.name for result in outcome.goals)} are within the goal widths, from "
            f"{len(outcome.trials)} trials in {outcome.elapsed_s:.1f} s, none limited by the generator"
            if not any(trial.generator_limited for trial in outcome.trials)
            else f"bounds are within the goal widths, from {len(outcome.trials)} trials, "
            f"{sum(trial.generator_limited for trial in outcome.trials)} of them short because of the generator, "
            "and repeated or charged"
        )
    if mrr_trials:
        return f"{len(mrr_trials)} trials at the highest load, none limited by the generator"
    return "packets of every service instance arrived in both directions"
