"""The lab in namespaces itself: nodes that are apart, cables that carry frames, mishaps, and nothing left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.libraries.python.model.load import load_topology
from tests.integration.lab import STATE, Lab, missing
from tests.integration.lab_machine import on_machine
from tests.integration.robot_runs import PROJECT, network_state, wait_for_network_state
from tests.integration.user_space import victim

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(missing()), reason=missing())]
FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 (nodes have their own)
VICTIM = """
import time
from tests.integration.lab import Lab
with Lab(cables=2) as lab:
    lab.nodes["TG"].run("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 </dev/null &")
    print("deployed", flush=True)
    print(lab.number, flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    before = network_state()
    with Lab(duts=2, cables=4) as made:
        yield made
    wait_for_network_state(before)
    assert not made.directory.exists()
    assert not is_there(made.number)


def is_there(number: int) -> bool:
    """Whether this machine has something left of a lab."""
    mounts = Path("/proc/mounts").read_text(encoding="utf-8")
    return Path(f"/sys/class/net/csl{number}").exists() or f"{STATE / str(number)}/" in mounts


def test_nodes_are_apart(lab: Lab) -> None:
    for name, node in lab.nodes.items():
        assert node.run("hostname").strip() == name.lower()
        assert set(node.run("ls", "/sys/class/net").split()) == {"lo", "mgmt", "cab1", "cab2", "cab3", "cab4"}
        for folder in (*FOLDERS, "/run"):
            node.run("sh", "-c", f'[ -z "$(ls {folder} | grep -x mark)" ] && echo {name} >{folder}/mark')
    ids = {node.read("/proc/sys/kernel/random/boot_id") for node in lab.nodes.values()}
    assert len(ids | {Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")}) == 4
    assert not [folder for folder in FOLDERS if (Path(folder) / "mark").exists()]
    assert "kthreadd" in lab.nodes["TG"].run("cat", "/proc/2/comm")


def test_cables_join_the_ports_that_the_topology_says(lab: Lab, tmp_path: Path) -> None:
    topology = load_topology(lab.topology(tmp_path))
    ends: dict[str, list[tuple[str, str]]] = {}
    for name, node in topology.nodes.items():
        for interface in node.interfaces.values():
            assert interface.device is not None
            ends.setdefault(interface.link, []).append((name, interface.device))
            address = lab.nodes[name].read(f"/sys/class/net/{interface.device}/address").strip()
            assert address == interface.mac_address
    assert len(ends) == 6
    for (name, device), (peer, peer_device) in ends.values():
        before = _received(lab, peer)
        lab.nodes[name].run(sys.executable, "-c", SEND, device)
        changed = {port for port, count in _received(lab, peer).items() if count >= before[port] + 100}
        assert changed == {peer_device}


SEND = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as port:
    port.bind((sys.argv[1], 0))
    for _ in range(100):
        port.send(bytes(12) + b"\\x88\\xb5" + bytes(50))
"""


def _received(lab: Lab, name: str) -> dict[str, int]:
    return {
        f"cab{port}": int(lab.nodes[name].read(f"/sys/class/net/cab{port}/statistics/rx_packets"))
        for port in range(1, 5)
    }


def test_a_topology_with_changes(lab: Lab, tmp_path: Path) -> None:
    path = lab.topology(tmp_path, discriminator="vlan", nodes={"DUT1": {"core_sharing": {"system_cores": 0}}})
    topology = load_topology(path)
    assert topology.discriminator == "vlan"
    assert [node.core_sharing.system_cores for node in topology.duts.values()] == [0, 1]


def test_a_reboot_leaves_cables_and_nothing_else(lab: Lab) -> None:
    node = lab.nodes["DUT1"]
    before = node.read("/proc/sys/kernel/random/boot_id")
    node.run("sh", "-c", "touch /tmp/file; ip netns add kept; ip link set cab3 netns kept; ip link add new type dummy"
             " || ip link add new type veth peer name other")  # fmt: skip
    node.run("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 </dev/null &")
    lab.reboot("DUT1", down_s=0)
    assert node.read("/proc/sys/kernel/random/boot_id") != before
    assert node.run("ls", FOLDERS[0], "/run/netns").split() == ["/run/netns:", f"{FOLDERS[0]}:"]
    assert set(node.run("ls", "/sys/class/net").split()) == {"lo", "mgmt", "cab1", "cab2", "cab3", "cab4"}
    assert all("sshd" in line for line in node.processes().values())


def test_what_a_killed_lab_has_left_goes_with_the_next_one() -> None:
    with victim(VICTIM) as process:
        assert process.stdout is not None
        number = int(process.stdout.readline())
        state = STATE / str(number)
        assert any("sleep 1000" in line for _, line in on_machine(state / "TG"))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert any("sleep 1000" in line for _, line in on_machine(state / "TG"))
    identity = (state / "TG" / "uts").stat().st_ino
    with Lab(cables=2) as lab:
        left = subprocess.run(["lsns", "-n", "-o", "NS", "-t", "uts"], check=True, capture_output=True, text=True)
        assert lab.number == number or not state.exists()
        assert str(identity) not in left.stdout.split() or lab.number == number
        assert not any("sleep 1000" in line for node in lab.nodes.values() for line in node.processes().values())
    assert not state.exists()
    assert not is_there(number)
    assert PROJECT.exists()
