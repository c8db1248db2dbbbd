"""A density test after its search: call stacks, costs and power, whose failures cost nothing else; repeated trials."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from robot.api import SkipExecution

from resources.libraries.python.drivers.sim.drivers import SimSwitch
from resources.libraries.python.errors import NotReady, PlanError, Unsupported
from resources.libraries.python.model.measurements.node_costs import NodeCost, NodeCosts
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest, VerdictKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.DensityLibrary import DensityLibrary, result_in_words
from resources.libraries.python.studies.density.planning.matrix import cell_key, journal_name
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.builders import NOWHERE, SIM, Altered, cell_of, raising
from tests.unit.csit_utils.builders import soaked
from tests.unit.search.search_fakes import deployed, planted
from tests.unit.studies.worlds import Probe

COUNTED = NodeCost(part="vswitch", thread="vpp_wk_0", node="ip4-lookup", packets=500, calls=10, cost=30.0)
SILENT = NotReady("perf", 30.0, "nothing")


def measured(test_type: TestType = TestType.NDRPDR, searched: str = "quick", **simulation: Any) -> Any:
    """A cell of one NF, measured with a search profile and removed."""
    test = deployed(planted(**simulation), searched=searched, test_type=test_type)
    test.mrr() if test_type is TestType.MRR else test.search(["NDR", "PDR"])
    test.remove()
    return test.draft


@pytest.fixture
def searched() -> Iterator[DensityTest]:
    test = deployed(searched="quick")
    test.search(["NDR", "PDR"])
    yield test
    test.remove()


def equip(test: DensityTest, **parts: Any) -> None:
    test.deployment.parts = replace(test.deployment.parts, **parts)


def test_stacks_are_sampled_at_pdr_in_a_trial_after_the_search(searched: DensityTest) -> None:
    trials = len(searched.draft.trials)
    assert searched.stacks(5.0) == searched.draft.stacks_sampled
    found, pdr = searched.draft.stacks, searched.draft.pdr
    (last,) = searched.draft.trials[trials:]
    assert (last.trial.purpose, last.trial.load_pps, last.trial.duration_s) == ("stacks", pdr.lower_pps, 5.0)
    assert (found.label, found.load_pps, found.received) == ("PDR", pdr.lower_pps, last.received)
    (node,) = found.nodes
    assert node.event == "sim" and found.total > 100
    assert {stack.split(";")[0] for stack in node.stacks} == {"nf-1-1", "vswitch"}


def test_a_sampler_that_fails_is_a_warning_and_one_whose_trial_fails_is_stopped(
    searched: DensityTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = {"starts": Unsupported("perf is not installed")}, {"starts": SILENT}, {"ends": SILENT}
    for failure in failures:
        equip(searched, stacks=Probe(**failure))
        said = searched.stacks(1.0)
        assert said.startswith("call stacks were not sampled: ") and searched.draft.warnings[-1] == said
        assert searched.draft.stacks is None and searched.draft.stacks_sampled is None
    equip(searched, stacks=(sampler := Probe(ends=SILENT)))
    monkeypatch.setattr(searched, "measure", raising(NotReady("the generator", 1.0, "nothing")))
    with pytest.raises(NotReady, match="the generator"):
        searched.stacks(1.0)
    assert not sampler.running
    searched.draft.ndr = searched.draft.pdr = None
    assert searched.stacks(1.0).endswith(": no rate was found")


def test_a_vswitch_counts_its_own_work_in_this_trial(searched: DensityTest) -> None:
    draft, trials = searched.draft, len(searched.draft.trials)
    counts = {"begin_accounts": lambda: ("vswitch",), "accounts": lambda: (COUNTED,) * (len(draft.trials) - trials)}
    equip(searched, switch=Altered(searched.deployment.parts.switch, **counts))
    searched.stacks(1.0)
    assert draft.stacks.accounts == (COUNTED,)


def asked(test_type: TestType, topology: Topology = SIM, nf_chains: int = 1) -> DensityTest:
    request = MeasurementRequest(
        test_type=test_type, cell=cell_of(nf_chains=nf_chains), frame=frame("64B"), profile=profile("quick")
    )
    return DensityTest(topology, make_testbed(topology), request, NOWHERE)


def test_a_node_without_a_meter_is_a_warning_and_has_no_power() -> None:
    test = asked(TestType.NDRPDR, planted(power={"platform_w": 0.0}))
    test.idle_energy(1.0)
    test.deploy()
    found = test.energy(1.0)
    test.remove()
    assert list(found.unmetered) == ["DUT1"] and not any(row.nodes for row in found.loads)
    assert found.watts("PDR0") is None and found.joules_per_packet("PDR0") is None
    assert test.draft.warnings.count(f"energy of DUT1: {found.unmetered['DUT1']}") == 1


def test_only_a_cell_that_planning_refuses_is_unfit() -> None:
    small, large = asked(TestType.MRR), asked(TestType.MRR, nf_chains=40)
    small.plan()
    with pytest.raises(PlanError):
        large.plan()
    assert (small.draft.unfit, large.draft.unfit) == (False, True)


PLANTED = {"ip4-lookup": {"clocks": 30, "packets_per_call": 4}, "ip4-rewrite": {"clocks": 12.5}}


def test_costs_are_those_of_one_trial_at_pdr() -> None:
    draft = measured(node_costs=PLANTED)
    found = draft.costs
    (trial,) = (each for each in draft.trials if each.trial.purpose == "costs")
    assert (found.load, found.load_pps, found.received) == ("PDR", draft.pdr.lower_pps, trial.received)
    assert found.loss_ratio == pytest.approx(trial.loss_ratio) and trial.loss_ratio > 0
    rows = {row.node: row for row in found.nodes}
    assert {name: row.cost for name, row in rows.items()} == {"ip4-lookup": 30.0, "ip4-rewrite": 12.5}
    assert rows["ip4-lookup"].packets == pytest.approx(2 * trial.received, rel=0.01), "to the NF, and from it"
    assert found.vswitch_clocks == pytest.approx(2 * 42.5, rel=0.01)
    (lookup, _) = found.by_node(2)
    assert lookup.packets_per_call == pytest.approx(4)


def test_costs_in_mrr_or_of_a_vswitch_that_counts_nothing_take_no_trial_of_their_own() -> None:
    mrr, nothing = measured(TestType.MRR, node_costs=PLANTED), measured()
    assert mrr.costs.load == "MRR" and mrr.costs.received == sum(each.received for each in mrr.trials)
    assert nothing.costs is None
    assert not any(each.trial.purpose == "costs" for draft in (mrr, nothing) for each in draft.trials)


@pytest.mark.parametrize("call", ["begin_accounts", "accounts"])
@pytest.mark.parametrize("test_type", [TestType.NDRPDR, TestType.MRR])
def test_a_silent_program_costs_a_warning(monkeypatch: pytest.MonkeyPatch, call: str, test_type: TestType) -> None:
    monkeypatch.setattr(SimSwitch, call, raising(NotReady("VPP", 10.0, "no answer")))
    draft = measured(test_type, node_costs=PLANTED)
    assert draft.costs is None and any("no answer" in text for text in draft.warnings)
    assert (draft.mrr if test_type is TestType.MRR else draft.pdr) is not None


def test_threads_of_a_node_are_one_row_and_the_lightest_nodes_are_left_out() -> None:
    def row(node: str, thread: str, packets: int, cost: float | None, calls: int | None = 10) -> NodeCost:
        return NodeCost(part="vswitch", thread=thread, node=node, packets=packets, calls=calls, cost=cost, error=0.5)

    nodes = (
        row("light", "wk_0", 10, 1.0), row("lookup", "wk_0", 100, 20.0), row("lookup", "wk_1", 300, 40.0),
        row("output", "wk_0", 50, None, calls=None),
    )  # fmt: skip
    found = NodeCosts(load="PDR", load_pps=1e6, received=200, read_s=0.1, nodes=nodes)
    (lookup,) = found.by_node(1)
    assert (lookup.cost, lookup.packets, lookup.packets_per_call, lookup.error) == (35.0, 400, 20.0, 0.5)
    assert [(each.node, each.cost) for each in found.by_node(3)] == [("light", 1.0), ("lookup", 35.0), ("output", None)]
    assert found.vswitch_clocks == (10 + 14_000) / 200


def test_a_soak_is_reported_with_its_verdict() -> None:
    assert result_in_words(soaked()) == "SOAK 200 kpps [unstable]"


def test_every_test_of_a_matrix_has_a_name_of_its_own() -> None:
    changes = ({}, {"nf_chains": 2}, {"nf_nodes": 2}, {"nf_sizes": ("0.5c",)}, {"vs_dtc": 2}, {"nf_kinds": ("sim",)})
    cells = [cell_of(**change) for change in changes]
    assert len({cell_key(each) for each in cells}) == len(cells)
    of_types = product(cells, ("64B", "IMIX"), ("MRR", "NDRPDR"))
    assert len({journal_name(*each) for each in of_types}) == 4 * len(cells)


def test_a_test_is_skipped_where_the_generator_cannot_send_its_flows() -> None:
    library: Any = DensityLibrary()
    library._test = SimpleNamespace(verify_traffic=raising(Unsupported("flows: 24, at most 16 are possible")))
    with pytest.raises(SkipExecution, match="24, at most 16"):
        library.verify_traffic()


def findings(seed: int, **planted: object) -> dict[VerdictKind, str]:
    """What the verdict says of repeated trials, by kind."""
    draft = measured(searched="ladder", seed=seed, **planted)
    assert any(each.trial.purpose == "repeated" for each in draft.trials) is bool(planted)
    return {each.kind: each.text for each in draft.verdict.findings if "further trials at" in each.text}


@pytest.mark.parametrize("seed", range(3))
def test_a_decay_names_the_memory_that_leaks_and_nothing_where_no_reading_rises(seed: int) -> None:
    found = findings(seed, model="sharp", decay={"per_minute": 0.05, "leak_mib": 100})
    assert "memory of nf-1-1 from" in found[VerdictKind.DECAYING]
    assert "memory" not in findings(seed, model="sharp", decay={"per_minute": 0.05})[VerdictKind.DECAYING]


@pytest.mark.parametrize("seed", range(3))
def test_waiting_for_a_cpu_is_named_where_it_makes_the_lower_band_and_a_steady_cell_repeats_nothing(seed: int) -> None:
    found = findings(seed, model="two_band", low_band=0.9, low_band_share=0.3)
    assert "waits for its CPU from 0 to 100 ms/s" in found[VerdictKind.UNSTABLE]
    assert not findings(seed)
