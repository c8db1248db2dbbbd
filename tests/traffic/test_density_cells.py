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


def test_both_cells_pass_on_real_packets_and_leave_the_machine_as_it_was(run: FinishedRun) -> None:
    run.assert_all_passed()
    assert set(run.cells()) == set(NFS)
    assert not run.left


@pytest.mark.parametrize("cell", NFS)
def test_packets_arrive_for_each_instance_and_the_record_says_what_was_sent_how_and_where(
    run: FinishedRun, cell: str
) -> None:
    record = run.cells()[cell]
    # At a low rate: in overload it is no fault where none arrives. It is repeated where the machine stands still.
    *_, last = (each for each in record.trials if each.trial.purpose == "connectivity")
    assert {(flow.instance, flow.direction) for flow in last.flows if flow.received} == FLOWS[cell]
    assert record.mrr is not None and record.plan is not None
    assert len(record.mrr.receive_rates_pps) == len([each for each in record.trials if each.trial.purpose == "mrr"])
    kinds = {function.name: function.kind for function in record.plan.functions}
    assert kinds == dict.fromkeys(NFS[cell], NfKind(ROUTER))
    assert {row.owner for row in record.affinity if row.actual_cpus} == {*NFS[cell], "vswitch"}, "read back"
    assert record.facts["generator"]["sending"] in SENDING
