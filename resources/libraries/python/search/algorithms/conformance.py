"""Requirements of the MLRsearch specification that a search result does not meet, with reasons.

The specification is draft-ietf-bmwg-mlrsearch-15, which is becoming RFC 9971. `REQUIREMENTS` names those that a result
can be held against; docs/search.md says for each of them how it is met.
"""

from collections.abc import Iterator, Sequence

from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.model.request.goal import Algorithm, Deviation, GoalResult

REQUIREMENTS = {
    "units": "the report states all units",
    "trial": "a trial is as RFC 2544 describes it, or the report says how it differs",
    "trial-duration": "a trial lasts as long as intended",
    "trial-load": "the report says which interfaces a load is for, with the factor to one interface",
    "traffic-profile": "the report describes the traffic: frames, directions, flows",
    "trial-effective-duration": "the report explains the effective duration of trials",
    "trial-forwarding-ratio": "the ratio is over the frames that were intended to be sent",
    "goal-values": "durations of a goal are positive, its loss ratio and exceed ratio are in [0, 1)",
    "load-classification": "all trials at a load classify it, by the goal's exceed ratio",
    "goal-width": "relevant bounds of a regular result are not farther apart than the goal's width",
    "relevant-lower-bound": "the report shows the relevant lower bound",
    "irregular-result": "values of an irregular result are marked",
    "search-result": "every goal has a result",
    "max-load": "no load above the highest one is chosen",
    "attributes": "the report shows all attributes of the goals",
}
"""By their key in a record."""


def deviations(
    algorithm: Algorithm, goals: Sequence[GoalResult], trials: Sequence[TrialResult]
) -> tuple[Deviation, ...]:
    """The requirements that a result does not meet, in the order of `REQUIREMENTS`; a word may come several times."""
    found = list(_found(algorithm, goals, trials))
    order = list(REQUIREMENTS)
    return tuple(sorted(found, key=lambda each: order.index(each.requirement)))


def _found(algorithm: Algorithm, goals: Sequence[GoalResult], trials: Sequence[TrialResult]) -> Iterator[Deviation]:
    def deviation(requirement: str, text: str) -> Deviation:
        return Deviation(requirement=requirement, text=text)

    yield deviation(
        "trial", "waits around a trial end when counters have settled, instead of the 2 s and 5 s of RFC 2544"
    )
    aborted = sum(each.aborted for each in trials)
    if aborted:
        yield deviation(
            "trial-duration", f"{aborted} of {len(trials)} trials ended early, when they had certainly failed"
        )
    short = [each for each in trials if each.generator_limited and each.unsent is None]
    yield deviation("trial-forwarding-ratio", "over the frames that were sent, if the generator sent nearly all")
    if short:
        line = f"{len(short)} of {len(trials)} trials were left out because the generator fell short of the load"
        yield deviation("load-classification", line)
    highest = max((result.goal.loss_ratio for result in goals), default=0.0)
    partial = [each for each in trials if _ends_before(each, highest)]
    if algorithm is Algorithm.LADDER and partial:
        line = f"{len(partial)} trials were set to end below a loss ratio of {highest:g}, and do not count for it"
        yield deviation("load-classification", line)
    if algorithm is Algorithm.PLR:
        yield deviation("load-classification", "no load is classified: functions are fitted to all trials")
        yield deviation("relevant-lower-bound", "the bounds are an estimate minus and plus its deviation")
    for result in goals:
        if result.lower_pps is None:
            yield deviation("relevant-lower-bound", f"{result.goal.name}: irregular, there is none")
        if not result.complete:
            yield deviation("goal-width", f"{result.goal.name}: irregular, the search ended early")
        elif result.upper_pps is None and result.lower_pps is not None:
            yield deviation("goal-width", f"{result.goal.name}: irregular, no load was an upper bound")


def _ends_before(result: TrialResult, loss_ratio: float) -> bool:
    """Whether a trial was to end before a loss ratio was exceeded."""
    return result.trial.abort_loss_ratio is not None and result.trial.abort_loss_ratio < loss_ratio
