"""Findings of an unstable system: from bands, bounds and later trials.

**Two bands.** A system in two bands forwards one of two rates at the same load, trial by trial. For each load the
*shortfall* of a trial is how much less it forwarded than the best trial of that load, as a share of what that one
forwarded; a system without any variation has shortfalls of 0 at every load. Shortfalls of loads around the bounds are
pooled, sorted, and split at their largest gap. There are two bands when

- the gap is at least `MIN_GAP`: closer bands are within other noise,
- the gap is at least `GAP_OVER_SPREAD` times as wide as either group: groups, and not the tail of one distribution,
- either group has `fewest` trials: a band, and not an outlier.

**Contradictions.** Where one trial decides, a trial may meet a goal at a load above one that has failed it. Whatever
decides, NDR may be above PDR.

**NDR far below PDR.** Where the upper bound of NDR is below `MIN_NDR` of the lower bound of PDR, packets are lost all
the time in a third of the load range, without saturation.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from resources.libraries.python.model.findings.evidence import LocatedLosses
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.model.request.goal import GoalResult
from resources.libraries.python.model.result import Finding, VerdictKind
from resources.libraries.python.quantities import rate, rates
from resources.libraries.python.search.findings.goal_order import GoalBound, out_of_order
from resources.libraries.python.search.findings.limits import percent
from resources.libraries.python.search.findings.unseen_bands import SETTLED, UnseenBands, fewest, unseen_bands
from resources.libraries.python.search.throughput import SearchOutcome

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

    Args:
        trials: Any trials; those that say nothing about the system are left out.
        around_pps: Bounds, aggregate; empty looks at all loads.

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
    text = f"{found.text('trial', 'trials')}; {MIN_GAP:.0%} apart or more, at loads around the bounds"
    names = tuple(result.goal.name for result in outcome.goals)
    return [Finding(kind=VerdictKind.MEASURED, text=text, numbers=names)]


def _bounds(outcome: SearchOutcome) -> list[float]:
    return [load for result in outcome.goals for load in (result.lower_pps, result.upper_pps) if load is not None]


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
