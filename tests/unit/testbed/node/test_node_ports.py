"""What a node says of its physical ports, whoever drives them."""

import ctypes
import fcntl
import struct
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.host.nics import device_users
from resources.libraries.python.testbed.node.scripts import ports
from tests.unit.testbed.node.machine_trees import link, tree

ONE, TWO = "0000:18:00.0", "0000:18:00.1"


def nics(root: Path) -> Path:
    """One port of the kernel's driver, one that vfio-pci has, and a bridge with the first one's sibling."""
    devices = root / "sys/bus/pci/devices"
    tree(
        root,
        {
            f"sys/bus/pci/devices/{ONE}/numa_node": "1",
            f"sys/bus/pci/devices/{ONE}/vendor": "0x8086",
            f"sys/bus/pci/devices/{ONE}/device": "0x1572",
            f"sys/bus/pci/devices/{TWO}/numa_node": "-1",
            f"sys/bus/pci/devices/{TWO}/vendor": "0x8086",
            "sys/class/net/ens1f0/address": "3c:fd:fe:00:00:01",
            "sys/class/net/ens1f0/flags": "0x1003",
            "sys/class/net/ens1f0/carrier": "1",
            "sys/class/net/ens1f0/speed": "25000",
            "sys/class/net/ens1f0/mtu": "9000",
            "proc/net/route": "Iface\tDestination\tGateway\nens1f0\t00000000\t0100000A\nens1f0\t0000000A\t00000000",
            "proc/net/if_inet6": "20010db8000000000000000000000001 02 40 00 80 ens1f0\n"
            "fe800000000000000000000000000001 02 40 20 80 ens1f0",
            "proc/sys/kernel/osrelease": "6.1.0",
            "lib/modules/6.1.0/modules.dep": "kernel/drivers/uio/uio_pci_generic.ko.xz: kernel/drivers/uio/uio.ko.xz",
        },
    )
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
    assert port == expected
    assert by_address["vfio_pci"] == "loaded" and by_address["uio_pci_generic"] == "available"
    assert by_address["igb_uio"] is None and by_address["iommu_groups"] == 1


@pytest.mark.parametrize(
    ("current", "most", "expected"),
    [
        (("8.0 GT/s PCIe", "4"), ("16.0 GT/s PCIe", "16"), (8.0, 4, 16.0, 16)),
        (("8 GT/s", "8"), ("8 GT/s", "8"), (8.0, 8, 8.0, 8)),  # kernels before 5.7
        (("Unknown", "0"), ("16.0 GT/s PCIe", "16"), None),
        (("Unknown speed", "0"), ("Unknown speed", "255"), None),
        (("2.5 GT/s PCIe", "0"), ("2.5 GT/s PCIe", "1"), None),
        (("2.5 GT/s PCIe", "1"), ("2.5 GT/s PCIe", "255"), None),
        (("", "1"), ("2.5 GT/s PCIe", "1"), None),
    ],
)
def test_the_pcie_link_of_a_nic_and_the_most_that_it_can_do(
    tmp_path: Path, current: tuple[str, str], most: tuple[str, str], expected: tuple[float, int, float, int] | None
) -> None:
    names = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
    here = f"sys/bus/pci/devices/{TWO}"
    tree(tmp_path, {f"{here}/{name}": text for name, text in zip(names, (*current, *most), strict=True)})
    found = look(tmp_path, pci_address=TWO)["ports"]["port1"]["pcie"]
    assert (found and tuple(found.values())) == expected


def test_flow_control_is_what_the_kernel_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `ethtool -a` asks: struct ethtool_pauseparam has autoneg, rx_pause and tx_pause after the command."""
    asked = []

    def kernel(_: object, request: int, argument: bytes) -> None:
        name, address = struct.unpack("16sP", argument)
        (command,) = struct.unpack("=I", ctypes.string_at(address, 4))
        asked.append((request, name.rstrip(b"\0"), command))
        ctypes.memmove(address, struct.pack("=4I", command, 1, 0, 1), 16)

    monkeypatch.setattr(fcntl, "ioctl", kernel)
    monkeypatch.setattr(ports, "_addresses", lambda *_: [])
    found = look(nics(tmp_path), pci_address=ONE)["ports"]["port1"]
    assert found["pause"] == {"rx": False, "tx": True}
    assert asked == [(0x8946, b"ens1f0", 0x12)]


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


def test_a_port_that_user_space_has_and_one_that_is_not_there(tmp_path: Path) -> None:
    root = nics(tmp_path)
    taken = look(root, pci_address=TWO)["ports"]["port1"]
    assert (taken["device"], taken["driver"], taken["numa_node"], taken["carrier"]) == (None, "vfio-pci", None, None)
    assert look(root, pci_address="0000:99:00.0")["ports"]["port1"] is None
    assert look(root, device="eth9")["ports"]["port1"] is None
    assert look(root, device="eth9")["interfaces"] == ["br0", "ens1f0"]


def test_virtual_functions_are_counted(tmp_path: Path) -> None:
    root = tree(nics(tmp_path), {f"sys/bus/pci/devices/{TWO}/sriov_numvfs": "8"})
    counted = [look(root, pci_address=address)["ports"]["port1"]["virtual_functions"] for address in (ONE, TWO)]
    assert counted == [0, 8]


def test_programs_that_have_a_port_are_named(tmp_path: Path) -> None:
    root = tree(nics(tmp_path), {"proc/17/cmdline": "/usr/bin/vpp\0-c\0/etc/vpp/startup.conf\0"})
    link(root / f"sys/bus/pci/devices/{TWO}/iommu_group", root / "sys/kernel/iommu_groups/18")
    (root / "proc/17/fd").mkdir()
    (root / "proc/17/fd/9").symlink_to("/dev/vfio/18")
    said = device_users.answer({"root": str(root), "devices": {ONE: None, TWO: None, "0000:99:00.0": None}})
    vpp = {"pid": 17, "command": "/usr/bin/vpp -c /etc/vpp/startup.conf"}
    assert said == {"users": {ONE: [], TWO: [vpp], "0000:99:00.0": []}}
