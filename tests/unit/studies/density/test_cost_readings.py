"""Costs by node: read once, in a trial at PDR or those of MRR, and only where something counts."""

import pytest

from resources.libraries.python.drivers.sim.drivers import SimSwitch
from resources.libraries.python.errors import NotReady
from resources.libraries.python.model.measurements.node_costs import NodeCost, NodeCosts
from resources.libraries.python.model.request.cell import TestType
from tests.unit.studies.density.simulated import measured

PLANTED = {"ip4-lookup": {"clocks": 30, "packets_per_call": 4}, "ip4-rewrite": {"clocks": 12.5}}


def test_costs_are_those_of_one_trial_at_pdr() -> None:
    draft = measured(TestType.NDRPDR, node_costs=PLANTED).draft
    found = draft.costs
    (trial,) = (each for each in draft.trials if each.trial.purpose == "costs")
    assert (found.load, found.load_pps, found.received) == ("PDR", draft.pdr.lower_pps, trial.received)
    rows = {row.node: row for row in found.nodes}
    assert {name: row.cost for name, row in rows.items()} == {"ip4-lookup": 30.0, "ip4-rewrite": 12.5}
    assert rows["ip4-lookup"].packets == pytest.approx(2 * trial.received, rel=0.01), "to the NF, and from it"
    assert found.vswitch_clocks == pytest.approx(2 * 42.5, rel=0.01)
    (lookup, _) = found.by_node(2)
    assert lookup.packets_per_call == pytest.approx(4)


def test_costs_in_mrr_take_no_trial_of_their_own() -> None:
    draft = measured(TestType.MRR, node_costs=PLANTED).draft
    assert draft.costs.load == "MRR" and draft.costs.received == sum(each.received for each in draft.trials)
    assert not any(each.trial.purpose == "costs" for each in draft.trials)


def test_a_vswitch_that_counts_nothing_costs_no_trial() -> None:
    draft = measured(TestType.NDRPDR).draft
    assert draft.costs is None and not any(each.trial.purpose == "costs" for each in draft.trials)


@pytest.mark.parametrize("call", ["begin_accounts", "accounts"])
@pytest.mark.parametrize("test_type", [TestType.NDRPDR, TestType.MRR])
def test_a_program_that_does_not_answer_costs_nothing_but_a_warning(
    monkeypatch: pytest.MonkeyPatch, call: str, test_type: TestType
) -> None:
    def silent(_: object) -> None:
        raise NotReady("VPP", 10.0, "no answer")

    monkeypatch.setattr(SimSwitch, call, silent)
    draft = measured(test_type, node_costs=PLANTED).draft
    assert draft.costs is None and any("no answer" in text for text in draft.warnings)
    assert (draft.mrr if test_type is TestType.MRR else draft.pdr) is not None


def test_threads_of_a_node_are_one_row_and_the_lightest_nodes_are_left_out() -> None:
    def row(node: str, thread: str, packets: int, cost: float | None, calls: int | None = 10) -> NodeCost:
        return NodeCost(part="vswitch", thread=thread, node=node, packets=packets, calls=calls, cost=cost, error=0.5)

    nodes = (
        row("light", "wk_0", 10, 1.0),
        row("lookup", "wk_0", 100, 20.0),
        row("lookup", "wk_1", 300, 40.0),
        row("output", "wk_0", 50, None, calls=None),
    )
    found = NodeCosts(load="PDR", load_pps=1e6, received=200, read_s=0.1, nodes=nodes)
    (lookup,) = found.by_node(1)
    assert (lookup.cost, lookup.packets, lookup.packets_per_call, lookup.error) == (35.0, 400, 20.0, 0.5)
    assert [(each.node, each.cost) for each in found.by_node(3)] == [("light", 1.0), ("lookup", 35.0), ("output", None)]
    assert found.vswitch_clocks == (10 + 14_000) / 200
