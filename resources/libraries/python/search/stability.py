"""Findings of an unstable system: from bands, bounds and later trials."""

from collections.abc import Iterable, Sequence

from resources.libraries.python.model.evidence import Located
from resources.libraries.python.model.goal import GoalResult
from resources.libraries.python.model.result import Finding, VerdictKind
from resources.libraries.python.model.trial import TrialResult
from resources.libraries.python.search.bands import Bands, find_bands, ndr_share
from resources.libraries.python.search.limits import percent
from resources.libraries.python.search.throughput import SearchOutcome

LATENCY = "LATENCY"


def of_bands(trials: Iterable[TrialResult], around_pps: Sequence[float], numbers: tuple[str, ...]) -> list[Finding]:
    """Two bands among trials at or around some loads."""
    bands = find_bands(trials, around_pps)
    return [Finding(kind=VerdictKind.UNSTABLE, text=_two_bands(bands), numbers=numbers)] if bands else []


def of_bounds(outcome: SearchOutcome) -> list[Finding]:
    """Two bands around the bounds of a search, and NDR far under PDR."""
    names = tuple(result.goal.name for result in outcome.goals)
    bounds = [load for result in outcome.goals for load in (result.lower_pps, result.upper_pps) if load is not None]
    findings = of_bands(outcome.trials, bounds, names) if bounds else []
    share = ndr_share(outcome.ndr, outcome.pdr)
    if share is not None and outcome.ndr and outcome.pdr:
        line = (
            f"NDR is below {outcome.ndr.upper_pps:.0f} pps, {percent(share)} of PDR's lower bound of "
            f"{outcome.pdr.lower_pps:.0f} pps: packets are lost occasionally at loads far below the limit"
        )
        findings.append(Finding(kind=VerdictKind.UNSTABLE, text=line, numbers=("NDR", "PDR")))
    return findings


def of_repetition(located: Located, goals: Iterable[GoalResult]) -> list[Finding]:
    """A trial beyond a goal's upper bound that still met the goal."""
    lost, findings = located.sent - located.received, []
    for result in goals:
        beyond = result.upper_pps is not None and result.upper_pps <= located.offered_pps
        if beyond and lost <= located.sent * result.goal.loss_ratio:
            line = (
                f"{result.goal.name}: {max(0, lost)} of {located.sent} packets were lost in a later trial at "
                f"{located.offered_pps:.0f} pps, beyond the upper bound of {result.upper_pps:.0f} pps: results of the "
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
            line = f"latency: the generator offered {trial.offered_pps:.0f} pps of {load_pps:.0f} pps"
            findings.append(Finding(kind=VerdictKind.GENERATOR_BOUND, text=line, numbers=(LATENCY,)))
        elif pdr is not None and loss_ratio is not None and loss_ratio > pdr.goal.loss_ratio:
            line = (
                f"{percent(loss_ratio, 2)} of the packets were lost at {load_pps:.0f} pps while latency was measured, "
                f"below PDR's lower bound of {pdr.lower_pps or 0:.0f} pps"
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
