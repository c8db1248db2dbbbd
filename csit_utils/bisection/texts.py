"""What a bisection has found, in sentences and as JSON."""

from collections.abc import Sequence
from math import exp
from typing import Any

from csit_utils.analysis.bisection import BisectionAnswer, Culprit
from csit_utils.bisection.revisions import Revision
from csit_utils.bisection.run import BisectionResult
from csit_utils.report.units import percent, rate, seconds

NORMAL_95 = 1.96
"""Standard deviations of a 95 % interval."""


def headline(result: BisectionResult, revisions: Sequence[Revision]) -> str:
    """The answer in one sentence."""
    found = result.beliefs
    names = [place(culprit, revisions) for culprit in found.culprits]
    wrong = f"wrong with a probability of at most {percent(max(1 - found.probability, 1e-6))}"
    match found.answer:
        case BisectionAnswer.CULPRIT:
            return f"culprit: {names[0]}: {change(result, found.culprits[0])}; {wrong}"
        case BisectionAnswer.TWO_CULPRITS:
            each = "; ".join(
                f"{name}: {change(result, culprit)}" for name, culprit in zip(names, found.culprits, strict=True)
            )
            return f"two culprits: {each}; {wrong}"
        case BisectionAnswer.NOT_HERE:
            return f"not in these revisions: good and bad do not differ when measured now; {wrong}"
        case _:
            return f"undecided: {'most probable: ' + ', '.join(names) if names else 'good and bad may not differ'}"


def place(culprit: Culprit, revisions: Sequence[Revision]) -> str:
    """The revision, or those of which one is it."""
    last = revisions[culprit.last].label
    if culprit.first == culprit.last:
        return last
    count = culprit.last - culprit.first + 1
    return f"one of {count} revisions from {revisions[culprit.first].label} to {last}"


def change(result: BisectionResult, culprit: Culprit) -> str:
    """By how much the metric changes from one side of a culprit to the other."""
    levels = result.beliefs.levels
    before, after = levels.get(culprit.first - 1), levels.get(culprit.last)
    if before is None or after is None:
        return "change unknown"
    share = percent(exp(after.mean - before.mean) - 1, signed=True)
    return f"{rate(exp(before.mean))} to {rate(exp(after.mean))} ({share})"


def effort(result: BisectionResult, revisions: Sequence[Revision]) -> str:
    """What it took."""
    deployments = sum(map(len, result.observed.values()))
    skipped = f", {len(result.skipped)} could not be measured" if result.skipped else ""
    return (
        f"{result.trials} trials in {deployments} deployments of {len(result.observed)} of {len(revisions)} "
        f"revisions{skipped}, {seconds(result.seconds)}"
    )


def as_object(result: BisectionResult, revisions: Sequence[Revision]) -> dict[str, Any]:
    """The result as one JSON object. Rates are in packets per second."""
    found = result.beliefs
    return {
        "answer": found.answer.value if found.answer else None,
        "probability": found.probability,
        "culprits": [
            {
                "revisions": [each.name for each in revisions[culprit.first : culprit.last + 1]],
                "label": place(culprit, revisions),
                "probability": culprit.probability,
            }
            for culprit in found.culprits
        ],
        "revisions": [
            {
                "number": number,
                "name": revisions[number].name,
                "label": revisions[number].label,
                "values": list(values),
                "level": exp(found.levels[number].mean) if number in found.levels else None,
                "relative_stdev": found.levels[number].stdev if number in found.levels else None,
            }
            for number, values in sorted(result.observed.items())
        ],
        "skipped": [
            {"number": number, "name": revisions[number].name, "reason": reason}
            for number, reason in sorted(result.skipped.items())
        ],
        "trials": result.trials,
        "seconds": result.seconds,
    }
