"""Cells on the simulated testbed from search to record: verdicts are the truth that the simulation knows."""

from dataclasses import replace
from unittest.mock import patch

import pytest

from csit_utils.report.details.trial_plots import loss_notes
from resources.libraries.python.driver_registry import generators
from resources.libraries.python.model.request.cell import Cell, TestType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.result import Verdict, VerdictKind
from resources.libraries.python.recording.writer import Draft
from resources.libraries.python.studies.density import run
from resources.libraries.python.studies.density.run import DensityTest
from tests.builders import cell_of
from tests.unit.search.search_fakes import deployed, found, planted

VSWITCH, NF = VerdictKind.VSWITCH_BOUND, VerdictKind.NF_BOUND
HALF = (NfSize.HALF,)
CELLS = {
    cell_of(): VSWITCH,
    cell_of("CSC", 4, 2): VSWITCH,
    cell_of("VSC", 2, 2): VSWITCH,
    cell_of("CSP", 2, 4): VSWITCH,
    cell_of("CSP", 1, 4, nf_sizes=HALF): NF,
    cell_of("CSP", 1, 2, vs_dtc=2, nf_sizes=(NfSize.ONE, NfSize.HALF)): NF,
}


def measured(cell: Cell, test_type: TestType = TestType.NDRPDR, **simulation: object) -> Draft:
    test = deployed(planted(**simulation), cell, test_type=test_type)
    test.verify_traffic()
    if test_type is TestType.MRR:
        test.mrr()
    else:
        test.search(("NDR", "PDR"))
        test.latency()
    test.remove()
    return test.draft


def verdict(cell: Cell, test_type: TestType = TestType.NDRPDR, **simulation: object) -> Verdict:
    found = measured(cell, test_type, **simulation).verdict
    assert found is not None
    return found


@pytest.mark.parametrize("model", ["sharp", "noisy", "stall", "knee", "two_band", "sag"])
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.service_type}{cell.locator}{cell.size_name}")
def test_the_owner_of_the_limit_is_named(cell: Cell, model: str) -> None:
    found = verdict(cell, model=model)
    assert [kind for kind in found.kinds if kind is not VerdictKind.UNSTABLE] == [CELLS[cell]]
    assert found.of("NDR") == found.of("PDR") == found.kinds
    assert found.of("LATENCY") == (VerdictKind.MEASURED,)
    if CELLS[cell] is NF:
        # The slowest is the second of the last cell, the first of equals otherwise.
        slowest = "nf-1-2" if cell.vs_dtc == 2 else "nf-1-1"
        assert all(f" of them at {slowest}:" in line for line in found.evidence if " packets were lost, " in line)
    assert any("was busy for " in line for line in found.evidence)


CSC22 = cell_of("CSC", 2, 2)


def test_a_slow_nf_is_distinguished_from_its_neighbours_with_its_instance() -> None:
    draft = measured(CSC22, model="sharp", limited_by="nf-2-1")
    assert draft.verdict is not None and draft.verdict.kinds == (NF,)
    assert "nf-2-1's data thread" in draft.verdict.evidence[1]
    overload = next(item for item in draft.itemized if item.number == "overload")
    assert overload.worst_instance == 2
    assert overload.fairness is not None and overload.fairness < 0.999
    assert draft.located is not None and {loss.instance for loss in draft.located.hops} == {2}
    # The vSwitch's port towards the NF counts the drops, and the packets not at all.
    assert {(loss.cause, loss.last) for loss in draft.located.hops} == {("queue", "csv2p1"), ("queue", "csv2x2i1")}


def test_an_nf_that_drops_itself_is_no_want_of_cpu() -> None:
    found = verdict(CSC22, model="sharp", limited_by="nf-1-2", drops_inside=True)
    assert found.kinds == (NF,)
    assert "were received at csn1x2i1 and not sent at csn1x2i2" in found.evidence[0]
    assert "not for lack of CPU" in found.evidence[1]


def test_a_thread_that_is_moved_while_it_is_measured_is_noticed() -> None:
    draft = measured(CSC22, moved=("csn2x1i1",))
    assert draft.verdict is not None and draft.verdict.kinds[0] is VerdictKind.AFFINITY_LOST
    assert "nf-2-1 csn2x1i1" in draft.verdict.evidence[0]
    assert "was there after deployment, and after measuring may run on CPUs 0" in draft.verdict.evidence[0]
    assert [row.interface for row in draft.affinity if row.actual_cpus != (row.planned_cpu,)] == ["csn2x1i1"]
    assert draft.verdict.of("LATENCY") == (VerdictKind.AFFINITY_LOST,)


def test_each_number_is_judged_by_itself() -> None:
    """The generator reaches what keeps within PDR's loss ratio, and more than what loses nothing."""
    found = verdict(CSC22, model="knee", knee=0.5, knee_loss=0.004, generator_max_pps=2.3e6)
    assert found.of("NDR") == (VSWITCH,)
    assert found.of("PDR") == (VerdictKind.GENERATOR_BOUND,)
    assert found.kinds == (VerdictKind.GENERATOR_BOUND, VSWITCH)


def test_latency_is_of_shares_of_the_soak_rate_and_the_rate_has_its_verdict() -> None:
    cell = cell_of("CSC", 2, 1)
    experiment = deployed(cell=cell, searched="soak,time=120")
    experiment.search(("NDR", "PDR"))
    said = experiment.latency()
    experiment.remove()
    draft = experiment.draft
    lower, _ = found(draft.soak)
    assert (draft.ndr, draft.pdr) == (None, None)
    loads = {row.label: row.load_pps / lower for row in draft.latency}
    assert loads == pytest.approx({"SOAK0": 0.0, "SOAK10": 0.1, "SOAK50": 0.5, "SOAK90": 0.9})
    assert said[-1].startswith("SOAK90 p99 ")
    assert [item.number for item in draft.itemized] == ["overload"]
    assert draft.verdict.of("SOAK") == (VSWITCH,)
    assert (draft.search.algorithm, draft.search.prior) == ("plr", None)


LOADS = ["NDR", "PDR", "OVERLOAD"]


@pytest.fixture
def searched() -> DensityTest:
    """A cell with its throughput, packets of which are dropped at random while losses are counted."""
    test = deployed(planted(packet_losses={"random_ratio": 0.01}), searched="quick")
    test.search(("NDR", "PDR"))
    return test


@pytest.mark.slow
def test_every_load_has_its_losses_and_a_sentence(searched: DensityTest) -> None:
    before = len(searched.draft.trials)
    said = searched.losses(0.1)
    draft = searched.draft
    searched.remove()
    assert [row.label for row in draft.losses] == LOADS == list(draft.loss_patterns)
    assert " at random" in draft.loss_patterns["NDR"] and draft.loss_patterns["NDR"] in said[0] + said[1]
    assert [trial.trial.purpose for trial in draft.trials[before:]] == ["losses"] * 3
    assert not any(trial.losses for trial in draft.trials)  # the record has them once
    assert draft.losses[2].load_pps == pytest.approx(
        min(1.2 * draft.pdr.lower_pps, searched._highest_loads().search_pps)
    )


def test_a_generator_that_numbers_no_packets_leaves_the_reason_and_the_other_results(searched: DensityTest) -> None:
    counter = replace(generators()["sim"], numbers_packets=False, label="TRex")
    with patch.object(run, "generators", lambda: {"sim": counter}):
        said = searched.losses(0.1)
    draft = searched.draft
    searched.remove()
    reason = "not measured: TRex numbers no packets, so it cannot count losses one by one"
    assert draft.loss_patterns == dict.fromkeys(LOADS, reason) and not draft.losses
    assert said == tuple(f"{load} {reason}" for load in LOADS)
    assert loss_notes(draft.losses, draft.loss_patterns) == tuple(f"{load}: {reason}" for load in LOADS)
    assert draft.ndr is not None
