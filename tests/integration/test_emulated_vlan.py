"""Service instances that share cables by VLAN devices, on the kernel's datapath of Open vSwitch, whose parts break."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.model.measurements.trial import Direction
from tests.captures import MIX, pcap
from tests.integration.emulated import RING, Emulated
from tests.integration.pauses import REMOVING, SENDING, Moment, Paused
from tests.integration.robot_runs import going_on, results

pytestmark = [pytest.mark.root, pytest.mark.emulated]
CABLES = ("port1", "port2")
INSTANCES = {1: 101, 2: 102}
"""The VLAN of each instance."""
_RUN_WITHIN_S = 900.0
_BREAK_WITHIN_S = 400.0
LOADED = 2
"""The call of a measurement after the one that verifies the paths."""
VSWITCH, GENERATOR = ("DUT1", "[o]vs-vswitchd"), ("TG", "[d]rivers.generator")
"""Nodes and patterns of command lines; pkill is not one of them."""
Signalled = tuple[str, str, str]
"""Signal, node, pattern."""
FAULTS: dict[str, tuple[Signalled, str, Signalled]] = {
    "64B-1000f": (("STOP", *VSWITCH), "DUT1: ovs-vswitchd is stopped", ("KILL", *GENERATOR)),
    "128B-ip6": (("STOP", *GENERATOR), "TG: ", ("KILL", *VSWITCH)),
}
"""By frame size of a test: what gets which signal in a trial, words that the reason must have, and what gets one while
the cell of the next attempt is removed."""


def test_instances_share_cables_by_vlan_also_when_parts_break(emulated: Emulated, tmp_path: Path) -> None:
    before = {name: state(emulated, name) for name in emulated.nodes}
    receiving = {name: receive_threads(emulated, name) for name in emulated.nodes}
    topology = emulated.write_topology(
        tmp_path,
        discriminator="vlan",
        nodes={
            "TG": RING,
            "DUT1": {"vswitch": "ovs", "ovs": {"ports": "kernel"}},
        },
    )
    capture = tmp_path / "own.pcap"
    capture.write_bytes(pcap(MIX))
    words = (
        f"TOPOLOGY:{topology}", "CELLS:2x1", "NF_SIZES:1c", f"FRAMES:{','.join(FAULTS)},pcap:{capture}",
        "SEARCH:quick,sum=1,mrr=1,time=10",
    )  # fmt: skip
    options = [word for value in words for word in ("-v", value)]
    faults: list[tuple[Moment, Signalled]] = []
    for frame, (first, _, second) in FAULTS.items():
        test = f"CSC 2R1C NF-1c vSwitch-1c {frame}"
        faults += [(Moment(SENDING, test, LOADED, attempt=1), first), (Moment(REMOVING, test, attempt=2), second)]
    paused = Paused(tmp_path, [moment for moment, _ in faults])
    with going_on(tmp_path / "out", *options, "--suite", "csc-mrr", *paused.options) as run:
        for moment, (number, node, pattern) in faults:
            with paused.at(moment, run, _BREAK_WITHIN_S):
                emulated.run(node, "pkill", f"-{number}", "-f", pattern)
        said, _ = run.communicate(timeout=_RUN_WITHIN_S)
    assert run.returncode == 0, said
    rows = {row.asked.frame.name: row for row in results(tmp_path / "out")}
    for frame, (_, words_of_it, _) in FAULTS.items():
        assert rows[frame].passed, said
        (reason,) = rows[frame].broken
        assert words_of_it in reason
    (own,) = (each for each in rows.values() if each.asked.frame.capture)
    assert own.passed and own.mrr and own.mrr.mean_pps > 0, said
    assert rows["64B-1000f"].asked.frame.flows == 1000 and rows["128B-ip6"].asked.frame.ip_version == 6
    assert all(flow.received for row in rows.values() for flow in row.trials[0].flows)
    row = rows["64B-1000f"]
    assert row.mrr and row.mrr.mean_pps > 0 and row.plan
    assert row.plan.suite_id.startswith("dot1q-")
    assert row.facts["vswitch"]["datapath"] == "kernel, forwarding by the kernel in the threads that receive"
    ends = [port for port in row.plan.ports() if port.nic]
    assert {port.nic.port for port in ends if port.nic} == set(CABLES)
    assert {port.vlan for port in ends} == set(INSTANCES.values())
    # Packets of every instance come back to it, and are counted apart.
    flows = [flow for trial in row.trials for flow in trial.flows]
    assert {(flow.instance, flow.direction) for flow in flows} == set(product(INSTANCES, Direction))
    assert all(flow.received for flow in flows)
    # VLAN devices on a trunk share its receive thread, which is on the CPU of all of them.
    placed = {each.interface: (each.planned_cpu, each.actual_cpus) for each in row.affinity}
    assert all(placed[f"csv1p{end}"] == placed[f"csv2p{end}"] for end in (1, 2))
    assert all(actual == (planned,) for planned, actual in placed.values())

    for name, was in before.items():
        assert state(emulated, name) == was
        assert emulated.shell(name, "ip netns") == ""
        assert emulated.shell(name, "ip link show type vlan") == ""
        # They outlive this run, and runs of other tests on other ports. With names of their use, no later run with
        # other names would find them.
        own, threads = {"napi/enp65s0", "napi/enp66s0"}, receive_threads(emulated, name)
        assert own <= threads <= own | receiving[name] <= {f"napi/{port}" for port in was}


def receive_threads(emulated: Emulated, node: str) -> set[str]:
    """Names of the threads that receive, each for a port of the node."""
    return {each.partition("-")[0] for each in emulated.shell(node, "cat /proc/[0-9]*/comm").split() if "napi/" in each}


def state(emulated: Emulated, node: str) -> dict[str, Any]:
    """What a user sees of the ports of a node."""
    keys = ("address", "mtu", "promiscuity", "num_rx_queues", "group", "qdisc")
    rows = json.loads(emulated.run(node, "ip", "-json", "-details", "link"))
    return {row["ifname"]: {key: row.get(key) for key in keys} | {"up": "UP" in row["flags"]} for row in rows}
