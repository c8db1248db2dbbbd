"""DPDK testpmd as an NF, alone and beside Linux routers: real packets, planned cores, and nothing left."""

import os
import signal
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.testpmd.driver import missing
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vswitches.ovs.daemons import missing as missing_for_ovs
from resources.libraries.python.model.request.kinds import NfKind
from tests.integration.robot_runs import results, run_robot, variables
from tests.integration.user_space import (
    LOCAL_OVS,
    cell,
    deployed,
    is_as_planned,
    kill_run,
    processes,
    send_and_count,
    topology_with,
)

pytestmark = [
    pytest.mark.parallel,
    pytest.mark.usefixtures("awake"),
    pytest.mark.root,
    pytest.mark.leaves_no("testpmd"),
    pytest.mark.skipif(bool(list(missing())), reason="; ".join(map(str, missing()))),
]
NO_OVS = "; ".join(map(str, missing_for_ovs("auto")))
WITH_OVS = pytest.mark.skipif(bool(NO_OVS), reason=NO_OVS)
ROUTER, TESTPMD = NfKind("linux_router"), NfKind("testpmd")
VICTIM = """
import time
from resources.libraries.python.model.request.kinds import NfKind
from tests.integration.user_space import cell, deployed, topology_with
with deployed(topology_with(vswitch="linux_bridge"), cell("CSC", 2, 1, (NfKind("testpmd"),))):
    print("deployed", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("vswitch", "service_type", "rows", "kinds"),
    [
        ("linux_bridge", "CSC", 2, (TESTPMD,)),
        ("linux_bridge", "CSC", 1, (ROUTER, TESTPMD)),
        ("linux_bridge", "CSP", 2, (TESTPMD, ROUTER, TESTPMD)),
        pytest.param("ovs", "CSC", 2, (ROUTER, TESTPMD), marks=WITH_OVS),
        pytest.param("ovs", "CSP", 1, (ROUTER, TESTPMD), marks=WITH_OVS),
    ],
)
def test_nfs_of_one_or_two_kinds_forward_in_their_instance_only(
    vswitch: str, service_type: str, rows: int, kinds: tuple[NfKind, ...]
) -> None:
    """Every hop sees each frame once: no kernel forwards beside testpmd, and next hops take its frames for theirs."""
    with deployed(topology_with(vswitch=vswitch), cell(service_type, rows, len(kinds), kinds)) as deployment:
        assert [function.kind for function in deployment.plan.functions] == list(kinds) * rows
        send_and_count(deployment)
        is_as_planned(deployment)
        assert deployment.facts()["functions"]["testpmd"].startswith("DPDK 2")


def test_one_that_stands_still_is_a_problem_until_it_goes_on_and_a_killed_one_is_named() -> None:
    """A stopped process has not ended; what is measured without it would be called the rate of the cell."""
    with deployed(topology_with(vswitch="linux_bridge"), cell("CSC", 2, 1, (TESTPMD,))) as deployment:
        (pid,) = [pid for pid, line in processes("testpmd").items() if "file-prefix=nf-2-1" in line]
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until("its stop", lambda: "" if deployment.problems() else "no problem", 60.0)
            assert deployment.problems() == ("testpmd of nf-2-1 is stopped (SIGSTOP)",)
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_until("its continuation", lambda: "; ".join(deployment.problems()), 60.0)
        os.kill(pid, signal.SIGKILL)
        wait_until("its end", lambda: "" if deployment.problems() else "no problem", 60.0)
        (problem,) = deployment.problems()
        assert problem.startswith("testpmd of nf-2-1 was killed by SIGKILL; it said last: ")
        assert "Press enter to exit" in problem
        lost = {row.interface for row in deployment.affinity() if row.actual_cpus == ()}
        assert lost == {"csn2x1i1", "csn2x1i2"}, "its data thread is missed"


def test_a_killed_run_leaves_none() -> None:
    """They are on the machine's record, and they end by themselves when nobody is at the other end any more."""
    kill_run(VICTIM, "testpmd", "file-prefix=nf-")


@WITH_OVS
def test_the_suites_run_with_both_kinds_in_one_service(tmp_path: Path) -> None:
    words = f"TOPOLOGY:{LOCAL_OVS} NF_SIZES:1c SEARCH:quick,sum=1,time=10 CELLS:1x2 NF_KINDS:linux_router+testpmd"
    run_robot(tmp_path, *variables(words), "--suite", "csp-mrr")
    (row,) = results(tmp_path)
    assert row.mrr is not None
    # At overload a polling thread that shares its core may get nothing through; at a low rate nothing is lost.
    (verified, *_) = row.trials
    assert verified.trial.purpose == "connectivity"
    assert {(flow.direction, flow.sent - flow.received) for flow in verified.flows} == {("forward", 0), ("reverse", 0)}
    assert row.test_name.endswith("lnxip4+testpmd-mrr")
    assert {each.owner for each in row.affinity} == {"vswitch", "nf-1-1", "nf-1-2"}
