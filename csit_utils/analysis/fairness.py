"""Whether service instances get equal shares. Rates are equal for all instances by construction of a trial."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from csit_utils.analysis.grouping import Metric
from csit_utils.dataset.rows import FlowRow, TestRow


@dataclass(frozen=True)
class Fairness:
    """Shares of the instances in the packets that came back."""

    metric: Metric
    """At which load: the PDR lower bound, or the highest load."""
    index: float
    """Jain's index: 1 when all are equal, 1/n when one has everything."""
    worst_instance: int
    worst_loss_ratio: float
    best_loss_ratio: float
    instances: int
    trials: int


def jain_index(values: Sequence[float]) -> float | None:
    """Jain's fairness index, (sum x)^2 / (n * sum x^2); None for nothing, or for nothing but zeros."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else None


def fairness(row: TestRow, flows: Iterable[FlowRow]) -> Fairness | None:
    """Fairness of one test: at the trials of its PDR lower bound, or else at its MRR trials.

    Args:
        row: The test.
        flows: Counts of this test.

    Returns:
        None for a single instance, and where there are no such trials.
    """
    counts = list(flows)
    if row.pdr_lower_pps is not None:
        metric, load = Metric.PDR, row.pdr_lower_pps
        chosen = [flow for flow in counts if flow.purpose == "search" and _close(flow.intended_pps, load)]
    else:
        metric = Metric.MRR
        chosen = [flow for flow in counts if flow.purpose == "mrr"]
    sent: dict[int, int] = {}
    received: dict[int, int] = {}
    for flow in chosen:
        sent[flow.instance] = sent.get(flow.instance, 0) + flow.sent
        received[flow.instance] = received.get(flow.instance, 0) + flow.received
    index = jain_index(list(received.values()))
    if len(received) < 2 or index is None or not all(sent.values()):
        return None
    loss = {instance: max(0.0, 1 - received[instance] / sent[instance]) for instance in sent}
    worst = max(loss, key=lambda instance: (loss[instance], -instance))
    trials = len({flow.trial for flow in chosen})
    return Fairness(metric, index, worst, loss[worst], min(loss.values()), len(received), trials)


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-6 * max(one, other, 1.0)
