"""A throughput figure per instance and direction, the worst instance, and how fairly they share.

The draft (draft-mkonstan-nf-service-density) asks for throughput, loss and latency per service instance and direction.
Trials count packets that way; here those of one load are added up. Offered rates are equal for all flows by
construction of a trial, so the fairness of what is forwarded is that of the system under test.
"""

from collections.abc import Iterable, Sequence

from resources.libraries.python.model.findings import FlowRate, ItemizedFigure
from resources.libraries.python.model.measurements.trial import Direction, TrialResult
from resources.libraries.python.model.request.goal import GoalResult

OVERLOAD = "overload"
"""Name of what is forwarded beyond the bounds, in the trial that locates losses."""
_SAME_LOAD = 1e-9
"""Loads that differ by less, relatively, are equal."""


def jain_index(values: Sequence[float]) -> float | None:
    """Jain's fairness index, (sum x)^2 / (n * sum x^2); None for nothing, or for nothing but zeros.

    Jain, Chiu, Hawe: A quantitative measure of fairness, DEC-TR-301, 1984.
    """
    # Of shares, since squares of rates may overflow.
    largest = max(values, default=0.0)
    shares = [value / largest for value in values] if largest > 0 else []
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares)) if shares else None


def itemize(number: str, trials: Iterable[TrialResult]) -> ItemizedFigure | None:
    """Add up the flows of trials of one load.

    Returns:
        None where nothing was sent.
    """
    counted = [trial for trial in trials if trial.sent]
    if not counted:
        return None
    seconds = sum(trial.offered_duration_s for trial in counted)
    sums: dict[tuple[int, Direction], list[int]] = {}
    for trial in counted:
        for flow in trial.flows:
            row = sums.setdefault((flow.instance, flow.direction), [0, 0])
            row[0] += flow.sent
            row[1] += flow.received
    flows = tuple(
        FlowRate(
            instance=instance,
            direction=direction,
            sent=sent,
            received=received,
            offered_pps=sent / seconds,
            forwarded_pps=received / seconds,
            loss_ratio=_loss(sent, received),
        )
        for (instance, direction), (sent, received) in sums.items()
    )
    instances = list(dict.fromkeys(flow.instance for flow in flows))
    rates = [sum(flow.forwarded_pps for flow in flows if flow.instance == each) for each in instances]
    losses = {
        each: _loss(
            sum(flow.sent for flow in flows if flow.instance == each),
            sum(flow.received for flow in flows if flow.instance == each),
        )
        for each in instances
    }
    worst = max(instances, key=lambda each: losses[each])
    return ItemizedFigure(
        number=number,
        load_pps=counted[0].trial.load_pps,
        trials=len(counted),
        flows=flows,
        fairness=jain_index(rates) if len(instances) > 1 else None,
        worst_instance=worst,
        worst_loss_ratio=losses[worst],
    )


def itemize_goal(found: GoalResult, trials: Iterable[TrialResult]) -> ItemizedFigure | None:
    """Itemize a goal at its lower bound: the trials there that met it and ran to their end.

    Returns:
        None where there is no lower bound, or no such trial is known.
    """
    load_pps, name = found.lower_pps, found.goal.name
    if load_pps is None:
        return None
    good = [
        trial
        for trial in trials
        if trial.trial.purpose == "search"
        and abs(trial.trial.load_pps - load_pps) <= _SAME_LOAD * load_pps
        and not (trial.generator_limited or trial.aborted)
        and trial.loss_ratio is not None
        and trial.loss_ratio <= found.goal.loss_ratio
    ]
    longest_s = max((trial.trial.duration_s for trial in good), default=0.0)
    # Short trials were made on the way, and long ones decided.
    return itemize(name, [trial for trial in good if trial.trial.duration_s >= longest_s])


def _loss(sent: int, received: int) -> float:
    return max(0.0, 1 - received / sent) if sent else 0.0
