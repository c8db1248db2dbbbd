"""Throughput per instance and direction: sums agree with the aggregate, fairness stays within its bounds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.model.measurements.trial import Direction, FlowCount, Trial, TrialResult
from resources.libraries.python.model.request.goal import Goal, GoalResult
from resources.libraries.python.search.findings.itemize import itemize, itemize_goal, jain_index
from tests.builders import finished
from tests.unit.search.search_fakes import FRAME

Counts = list[list[tuple[int, int]]]
"""By trial and flow: packets sent and lost."""


def trials_of(counts: Counts, load_pps: float = 1e6, duration_s: float = 1.0, **fields: Any) -> list[TrialResult]:
    """Trials whose flows are instances 1, 1, 2, 2, ... in both directions."""
    trial = Trial(load_pps=load_pps, duration_s=duration_s, frame=FRAME)
    ends = [{"instance": 1 + index // 2, "direction": list(Direction)[index % 2]} for index in range(10)]
    return [
        finished(
            trial,
            flows=tuple(
                FlowCount(**end, sent=sent, received=max(0, sent - lost))
                for end, (sent, lost) in zip(ends, row, strict=False)
            ),
            **fields,
        )
        for row in counts
    ]


flows = st.tuples(st.integers(1, 10**7), st.integers(0, 10**7))
counts = st.integers(1, 5).flatmap(
    lambda count: st.lists(st.lists(flows, min_size=2 * count, max_size=2 * count), min_size=1, max_size=4)
)


@given(counts)
def test_the_flows_sum_up_to_the_trials(rows: Counts) -> None:
    trials = trials_of(rows)
    found = itemize("PDR", trials)
    assert found is not None and sum(flow.sent for flow in found.flows) == sum(trial.sent for trial in trials)
    assert sum(flow.received for flow in found.flows) == sum(trial.received for trial in trials)
    aggregate_pps = sum(trial.forwarded_pps for trial in trials) / len(trials)
    assert sum(flow.forwarded_pps for flow in found.flows) == pytest.approx(aggregate_pps)
    worst = [flow.loss_ratio for flow in found.flows if flow.instance == found.worst_instance]
    assert min(worst) - 1e-9 <= found.worst_loss_ratio <= max(worst) + 1e-9
    assert found.worst_loss_ratio >= max(0.0, 1 - aggregate_pps / sum(flow.offered_pps for flow in found.flows)) - 1e-9


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=20))
def test_jains_index_is_between_one_nth_and_one(values: list[float]) -> None:
    index = jain_index(values)
    if not any(values):
        assert index is None
        return
    assert index is not None and 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert jain_index(values[::-1]) == pytest.approx(index)
    assert jain_index([1, 2]) == pytest.approx(0.9) and jain_index([]) is None


def test_the_worst_instance_is_the_one_that_loses_most_of_its_share() -> None:
    found = itemize("MRR", trials_of([[(100, 0), (100, 0), (100, 30), (100, 10), (100, 20), (100, 0)]]))
    assert found is not None and (found.worst_instance, found.worst_loss_ratio) == (2, pytest.approx(0.2))
    assert found.fairness == pytest.approx((200 + 160 + 180) ** 2 / (3 * (200**2 + 160**2 + 180**2)))
    alone = itemize("MRR", trials_of([[(100, 0), (100, 50)]]))
    assert alone is not None and alone.fairness is None


def test_a_goal_is_itemized_by_the_trials_that_met_it_at_its_lower_bound() -> None:
    goal = Goal(name="PDR", loss_ratio=0.005)
    good, bad = [(1000, 4), (1000, 0)], [(1000, 40), (1000, 40)]
    trials = [
        *trials_of([good, bad]),
        *trials_of([good], load_pps=9e5),
        *trials_of([good], generator_limited=True),
        *trials_of([good], aborted=True),
        *trials_of([good], duration_s=0.1),
    ]
    result = GoalResult(goal=goal, lower_pps=1e6, upper_pps=1.004e6, throughput_pps=1e6, complete=True)
    found = itemize_goal(result, trials)
    assert found is not None and (found.trials, found.load_pps) == (1, 1e6)
    assert [(flow.sent, flow.received) for flow in found.flows] == [(1000, 996), (1000, 1000)]
    assert itemize_goal(result.model_copy(update={"lower_pps": None}), trials) is None
