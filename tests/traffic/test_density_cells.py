"""One cell of each kind of container service with real packets: a chain across the vSwitch, and two pipelines."""

import pytest

from resources.libraries.python.model.request.kinds import NfKind
from tests.integration.robot_runs import DENSITY
from tests.traffic.local_runs import MRR, ROUTER, FinishedRun, finished

pytestmark = pytest.mark.root

NFS = {"CSC 1R2C": {"nf-1-1", "nf-1-2"}, "CSP 2R1C": {"nf-1-1", "nf-2-1"}}
"""Network functions by service type and cell."""
FLOWS = {
    "CSC 1R2C": {(1, "forward"), (1, "reverse")},
    "CSP 2R1C": {(1, "forward"), (1, "reverse"), (2, "forward"), (2, "reverse")},
}
"""Service instances and directions of packets."""
SENDING = {"XDP live frames", "AF_PACKET TX ring"}
"""Ways to send of the built-in generator: which it takes depends on the kernel, and on libbpf being installed."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """Both cells in one run."""
    tags = [word for name in NFS for word in ("--include", "AND".join(reversed(name.split())))]
    options = ("-v", "NF_SIZES:1c", "-v", f"SEARCH:{MRR}", "--suite", "csc-mrr", "--suite", "csp-mrr", *tags)
    return finished(tmp_path_factory.mktemp("cells"), *options, sources=[DENSITY])


def test_both_cells_pass_and_their_records_are_of_real_packets(run: FinishedRun) -> None:
    run.assert_all_passed()
    assert set(run.cells()) == set(NFS)


@pytest.mark.parametrize("cell", NFS)
def test_packets_arrive_for_each_instance_and_direction(run: FinishedRun, cell: str) -> None:
    # At a low rate: in overload it is no fault where none arrives. It is repeated where the machine stands still.
    *_, last = (each for each in run.cells()[cell].trials if each.trial.purpose == "connectivity")
    assert {(flow.instance, flow.direction) for flow in last.flows if flow.received} == FLOWS[cell]


@pytest.mark.parametrize("cell", NFS)
def test_record_has_the_receive_rate_of_every_trial(run: FinishedRun, cell: str) -> None:
    record = run.cells()[cell]
    assert record.mrr is not None
    assert len(record.mrr.receive_rates_pps) == len([each for each in record.trials if each.trial.purpose == "mrr"])


@pytest.mark.parametrize("cell", NFS)
def test_record_names_the_network_functions_and_the_cpus_of_their_data_threads(run: FinishedRun, cell: str) -> None:
    record = run.cells()[cell]
    assert record.plan is not None
    assert {function.name: function.kind for function in record.plan.functions} == dict.fromkeys(
        NFS[cell], NfKind(ROUTER)
    )
    read_back = {row.owner for row in record.affinity if row.actual_cpus}
    assert read_back == {*NFS[cell], "vswitch"}


@pytest.mark.parametrize("cell", NFS)
def test_record_says_how_the_built_in_generator_sent(run: FinishedRun, cell: str) -> None:
    assert run.cells()[cell].facts["generator"]["sending"] in SENDING


def test_run_leaves_the_machine_as_it_was(run: FinishedRun) -> None:
    assert not run.left
