"""Emulated machines: QEMU's arguments, a topology, and their image; no machine is started and no image made."""

import fcntl
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from resources.libraries.python.drivers.host.ownership.processes import process
from resources.libraries.python.drivers.host.programs import image_cache
from resources.libraries.python.drivers.host.programs.image_cache import BUILDING, alone, make, newest
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.emulation import image
from resources.libraries.python.emulation import machine as qemu
from resources.libraries.python.emulation.image import MachineImage
from resources.libraries.python.emulation.layout import EmulatedLayout, access
from resources.libraries.python.emulation.testbed import EmulatedTestbed, TestbedRecord, end_unfinished
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.paths import PROJECT
from tests.unit.drivers.functions.guest_parts import unpacked

BOOT = qemu.Boot(Path("/cache/vmlinuz"), Path("/testbed/TG.initramfs"), Path("/cache/a,b/disk.ext4"))
LAYOUTS = [EmulatedLayout(nodes=nodes, nic=nic) for nodes in (2, 3) for nic in qemu.EmulatedNicModel]
each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: f"{each.nodes}-{each.nic}")


def values(argv: tuple[str, ...], key: str) -> list[str]:
    return [argv[at + 1] for at, word in enumerate(argv) if word == key]


def words(value: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in value.split(",") if "=" in pair)


@each_layout
def test_each_cable_has_two_ends_that_name_each_other(layout: EmulatedLayout) -> None:
    ends = {
        (found["local.path"], found["remote.path"])
        for machine in layout.machines()
        for value in values(qemu.arguments(machine, BOOT, 2222), "-netdev")
        if "dgram" in value and (found := words(value))
    }
    assert len(ends) == 4 * layout.nodes
    assert {(far, near) for near, far in ends} == ends
    assert all(near != far for near, far in ends)


@each_layout
def test_nics_are_at_the_addresses_and_numa_nodes_that_the_topology_says(layout: EmulatedLayout) -> None:
    for machine in layout.machines():
        argv = qemu.arguments(machine, BOOT, 2222)
        virtio = [value for value in values(argv, "-device") if value.startswith("virtio-net") and "cable" in value]
        assert all("iommu_platform=on,disable-legacy=on" in value for value in virtio), "behind the IOMMU"
        assert len(virtio) == 2 or layout.nic is not qemu.EmulatedNicModel.VIRTIO
        devices = [(value.split(",")[0], words(value)) for value in values(argv, "-device")]
        bridges = {found["id"]: found for kind, found in devices if kind == "pxb-pcie"}
        roots = {found["id"]: found for kind, found in devices if kind == "pcie-root-port"}
        by_mac = {found["mac"]: found for kind, found in devices if "bus" in found and "mac" in found}
        assert len({(root["bus"], root["addr"]) for root in roots.values()}) == len(roots)
        for nic in machine.nics:
            bridge = bridges[roots[by_mac[nic.mac]["bus"]]["bus"]]
            assert int(bridge["numa_node"]) == nic.numa_node
            # Behind a bridge each root port has the next bus, in the order of their slots.
            slots = sorted(int(root["addr"], 16) for root in roots.values() if root["bus"] == bridge["id"])
            position = slots.index(int(roots[by_mac[nic.mac]["bus"]]["addr"], 16))
            assert nic.pci_address == f"0000:{int(bridge['bus_nr']) + position + 1:02x}:00.0"
        assert len({nic.pci_address for nic in machine.nics}) == len(machine.nics) == 4


def test_only_virtio_ports_have_several_queues() -> None:
    with pytest.raises(ValueError, match="2 queues: only virtio ports have more than one here, not vmxnet3"):
        EmulatedLayout(nic=qemu.EmulatedNicModel.VMXNET3, queues=2)


def test_memory_is_that_of_numa_nodes_ssh_comes_in_from_this_computer_only_and_disks_are_not_written() -> None:
    for machine in EmulatedLayout(nodes=3).machines():
        argv = qemu.arguments(machine, BOOT, 2345)
        sizes = [int(words(value)["size"][:-1]) for value in values(argv, "-object")]
        assert values(argv, "-m") == [f"{sum(sizes)}M"]
        assert sum(2 * node.hugepages_2m + 1024 * node.hugepages_1g for node in machine.numa) <= sum(sizes) / 2
        (network,) = (value for value in values(argv, "-netdev") if value.startswith("user"))
        assert "hostfwd=tcp:127.0.0.1:2345-:22" in network and "restrict=on" in network
        assert "-no-reboot" not in argv, "a reboot does not end a machine"
        (disk,) = values(argv, "-drive")
        assert "file=/cache/a,,b/disk.ext4," in disk and "snapshot=on" in disk
    macs = [nic.mac for machine in EmulatedLayout(nodes=3).machines() for nic in machine.nics]
    assert len(set(macs)) == len(macs)
    assert all(re.fullmatch(r"02(:[0-9a-f]{2}){5}", mac) for mac in macs)


@each_layout
@pytest.mark.parametrize("chosen", ["first", "second"])
def test_its_topology_loads_with_either_nic(layout: EmulatedLayout, chosen: str, tmp_path: Path) -> None:
    content = layout.topology({name: access(tmp_path, 2200 + at) for at, name in enumerate(layout.names)})
    if chosen == "second":
        content["nic"] = layout.second_nic.name_in_topology
    path = tmp_path / "topology.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    topology = load_topology(path)
    assert list(topology.nodes) == ["TG", "DUT1", "DUT2"][: layout.nodes]
    (way,) = topology.ways
    assert [(cable.a.node, cable.b.node) for cable in way] == [
        ("TG", "DUT1"), *[("DUT1", "DUT2")] * (layout.nodes == 3), (layout.names[-1], "TG"),
    ]  # fmt: skip
    assert topology.dut.numa_node == (chosen == "second")
    ports = {node.access.port for node in topology.nodes.values() if node.access}
    assert ports == {2200, 2201, 2202} - ({2202} if layout.nodes == 2 else set())


def test_a_refused_reset_is_an_error(tmp_path: Path) -> None:
    greeting = {"QMP": {"version": {"qemu": {"major": 7, "minor": 2, "micro": 22}, "package": ""}}}
    said = [greeting, {"return": {}}, {"event": "RESET"}, {"error": {"desc": "not now"}}]

    def answer() -> None:
        with listening.accept()[0] as far:
            for message in said:
                far.sendall(json.dumps(message).encode() + b"\n")
            while far.recv(1000):
                pass

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "DUT1.qmp"))
        listening.listen()
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(CsitError, match=r"DUT1 of .*: QEMU does not reset it: .*not now"):
            EmulatedTestbed(tmp_path).reset("DUT1")
        thread.join(60)


NEVER_S = 60.0
SLEEP = "import time; time.sleep(600)"


@contextmanager
def machine(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that looks like the QEMU of a testbed."""
    folder.mkdir()
    argv = [qemu.QEMU, "-c", SLEEP, "-name", "TG"]
    with subprocess.Popen(argv, executable=sys.executable, cwd=folder) as running:
        wait_until("its exec", lambda: "" if EmulatedTestbed(folder)._running() else "not yet", NEVER_S, pause_s=0.005)
        try:
            yield running
        finally:
            running.kill()


def test_machines_of_a_start_that_was_killed_are_ended(tmp_path: Path) -> None:
    with machine(tmp_path / "tests") as running:
        os.kill(running.pid, signal.SIGSTOP)  # a stopped one ends as well
        (sentence,) = end_unfinished(tmp_path)
        assert running.wait(NEVER_S) == -signal.SIGTERM
    assert sentence == "ended TG of testbed 'tests', whose start was interrupted"
    assert not (tmp_path / "tests").exists()
    assert end_unfinished(tmp_path) == ()


def test_machines_that_run_in_the_background_or_are_being_started_go_on(tmp_path: Path) -> None:
    record = TestbedRecord(layout=EmulatedLayout(), ports={"TG": 1})
    with machine(tmp_path / "up") as running, machine(tmp_path / "starting") as starting:
        (tmp_path / "up" / "testbed.json").write_text(record.model_dump_json(), encoding="utf-8")
        with (tmp_path / ".starting.lock").open("w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert end_unfinished(tmp_path) == ()
        assert (running.poll(), starting.poll()) == (None, None)
    assert end_unfinished(tmp_path / "none") == ()


OWNER = """
import sys
from pathlib import Path
from types import SimpleNamespace
from resources.libraries.python.emulation import layout, testbed
testbed.arguments = lambda *_: ["sleep", "600"]
made = testbed.EmulatedTestbed(Path(sys.argv[1]), ends_with_us=True)
made._start_machine(SimpleNamespace(name="TG", nics=()), None, layout.EmulatedLayout(), {})
print(made._children[0].pid, flush=True)
sys.stdin.read()
"""
"""Starts a machine that ends with this process, and prints its PID."""


@pytest.mark.slow
def test_machines_of_a_killed_test_end_with_it(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], cwd=PROJECT, env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as owner:  # fmt: skip
        assert owner.stdout is not None
        child = process(int(owner.stdout.readline()))
        now = child.command_now
        wait_until("its exec", lambda: "" if now() == "sleep 600" else f"it is {now()}", NEVER_S)
        owner.kill()
    wait_until("its end", lambda: "it runs" if child.alive else "", NEVER_S)


def test_a_machine_gets_its_own_files_and_only_it_can_read_its_key(tmp_path: Path) -> None:
    (tmp_path / "initramfs.cpio").write_bytes(b"")
    target = tmp_path / "TG.initramfs"
    boot = MachineImage(tmp_path).boot("TG", {"host_key": b"secret", "authorized_keys": b"public"}, target)
    assert boot.initramfs == target
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    files = unpacked(target.read_bytes())
    assert files["own/host_key"] == (0o100600, b"secret")
    assert files["own/hostname"] == (0o100644, b"tg\n")
    assert files["own/boot.sh"][0] == 0o100755
    assert b"::respawn:/usr/sbin/sshd" in files["own/inittab"][1]


def test_the_image_that_is_taken_is_of_this_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(image, "SHARED", tmp_path / "shared")
    folder, kernel = image_cache.cache_folder() / "emulated", "bookworm-6.1.0-1-amd64"
    (folder / f"{kernel}-000000000000").mkdir(parents=True)
    assert image.cached() is None
    for place in (tmp_path / "shared" / "emulated", folder):  # one's own before the shared one
        (place / f"{kernel}-{image.recipe()}").mkdir(parents=True)
        assert (found := image.cached()) and found.disk.parent == place / f"{kernel}-{image.recipe()}"


def test_an_image_appears_complete_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / f"{BUILDING}killed").mkdir()

    def broken(work: Path, made: Path) -> str:
        (work / "packages").touch()
        (made / "disk").touch()
        raise OSError("no space")

    with alone(tmp_path):
        with pytest.raises(OSError, match="no space"):
            make(tmp_path, broken)
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]
        place = make(tmp_path, lambda _, made: (made / "disk").write_text("one") and "image-1")
        assert make(tmp_path, lambda _, made: (made / "disk").write_text("two") and "image-1") == place
    assert (place / "disk").read_text() == "two"
    older = tmp_path / "image-0"
    older.mkdir()
    os.utime(older, (0, 0))
    assert newest(tmp_path, "image-*") == [place, older]
    assert newest(tmp_path / "none", "*") == []


@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_all_users_can_read_a_cache_and_only_its_owner_can_write_it(tmp_path: Path, umask: int) -> None:
    """Root starts machines from root's cache; others read it."""
    cache = tmp_path / "csit-density" / "emulated"
    before = os.umask(umask)
    try:
        with alone(cache):
            place = make(cache, lambda _, made: (made / "disk").write_text("one") and "image-1")
    finally:
        os.umask(before)
    paths = (cache.parent, cache, place, place / "disk", cache / "lock")
    assert [oct(stat.S_IMODE(path.stat().st_mode)) for path in paths] == ["0o755"] * 3 + ["0o644", "0o600"]
    for mode, expected in ((0o777, 0o755), (0o700, 0o700)):
        cache.chmod(mode)
        with alone(cache):
            assert stat.S_IMODE(cache.stat().st_mode) == expected
