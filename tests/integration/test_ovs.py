"""Open vSwitch in the local world: real packets, planned cores, and nothing left whatever happens."""

import os
import re
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.ownership.ownership import DIRECTORY, MachineLock
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vswitches.ovs.daemons import missing
from resources.libraries.python.drivers.vswitches.ovs.driver import OpenVSwitch
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from tests.integration.robot_runs import results, run_robot, variables
from tests.integration.user_space import (
    LOCAL_OVS,
    cell,
    deployed,
    is_as_planned,
    prepared,
    processes,
    send_and_count,
    topology_with,
    victim,
)

pytestmark = [
    pytest.mark.parallel,
    pytest.mark.root,
    pytest.mark.leaves_no("ovs"),
    pytest.mark.skipif(bool(list(missing("auto"))), reason="; ".join(map(str, missing("auto")))),
]
WITH_DPDK = pytest.mark.skipif(bool(list(missing("dpdk"))), reason="; ".join(map(str, missing("dpdk"))))
VICTIM = """
import time
from tests.integration.user_space import cell, deployed, topology_with
with deployed(topology_with(), cell("CSC", 1, 1)):
    print("deployed", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("ports", "service_type", "rows", "columns"),
    [
        ("auto", "CSC", 1, 1),
        ("auto", "CSC", 2, 2),
        ("auto", "CSP", 1, 3),
        ("system", "CSC", 2, 2),
        pytest.param("dpdk", "CSC", 1, 2, marks=WITH_DPDK),
    ],
)
def test_packets_pass_in_their_instance_only_on_planned_cores(
    ports: str, service_type: str, rows: int, columns: int
) -> None:
    with deployed(topology_with(ports=ports), cell(service_type, rows, columns)) as deployment:
        send_and_count(deployment)
        is_as_planned(deployment)
        facts = deployment.facts()["vswitch"]
        assert facts["vswitch"].startswith("Open vSwitch 3.") or facts["vswitch"].startswith("Open vSwitch 2.")
        assert {"system": "AF_PACKET", "dpdk": "DPDK", "auto": "AF_"}[ports] in facts["datapath"]


@pytest.mark.parametrize("flows", [1, 1000])
def test_packets_of_a_trial_are_those_that_its_own_statistics_count(flows: int) -> None:
    """By PMD thread, and by datapath flow: the packet that makes a flow is in the misses."""
    with deployed(topology_with(), cell("CSC", 1, 1), frame_name=f"64B-{flows}f") as deployment:
        vswitch = deployment.parts.switch
        assert isinstance(vswitch, OpenVSwitch)
        vswitch.begin_accounts()
        asked = frame(f"64B-{flows}f")
        result = deployment.parts.generator.run(Trial(load_pps=4000.0, duration_s=1.0, frame=asked))
        rows = vswitch.accounts()
        assert result.sent == result.received == pytest.approx(4000, abs=8), result
        sent = {(count.instance, count.direction): count.sent for count in result.flows}
        passed = sum(
            sent[path.instance, path.direction]
            for path in deployment.plan.paths
            for hop in path.hops
            if hop.owner == "vswitch" and hop.counter == "rx"
        )
        assert passed == 2 * result.sent, "to the NF, and from it"
        counts = {row.node: sum(each.packets for each in rows if each.node == row.node) for row in rows}
        assert counts["processing"] == passed
        assert sum(count for node, count in counts.items() if node not in ("processing", "output")) == passed
        assert all(row.cost for row in rows if row.node == "processing")
        misses = counts.get("upcall", 0)
        dumped = vswitch._running.ask("dpctl/dump-flows", "netdev@ovs-netdev")
        by_flow = [int(number) for number in re.findall(r"\bpackets:(\d+)", dumped)]
        assert len(by_flow) >= 4, "each port has one"
        assert sum(by_flow) + misses >= passed > max(by_flow) > 0, dumped


def test_no_packet_of_its_own_is_seen() -> None:
    """Left alone, nobody sends: no ARP, no LLDP, no MLD, no flooded frame."""
    with deployed(topology_with(), cell("CSC", 2, 1)) as deployment:
        send_and_count(deployment)
        before = deployment.counters()
        with pytest.raises(CsitError, match="not ready"):
            wait_until("a packet", lambda: "" if deployment.counters() != before else "none", 1.5, pause_s=0.1)


@pytest.mark.parametrize("name", ["ovs-vswitchd", "ovsdb-server"])
def test_a_killed_daemon_is_named(name: str) -> None:
    with deployed(topology_with(), cell("CSC", 1, 1)) as deployment:
        (pid,) = [each for each, line in processes(name).items() if str(DIRECTORY) in line]
        os.kill(pid, signal.SIGKILL)
        assert any(f"{name} was killed by SIGKILL" in problem for problem in deployment.problems())
        if name == "ovs-vswitchd":
            assert {row.actual_cpus for row in deployment.affinity() if row.owner == "vswitch"} == {()}


def test_what_a_killed_run_left_is_removed_by_the_next() -> None:
    with victim(VICTIM) as run:
        ours = {pid for pid, line in processes("ovs").items() if str(DIRECTORY) in line}
        assert len(ours) == 2
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert ours <= set(processes("ovs"))
    with MachineLock() as machine:
        removed = machine.remove_leftovers()
    assert sum("ovs" in sentence and "killed" in sentence for sentence in removed) == 2


def test_a_port_that_it_cannot_use_is_named() -> None:
    with pytest.raises(CsitError, match=r"Open vSwitch cannot use csv1p1: .*No such device"), ExitStack() as stack:
        parts = stack.enter_context(prepared(topology_with(), cell("CSC", 1, 1)))
        for cable in parts.cables:
            stack.callback(cable.stop)
            cable.start()
        subprocess.run(["ip", "-n", "csit-vswitch", "link", "del", "csv1p1"], check=True)
        stack.callback(parts.switch.stop)
        parts.switch.start()


def test_the_suites_run_on_it(tmp_path: Path) -> None:
    options = variables(f"TOPOLOGY:{LOCAL_OVS} NF_SIZES:1c SEARCH:quick CELLS:1x1")
    run_robot(tmp_path, *options, "--suite", "csc-mrr")
    (row,) = results(tmp_path)
    assert row.mrr and row.mrr.mean_pps > 1000
    assert all(each.actual_cpus == (each.planned_cpu,) for each in row.affinity)
    assert "1ch-2ovs-1dcr" in row.test_name
    assert NfKind("linux_router") in (function.kind for function in row.plan.functions)
