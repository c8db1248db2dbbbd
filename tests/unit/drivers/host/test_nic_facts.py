"""What is found out about ports: from a sysfs in a folder, and from the real ports of this machine, read only."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.nics.device_users import users
from resources.libraries.python.drivers.host.nics.port_inventory import (
    device_at,
    driver_of,
    group_of,
    index_at,
    numa_node_of,
    pci_ids,
)
from tests.unit.drivers.host.fake_pci import INDEX, FakePci
from tests.unit.testbed.node.machine_trees import tree

PORT = "0000:3b:00.0"


@pytest.fixture
def pci(tmp_path: Path) -> FakePci:
    pci = FakePci(tmp_path, "i40e")
    pci.add(PORT, "i40e", port="nosuch0", group=7)
    return pci


def test_facts_of_a_port(pci: FakePci) -> None:
    device = pci.root / "bus/pci/devices" / PORT
    assert (device_at(PORT, pci.root), index_at(PORT, pci.root)) == ("nosuch0", INDEX)
    assert pci_ids(PORT, pci.root) == ("0x8086", "0x1572")
    assert (numa_node_of(PORT, None, pci.root), driver_of(device), group_of(device)) == (1, "i40e", 7)
    assert (numa_node_of("0000:99:00.0", None, pci.root), pci_ids("0000:99:00.0", pci.root)) == (None, (None, None))


def test_a_port_of_user_space_has_no_name_but_facts(pci: FakePci) -> None:
    pci.add_driver("vfio-pci")
    pci.rebind(PORT, "vfio-pci")
    assert (driver_of(pci.root / "bus/pci/devices" / PORT), numa_node_of(PORT, None, pci.root)) == ("vfio-pci", 1)
    assert (device_at(PORT, pci.root), index_at(PORT, pci.root)) == (None, None)


def has_open(root: Path, pid: int, command: str, *files: str) -> None:
    tree(root, {f"proc/{pid}/cmdline": command.replace(" ", "\0")})
    (root / f"proc/{pid}/fd").mkdir()
    for number, file in enumerate(("/dev/null", *files)):
        (root / f"proc/{pid}/fd/{number}").symlink_to(file)


def test_users_of_a_pci_device_are_found(pci: FakePci) -> None:
    """By its IOMMU group, by vfio's own file of a device (Linux 6.2), and by uio, which many can have at once."""
    device, proc = pci.root / "bus/pci/devices" / PORT, pci.root / "proc"
    has_open(pci.root, 300, "vpp -c startup.conf", "/dev/vfio/vfio", "/dev/vfio/7")
    has_open(pci.root, 20, "other", "/dev/vfio/77", "/dev/vfio/devices/vfio1", "/dev/uio30")
    tree(pci.root, {"proc/stat": "cpu", "proc/4/cmdline": "ended"})
    assert users(device, proc) == [(300, "vpp -c startup.conf")]
    has_open(pci.root, 21, "by noiommu", "/dev/vfio/noiommu-7")
    assert [pid for pid, _ in users(device, proc)] == [21, 300]
    apart = pci.add("0000:3b:00.1", None)
    assert users(apart, proc) == []
    (apart / "vfio-dev/vfio1").mkdir(parents=True)
    assert users(apart, proc) == [(20, "other")]
    (apart / "uio/uio3").mkdir(parents=True)
    has_open(pci.root, 22, "testpmd", "/dev/uio3")
    has_open(pci.root, 23, "_t-rex-64", "/dev/uio3")
    assert [pid for pid, _ in users(apart, proc)] == [20, 22, 23]
