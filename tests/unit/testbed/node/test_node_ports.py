"""What a node says of its physical ports, whoever drives them."""

from pathlib import Path
from typing import Any

from resources.libraries.python.testbed.node.sent import ports
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
        "iommu_group": "17", "mac_address": "3c:fd:fe:00:00:01", "up": True, "carrier": True, "speed_mbps": 25000,
        "mtu": 9000, "addresses": ["2001:db8::1"], "default_route": True, "master": "br0",
    }  # fmt: skip
    assert port == expected
    assert by_address["vfio_pci"] == "loaded" and by_address["uio_pci_generic"] == "available"
    assert by_address["igb_uio"] is None and by_address["iommu_groups"] == 1


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


def test_a_port_of_the_kernel_alone() -> None:
    said = ports.answer({"ports": {"port1": {"device": "lo", "pci_address": None}}})["ports"]["port1"]
    assert (said["device"], said["pci_address"], said["addresses"][:1]) == ("lo", None, ["127.0.0.1"])
