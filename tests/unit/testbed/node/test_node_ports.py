"""Facts of a node's physical ports."""

import ctypes
import errno
import fcntl
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.host.nics import device_users
from resources.libraries.python.testbed.kinds.machine import TestbedMachine
from resources.libraries.python.testbed.node.scripts import ports
from tests.builders import shipped
from tests.unit.testbed.node.machine_trees import link, tree
from tests.unit.testbed.node.node_facts import two_nodes

ONE, TWO = "0000:18:00.0", "0000:18:00.1"
PCIE = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")


def nics(root: Path) -> Path:
    """One port of the kernel's driver, one that vfio-pci has, and a bridge with the first one's sibling."""
    devices = root / "sys/bus/pci/devices"
    tree(devices / ONE, {"numa_node": "1", "vendor": "0x8086", "device": "0x1572"})
    tree(devices / TWO, {"numa_node": "-1", "vendor": "0x8086"})
    port = {"address": "3c:fd:fe:00:00:01", "flags": "0x1003", "carrier": "1", "speed": "25000", "mtu": "9000"}
    tree(root / "sys/class/net/ens1f0", port)
    files = {
        "proc/net/route": "Iface\tDestination\tGateway\nens1f0\t00000000\t0100000A\nens1f0\t0000000A\t00000000",
        "proc/net/if_inet6": "20010db8000000000000000000000001 02 40 00 80 ens1f0\n"
        "fe800000000000000000000000000001 02 40 20 80 ens1f0",
        "proc/sys/kernel/osrelease": "6.1.0",
        "lib/modules/6.1.0/modules.dep": "kernel/drivers/uio/uio_pci_generic.ko.xz: kernel/drivers/uio/uio.ko.xz",
    }
    tree(root, files)
    link(devices / ONE / "driver", root / "sys/bus/pci/drivers/ice")
    link(devices / ONE / "iommu_group", root / "sys/kernel/iommu_groups/17")
    (devices / ONE / "net/ens1f0").mkdir(parents=True)
    link(devices / TWO / "driver", root / "sys/bus/pci/drivers/vfio-pci")
    (root / "sys/class/net/ens1f0/device").symlink_to(devices / ONE)
    link(root / "sys/class/net/ens1f0/master", root / "sys/class/net/br0")
    return root


def look(root: Path, **named: str) -> Any:
    return ports.answer({"root": str(root), "ports": {"port1": {"device": None, "pci_address": None, **named}}})


def test_a_port_is_the_same_by_address_and_by_name(tmp_path: Path) -> None:
    root = nics(tmp_path)
    by_address, by_name = look(root, pci_address=ONE), look(root, device="ens1f0")
    assert by_address == by_name
    port = by_address["ports"]["port1"]
    expected = {
        "device": "ens1f0", "pci_address": ONE, "driver": "ice", "numa_node": 1, "vendor": "0x8086", "model": "0x1572",
        "iommu_group": "17", "virtual_functions": 0, "most_virtual_functions": 0, "pcie": None, "pause": None,
        "mac_address": "3c:fd:fe:00:00:01", "up": True, "carrier": True, "speed_mbps": 25000, "mtu": 9000,
        "addresses": ["2001:db8::1"], "default_route": True, "master": "br0",
    }  # fmt: skip
    assert {name: port[name] for name in expected} == expected
    assert by_address["vfio_pci"] == "loaded" and by_address["uio_pci_generic"] == "available"
    assert by_address["igb_uio"] is None and by_address["iommu_groups"] == 1


@pytest.mark.parametrize(
    ("current", "most", "expected"),
    [
        (("8.0 GT/s PCIe", "4"), ("16.0 GT/s PCIe", "16"), (8.0, 4, 16.0, 16)),
        (("8 GT/s", "8"), ("8 GT/s", "8"), (8.0, 8, 8.0, 8)),  # kernels before 5.7
        (("Unknown speed", "0"), ("16.0 GT/s PCIe", "16"), None),
        (("2.5 GT/s PCIe", "1"), ("2.5 GT/s PCIe", "255"), None),
    ],
)
def test_the_pcie_link_of_a_nic_and_the_most_that_it_can_do(
    tmp_path: Path, current: tuple[str, str], most: tuple[str, str], expected: tuple[float, int, float, int] | None
) -> None:
    tree(tmp_path / f"sys/bus/pci/devices/{TWO}", dict(zip(PCIE, (*current, *most), strict=True)))
    found = look(tmp_path, pci_address=TWO)["ports"]["port1"]["pcie"]
    assert (found and tuple(found.values())) == expected


class Kernel:
    """A port's driver that answers requests of ethtool as include/uapi/linux/ethtool.h lays them out."""

    def __init__(self, layout: int = 2) -> None:
        self.layout = layout
        vendor, part = {2: (20, 40), 3: (148, 168)}[layout]
        self.eeprom = bytes(vendor) + b"Intel Corp".ljust(part - vendor) + b"FTLX8571D3BCV".ljust(16)
        self.eeprom = self.eeprom.ljust(256, b"\0")
        self.asked: list[bytes] = []

    def __call__(self, _: object, request: int, argument: bytes) -> None:
        name, address = struct.unpack("16sP", argument)
        assert request == 0x8946
        self.asked.append(name.rstrip(b"\0"))
        command, *words = struct.unpack("=I3I", ctypes.string_at(address, 16))
        said = self.answer(command, words, ctypes.string_at(address, 16))
        if said is None:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        ctypes.memmove(address + 4, said, len(said))

    def answer(self, command: int, words: Sequence[int], head: bytes) -> bytes | None:
        answers = {
            0x03: struct.pack("=32s32s32s", b"ice", b"1.14", b"4.20 0x8001778b"),
            0x0E: struct.pack("=11I", 50, 0, 0, 0, 25, 64, 0, 0, 0, 1, 0),
            0x10: struct.pack("=8I", 8160, 0, 0, 4096, 2048, 0, 0, 256),
            0x12: struct.pack("=3I", 1, 0, 1),
            0x42: struct.pack("=2I", self.layout, len(self.eeprom)),
            0x43: struct.pack("=3I", *words) + self.eeprom[words[1] : words[1] + words[2]],
            0x4C: self.link(head[15]),
            0x50: struct.pack("=2I", 8, 2 | 8),
        }
        return answers.get(command)

    def link(self, words: int) -> bytes:
        settings = bytearray(48 + 3 * 4 * 3)
        settings[15] = words if words == 3 else 256 - 3
        partner = 1 << 31 | 1 << 5 | 1 << 50  # 25000baseCR, 1000baseT and FEC RS
        settings[48 + 24 :] = partner.to_bytes(12, sys.byteorder)
        return bytes(settings[4:])


@pytest.mark.parametrize("layout", [2, 3])
def test_a_port_has_the_facts_that_its_driver_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: int
) -> None:
    kernel = Kernel(layout)
    monkeypatch.setattr(fcntl, "ioctl", kernel)
    monkeypatch.setattr(ports, "_addresses", lambda *_: [])
    found = look(nics(tmp_path), pci_address=ONE)["ports"]["port1"]
    assert set(kernel.asked) == {b"ens1f0"}
    assert found["pause"] == {"rx": False, "tx": True}
    assert (found["driver_version"], found["firmware"], found["fec"]) == ("1.14", "4.20 0x8001778b", "RS")
    assert found["rings"] == {"rx": 2048, "tx": 256, "most_rx": 8160, "most_tx": 4096}
    assert found["coalescing"] == "rx adaptive; tx 25 us, 64 frames"
    assert found["module"] == "Intel Corp FTLX8571D3BCV"
    assert found["partner_mbps"] == 25_000


def test_the_record_has_the_facts_of_a_nodes_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, look_at = nics(tmp_path), ports.answer
    values = ("8.0 GT/s PCIe", "4", "8.0 GT/s PCIe", "8")
    tree(root / f"sys/bus/pci/devices/{ONE}", dict(zip(PCIE, values, strict=True)))
    monkeypatch.setattr(ports, "answer", lambda asked: look_at({**asked, "root": str(root)}))
    monkeypatch.setattr(fcntl, "ioctl", Kernel())
    monkeypatch.setattr(ports, "_addresses", lambda *_: [])
    known = TestbedMachine(two_nodes(), "DUT1").settings()
    assert known["PCIe link of port1"] == "8 GT/s x4 (32 Gb/s) of 8 GT/s x8 (63 Gb/s)"
    assert known["NIC of port1"] == "8086:1572" and known["firmware of port1"] == "4.20 0x8001778b"
    assert "pause frames of port1" not in known and "FEC of port1" not in known, "DPDK sets them itself"
    of_kernel = TestbedMachine(two_nodes(dut={"vpp": {"ports": "af_packet"}}), "DUT1").settings()
    assert of_kernel["pause frames of port1"] == "rx off, tx on" and of_kernel["FEC of port1"] == "RS"
    assert of_kernel["ring sizes of port1"] == "rx 2048 of 8160, tx 256 of 4096"
    local = TestbedMachine(shipped("local")).settings()
    assert not [name for name in local if " of port" in name]


def test_the_port_of_a_virtio_device_is_one_level_below(tmp_path: Path) -> None:
    device = tmp_path / "sys/bus/pci/devices" / ONE
    tree(tmp_path, {f"sys/bus/pci/devices/{ONE}/numa_node": "1", "sys/class/net/ens3/address": "52:54:00:00:00:01"})
    (device / "virtio2/net/ens3").mkdir(parents=True)
    (tmp_path / "sys/class/net/ens3/device").symlink_to(device / "virtio2")
    link(device / "driver", tmp_path / "sys/bus/pci/drivers/virtio-pci")
    by_address, by_name = look(tmp_path, pci_address=ONE), look(tmp_path, device="ens3")
    assert by_address == by_name
    port = by_name["ports"]["port1"]
    assert (port["device"], port["pci_address"], port["driver"], port["numa_node"]) == ("ens3", ONE, "virtio-pci", 1)


def test_a_port_that_user_space_or_the_kernel_alone_has_and_one_that_is_not_there(tmp_path: Path) -> None:
    root = tree(nics(tmp_path), {f"sys/bus/pci/devices/{TWO}/sriov_numvfs": "8"})
    taken = look(root, pci_address=TWO)["ports"]["port1"]
    assert taken["virtual_functions"] == 8
    assert (taken["device"], taken["driver"], taken["numa_node"], taken["carrier"]) == (None, "vfio-pci", None, None)
    assert look(root, pci_address="0000:99:00.0")["ports"]["port1"] is None
    assert look(root, device="eth9")["ports"]["port1"] is None
    assert look(root, device="eth9")["interfaces"] == ["br0", "ens1f0"]
    said = look(Path("/"), device="lo")["ports"]["port1"]
    assert (said["device"], said["pci_address"], said["addresses"][:1]) == ("lo", None, ["127.0.0.1"])
    unknown = ("pause", "driver_version", "firmware", "fec", "rings", "coalescing", "module", "partner_mbps")
    assert [said[name] for name in unknown] == [None] * len(unknown), "of a driver that answers nothing"


def test_programs_that_have_a_port_are_named(tmp_path: Path) -> None:
    root = tree(nics(tmp_path), {"proc/17/cmdline": "/usr/bin/vpp\0-c\0/etc/vpp/startup.conf\0"})
    link(root / f"sys/bus/pci/devices/{TWO}/iommu_group", root / "sys/kernel/iommu_groups/18")
    (root / "proc/17/fd").mkdir()
    (root / "proc/17/fd/9").symlink_to("/dev/vfio/18")
    said = device_users.answer({"root": str(root), "devices": {ONE: None, TWO: None, "0000:99:00.0": None}})
    vpp = {"pid": 17, "command": "/usr/bin/vpp -c /etc/vpp/startup.conf"}
    assert said == {"users": {ONE: [], TWO: [vpp], "0000:99:00.0": []}}
