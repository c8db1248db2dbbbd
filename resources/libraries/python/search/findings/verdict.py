"""May this number be trusted, and what limits it? From what was found to a verdict with its evidence."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import NamedTuple

from resources.libraries.python.model.findings import LocatedLosses
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.goal import GoalResult
from resources.libraries.python.model.result import Affinity, Finding, LatencyAtLoad, ReceiveRate, Verdict, VerdictKind
from resources.libraries.python.quantities import grouped, rate, rates
from resources.libraries.python.search.findings.host_noise import HostNoise, LossCause, TailCause
from resources.libraries.python.search.findings.itemize import OVERLOAD
from resources.libraries.python.search.findings.limits import limits, percent
from resources.libraries.python.search.findings.unseen_bands import SETTLED, UnseenBands, fewest, unseen_bands
from resources.libraries.python.search.qualification import GeneratorRange
from resources.libraries.python.search.throughput import SearchOutcome


class GoalBound(NamedTuple):
    """The lower bound of a goal."""

    name: str
    loss_ratio: float | None
    """None where it was not searched."""
    lower_pps: float | None
    """None where no load met the goal."""


def out_of_order(strict: GoalBound, other: GoalBound) -> Finding | None:
    """Return what is wrong with two goals, if the first one permits less loss."""
    if strict.loss_ratio is None or other.loss_ratio is None or strict.lower_pps is None:
        return None
    other_pps = other.lower_pps or 0.0
    if strict.loss_ratio >= other.loss_ratio or other_pps >= strict.lower_pps:
        return None
    low, high = rates(other_pps, strict.lower_pps)
    text = (
        f"{other.name} of {low} is below {strict.name} of {high}, though it permits more loss: the system was unsteady "
        "between the trials of the two, and another search may find other rates"
    )
    return Finding(kind=VerdictKind.UNSTABLE, text=text, numbers=(strict.name, other.name))


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
    repeated: Sequence[Finding] = (),
) -> Verdict:
    """Judge a test by all that is known of it.

    `complaints`: Flows that did not arrive, from `load_trials.diagnose`.
    `facts`: What was found out about the parts, by role.
    `repeated`: What trials said that were repeated because of what the search found.
    """
    findings = [Finding(kind=VerdictKind.NO_TRAFFIC, text=complaint) for complaint in complaints]
    if outcome is not None:
        findings += _of_search(outcome)
        findings += of_bounds(outcome)
        findings += repeated
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
        findings += [finding for finding in outcome.findings if finding.kind is VerdictKind.MEASURED]
        findings += of_unseen(outcome)
    findings += [Finding(kind=VerdictKind.MEASURED, text=str(tail), numbers=(LATENCY,)) for tail in tails]
    findings += [Finding(kind=VerdictKind.MEASURED, text=str(cause), numbers=(cause.label,)) for cause in losses]
    return verdict_of(findings)


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Findings in order of importance."""
    return Verdict(findings=tuple(sorted(findings, key=lambda finding: rank(finding.kind))))


def rank(kind: VerdictKind) -> int:
    """Lower is more important."""
    own = _SAME_RANK.get(kind, kind)
    return _ORDER.index(own) if own in _ORDER else -1


def verdict_text(kinds: Mapping[str, Sequence[str]]) -> str:
    """Return the verdicts of the figures of a test in one line, separately where they differ."""
    distinct = list(dict.fromkeys(tuple(row) for row in kinds.values()))
    if len(distinct) == 1:
        return ", ".join(distinct[0])
    return "; ".join(f"{name} {', '.join(row)}" for name, row in kinds.items())


def _of_search(outcome: SearchOutcome) -> list[Finding]:
    findings = [finding for finding in outcome.findings if finding.kind is not VerdictKind.MEASURED]
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
    wanted = result.goal.relative_width
    lacking = (
        f"{grouped(100 * width, 2)} % apart instead of {100 * wanted:g} %" if width > wanted else "too few trials there"
    )
    spent = f"after {len(outcome.trials)} trials in {outcome.elapsed_s:.1f} s"
    return f"{name}: between {lower} and {upper}, {lacking}, {spent}"


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


LATENCY = "LATENCY"
MIN_GAP = 0.02
GAP_OVER_SPREAD = 2.0
NEAR = 0.03
"""Loads that differ from a bound by no more are around it, relatively."""
MIN_NDR = 0.7
_MIN_SENT = 0.05
"""Share of a trial that must have been sent to count: what was ended at once says little about a rate. Losses of a
trial that was ended early may be those of a burst; then they differ from trial to trial, and make no narrow group."""


@dataclass(frozen=True, slots=True)
class Bands:
    """Two groups of trials at equal loads."""

    upper_trials: int
    lower_trials: int
    gap: float
    """Between the groups, as a share of what the best trial of the same load forwarded."""
    upper: float
    """Mean share of the best trial of the same load that the upper group forwarded."""
    lower: float
    """The same of the lower group."""
    loads: int
    """Different loads that were looked at."""


def find_bands(trials: Iterable[TrialResult], around_pps: Sequence[float] = ()) -> Bands | UnseenBands | None:
    """Look for two bands.

    `trials`: Any trials; those that say nothing about the system are left out.
    `around_pps`: Bounds, aggregate; empty looks at all loads.

    Returns:
        Bands, or what so few trials say about them; None where no load was tried twice.
    """
    rates: dict[tuple[float, float], list[float]] = defaultdict(list)
    for trial in trials:
        load_pps = trial.trial.load_pps
        if trial.generator_limited or not trial.sent or trial.offered_duration_s < _MIN_SENT * trial.trial.duration_s:
            continue
        if not around_pps or any(abs(load_pps - bound) <= NEAR * bound for bound in around_pps):
            rates[load_pps, trial.trial.duration_s].append(1 - (trial.loss_ratio or 0.0))
    groups = {at: shares for at, shares in rates.items() if len(shares) > 1 and max(shares) > 0}
    found = sorted(
        (1 - share / max(shares), load_pps * share) for (load_pps, _), shares in groups.items() for share in shares
    )
    shortfalls = [shortfall for shortfall, _ in found]
    if not shortfalls:
        return None
    gap, split = max((later - one, index) for index, (one, later) in enumerate(pairwise(shortfalls), 1))
    good, bad = shortfalls[:split], shortfalls[split:]
    # A low band forwards the same at all loads above it, and so falls the further short the higher the load is.
    forwarded_pps = [rate_pps for _, rate_pps in found[split:]]
    same_rate = 1 - min(forwarded_pps) / max(forwarded_pps) if max(forwarded_pps) else 0.0
    spread = max(good[-1] - good[0], min(bad[-1] - bad[0], same_rate))
    far = gap >= max(MIN_GAP, GAP_OVER_SPREAD * spread)
    if not far or min(len(good), len(bad)) < fewest(len(shortfalls)):
        return unseen_bands(len(shortfalls), min(len(good), len(bad)) if far else 0)
    return Bands(
        upper_trials=len(good),
        lower_trials=len(bad),
        gap=gap,
        upper=1 - sum(good) / len(good),
        lower=1 - sum(bad) / len(bad),
        loads=len(groups),
    )


def ndr_share(ndr: GoalResult | None, pdr: GoalResult | None) -> float | None:
    """NDR's upper bound over PDR's lower bound where that is far too low; None otherwise, or where one is unknown."""
    if ndr is None or pdr is None or ndr.upper_pps is None or not pdr.lower_pps:
        return None
    share = ndr.upper_pps / pdr.lower_pps
    return share if share < MIN_NDR else None


def of_bands(trials: Iterable[TrialResult], around_pps: Sequence[float], numbers: tuple[str, ...]) -> list[Finding]:
    """Two bands among trials at or around some loads."""
    bands = find_bands(trials, around_pps)
    if not isinstance(bands, Bands):
        return []
    return [Finding(kind=VerdictKind.UNSTABLE, text=_two_bands(bands), numbers=numbers)]


def of_unseen(outcome: SearchOutcome) -> list[Finding]:
    """How likely the trials around the bounds of a search would have missed two bands, where that is likely."""
    found = find_bands(outcome.trials, bounds) if (bounds := _bounds(outcome)) else None
    if not isinstance(found, UnseenBands) or (not found.low and found.chance <= SETTLED):
        return []
    text = f"{found.text('trial', 'trials')}; {percent(MIN_GAP)} apart or more, at loads around the bounds"
    names = tuple(result.goal.name for result in outcome.goals)
    return [Finding(kind=VerdictKind.MEASURED, text=text, numbers=names)]


def _bounds(outcome: SearchOutcome) -> list[float]:
    return [load for result in outcome.goals for load in (result.lower_pps, result.upper_pps) if load is not None]


def has_bands(outcome: SearchOutcome) -> bool:
    """Whether the trials around the bounds of a search are in two bands."""
    return isinstance(find_bands(outcome.trials, _bounds(outcome)), Bands) if _bounds(outcome) else False


def of_bounds(outcome: SearchOutcome) -> list[Finding]:
    """Two bands around the bounds of a search, and NDR far under PDR."""
    names = tuple(result.goal.name for result in outcome.goals)
    bounds = _bounds(outcome)
    findings = of_bands(outcome.trials, bounds, names) if bounds else []
    share = ndr_share(outcome.ndr, outcome.pdr)
    if share is not None and outcome.ndr and outcome.pdr:
        line = (
            f"NDR is below {rate(outcome.ndr.upper_pps)}, {percent(share)} of PDR's lower bound of "
            f"{rate(outcome.pdr.lower_pps)}: packets are lost occasionally at loads far below the limit"
        )
        findings.append(Finding(kind=VerdictKind.UNSTABLE, text=line, numbers=("NDR", "PDR")))
    return [*findings, *_contradictions(outcome)]


def _contradictions(outcome: SearchOutcome) -> Iterator[Finding]:
    """Trials above a goal's upper bound that met the goal, and a goal above one that permits more loss."""
    again = "the system was unsteady, and another search may find another rate"
    for result in outcome.goals:
        name, upper_pps = result.goal.name, result.upper_pps
        if (passed := _passed_above(result, outcome.trials)) is not None:
            duration_s, load_pps = passed.trial.duration_s, passed.trial.load_pps
            line = f"{name}: a trial of {duration_s:g} s at {rate(load_pps)} met the goal, which failed at "
            line += f"{rate(upper_pps)}: {again}"
            yield Finding(kind=VerdictKind.UNSTABLE, text=line, numbers=(name,))
    found = [GoalBound(each.goal.name, each.goal.loss_ratio, each.lower_pps) for each in outcome.goals]
    yield from filter(None, (out_of_order(strict, other) for strict, other in permutations(found, 2)))


def _passed_above(result: GoalResult, trials: Sequence[TrialResult]) -> TrialResult | None:
    """The trial at the highest load above the upper bound that met a goal of which one trial decides."""
    goal, upper_pps = result.goal, result.upper_pps
    if goal.exceed_ratio or upper_pps is None:
        return None
    long = [
        (each, ratio)
        for each in trials
        if each.is_evidence
        and each.trial.purpose == "search"
        and each.trial.duration_s >= goal.initial_trial_duration_s
        and (ratio := each.charged_loss_ratio) is not None
    ]
    failed_s = [
        each.trial.duration_s for each, ratio in long if each.trial.load_pps == upper_pps and ratio > goal.loss_ratio
    ]
    passed = [
        each
        for each, ratio in long
        if each.trial.load_pps > upper_pps
        and ratio <= goal.loss_ratio
        and not each.aborted
        and each.trial.duration_s >= min(failed_s, default=0.0)
    ]
    return max(passed, key=lambda each: each.trial.load_pps, default=None)


def of_repetition(located: LocatedLosses, goals: Iterable[GoalResult]) -> list[Finding]:
    """A trial beyond a goal's upper bound that still met the goal."""
    lost, findings = located.sent - located.received, []
    for result in goals:
        beyond = result.upper_pps is not None and result.upper_pps <= located.offered_pps
        if beyond and lost <= located.sent * result.goal.loss_ratio:
            line = (
                f"{result.goal.name}: {max(0, lost):,} of {located.sent:,} packets were lost in a later trial at "
                f"{rate(located.offered_pps)}, beyond the upper bound of {rate(result.upper_pps)}: results of the "
                "system are not reproducible"
            )
            findings.append(Finding(kind=VerdictKind.UNSTABLE, text=line, numbers=(result.goal.name,)))
    return findings


def of_latency(trials: Sequence[TrialResult], outcome: SearchOutcome | None) -> list[Finding]:
    """Loads of latency trials lie below PDR: what goes wrong there speaks against the latency, and against PDR."""
    findings: list[Finding] = []
    pdr = outcome.pdr if outcome else None
    for trial in trials:
        load_pps, loss_ratio = trial.trial.load_pps, trial.loss_ratio
        if trial.generator_limited:
            line = f"latency: the generator offered {' of '.join(rates(trial.offered_pps, load_pps))}"
            findings.append(Finding(kind=VerdictKind.GENERATOR_BOUND, text=line, numbers=(LATENCY,)))
        elif pdr is not None and loss_ratio is not None and loss_ratio > pdr.goal.loss_ratio:
            line = (
                f"{percent(loss_ratio, 2)} of the packets were lost at {rate(load_pps)} while latency was measured, "
                f"below PDR's lower bound of {rate(pdr.lower_pps or 0)}"
            )
            findings.append(Finding(kind=VerdictKind.UNSTABLE, text=line, numbers=("PDR", LATENCY)))
    return findings


def _two_bands(bands: Bands) -> str:
    where = "the highest load" if bands.loads == 1 else f"{bands.loads} loads around the bounds"
    return (
        f"two bands: of {bands.upper_trials + bands.lower_trials} trials at {where} {bands.lower_trials} forwarded "
        f"{percent(bands.lower, 1)} and {bands.upper_trials} forwarded {percent(bands.upper, 1)} of the best at the "
        f"same load, none in between ({percent(bands.gap, 1)} wide)"
    )
