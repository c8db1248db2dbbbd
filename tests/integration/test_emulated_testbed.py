"""The emulated testbed itself: hardware as its topology says, cables that carry frames, and doctor."""

import json
from pathlib import Path

import pytest

from resources.libraries.python.model.load import load_topology
from tests.integration.emulated import Emulated
from tests.integration.robot_runs import csit

pytestmark = [pytest.mark.root, pytest.mark.emulated]


def test_the_machines_have_what_the_topology_says(emulated: Emulated) -> None:
    topology = load_topology(emulated.topology)
    for name, node in topology.nodes.items():
        rows = emulated.run(name, "lscpu", "--parse=CPU,CORE,SOCKET,NODE").splitlines()
        seen = [tuple(map(int, row.split(","))) for row in rows if not row.startswith("#")]
        assert sorted(seen) == sorted((row.cpu, row.core, row.socket, row.node) for row in node.layout.cpus)
        assert node.layout.smt
        for port in node.interfaces.values():
            place = f"/sys/bus/pci/devices/{port.pci_address}"
            assert emulated.run(name, "cat", f"{place}/numa_node").strip() == str(port.numa_node)
            group = emulated.run(name, "ls", f"{place}/iommu_group/devices").split()
            assert group == [port.pci_address]
            addresses = emulated.shell(name, f"cat {place}/net/*/address {place}/virtio*/net/*/address || true")
            assert addresses.strip() == port.mac_address
    isolated = emulated.run("DUT1", "cat", "/sys/devices/system/cpu/isolated").strip()
    assert isolated == "2-7,10-15"
    assert emulated.run("DUT1", "uname", "-r").startswith("6.1.")


def test_huge_pages_of_both_sizes_are_there(emulated: Emulated) -> None:
    pages = "/sys/devices/system/node/node{node}/hugepages/hugepages-{size}kB/nr_hugepages"
    counts = {
        (node, size): int(emulated.run("DUT1", "cat", pages.format(node=node, size=size)))
        for node in (0, 1)
        for size in (2048, 1048576)
    }
    assert counts == {(0, 2048): 512, (0, 1048576): 1, (1, 2048): 128, (1, 1048576): 0}


SEND = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as port:
    port.bind((sys.argv[1], 0))
    for _ in range(100):
        port.send(b"\\xff" * 6 + bytes(6) + b"\\x88\\xb5" + bytes(50))  # a NIC drops what is for another one
"""


def test_cables_join_the_ports_that_the_topology_says(emulated: Emulated) -> None:
    topology = load_topology(emulated.topology)
    ends: dict[str, list[tuple[str, str]]] = {}
    for name, node in topology.nodes.items():
        emulated.shell(name, "for port in /sys/class/net/enp*; do ip link set ${port##*/} up; done")
        for port in node.interfaces.values():
            ends.setdefault(port.link, []).append((name, device_at(emulated, name, port.pci_address)))
    assert len(ends) == sum(map(len, topology.ways)) + len(topology.loops) == 3
    for (name, device), (peer, peer_device) in ends.values():
        before = received(emulated, peer)
        emulated.run(name, "python3", "-c", SEND, device)
        changed = {port for port, count in received(emulated, peer).items() if count >= before[port] + 100}
        assert changed == {peer_device}


def device_at(emulated: Emulated, node: str, address: str | None) -> str:
    """The kernel's name of a port."""
    links = emulated.shell(node, "for port in /sys/class/net/*; do echo ${port##*/} $(readlink -f $port/device); done")
    (device,) = (line.split()[0] for line in links.splitlines() if f"/{address}" in line)
    return device


def received(emulated: Emulated, node: str) -> dict[str, int]:
    """Packets by port."""
    rows = emulated.run(node, "cat", "/proc/net/dev").splitlines()[2:]
    return {line.partition(":")[0].strip(): int(line.partition(":")[2].split()[1]) for line in rows}


def test_doctor_finds_what_is_wrong_and_nothing_else(emulated: Emulated, tmp_path: Path) -> None:
    for name in emulated.nodes:
        emulated.shell(name, "for port in /sys/class/net/enp*; do ip link set ${port##*/} up; done")
    wrong = {port: {"numa_node": 1} for port in ("port1", "port2")}
    path = emulated.write_topology(tmp_path, nodes={"DUT1": {"interfaces": wrong}})
    done = csit("doctor", str(path), "--format", "json")
    findings = json.loads(done.stdout)["findings"]
    problems = [row["place"] for row in findings if row["level"] == "problem"]
    assert problems == [f"nodes.DUT1.interfaces.{port}.numa_node" for port in wrong]
    assert done.returncode == 1
    said = {(row["place"], row["check"]): row["what"] for row in findings}
    assert said["nodes.DUT1", "isolation"].startswith("all 6 CPUs")
    assert said["nodes.DUT1", "huge pages"].startswith("2048 MB free on NUMA 0, 256 MB free on NUMA 1")
    assert said["nodes.DUT1", "SMT"].startswith("is on")
    assert "port1 is enp65s0 (virtio-pci)" in said["nodes.TG", "ports"]
    assert "link2: DUT1.port2 (enp66s0) - TG.port2 (enp66s0), up" in said["nodes.DUT1.interfaces.port2", "link"]


READ = """
cd /proc/sys
grep -H . kernel/nmi_watchdog kernel/numa_balancing kernel/randomize_va_space kernel/watchdog_cpumask
grep -H . /sys/devices/system/node/node*/hugepages/*/nr_hugepages /proc/irq/*/smp_affinity_list
"""
"""What `prepare` changes on such a machine."""


def test_a_testbed_is_reserved_and_prepared_and_all_put_back(emulated: Emulated) -> None:
    topology = str(emulated.topology)
    before = {name: emulated.shell(name, READ) for name in emulated.nodes}
    prepared = csit("prepare", topology, "--reason", "a test", "--lease", "5m")
    assert prepared.returncode == 0, prepared.stderr
    token = prepared.stdout.strip().partition("=")[2]
    try:
        said = prepared.stderr
        assert "DUT1: kernel.randomize_va_space: 2 -> 0" in said
        assert "needs a reboot" not in said, "its CPUs are isolated from its start on"
        assert "watchdog_cpumask" not in said
        now = emulated.shell("DUT1", READ)
        assert "kernel/randomize_va_space:0" in now
        data = [line for line in now.splitlines() if line.startswith("/proc/irq") and line.endswith(":0-1,8-9")]
        assert data, "interrupts are neither on CPUs of data threads nor on others that are isolated"
        refused = csit("reserve", topology, "--reason", "another")
        assert refused.returncode != 0
        assert "a test" in refused.stderr
    finally:
        released = csit("release", topology, token=token)
    assert released.returncode == 0, released.stderr
    assert "kernel.randomize_va_space: 0 -> 2" in released.stdout + released.stderr
    assert {name: emulated.shell(name, READ) for name in emulated.nodes} == before
    assert csit("status", topology).stdout.count(": free") == 2
