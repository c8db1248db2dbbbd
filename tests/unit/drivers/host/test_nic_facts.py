"""What is found out about ports: from a sysfs in a folder, and from the real ports of this machine, read only."""

import os
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.nics.nic_driver import Surroundings
from resources.libraries.python.drivers.host.nics.port_inventory import (
    device_at,
    driver_of,
    group_of,
    numa_node_of,
    pci_ids,
)
from tests.unit.drivers.host.fake_pci import FakePci

PORT = "0000:3b:00.0"
REAL = [
    (entry.name, link.resolve().parent.name if link.resolve().name.startswith("virtio") else link.resolve().name)
    for entry in sorted(Path("/sys/class/net").iterdir())
    if (link := entry / "device").exists()
]


@pytest.fixture
def pci(tmp_path: Path) -> FakePci:
    pci = FakePci(tmp_path)
    pci.add_driver("i40e")
    pci.add(PORT, "i40e", port="nosuch0", group=7)
    return pci


def test_facts_of_a_port(pci: FakePci) -> None:
    device = pci.root / "bus/pci/devices" / PORT
    assert device_at(PORT, pci.root) == "nosuch0"
    assert pci_ids(PORT, pci.root) == ("0x8086", "0x1572")
    assert (numa_node_of(PORT, None, pci.root), driver_of(device), group_of(device)) == (1, "i40e", 7)
    assert (numa_node_of("0000:99:00.0", None, pci.root), pci_ids("0000:99:00.0", pci.root)) == (None, (None, None))


def test_a_port_of_user_space_has_no_name_but_facts(pci: FakePci) -> None:
    pci.add_driver("vfio-pci")
    folder = pci.root / "bus/pci/devices" / PORT
    pci.write(folder / "driver_override", "vfio-pci")
    pci.write(folder / "driver/unbind", PORT)
    pci.write(pci.root / "bus/pci/drivers_probe", PORT)
    assert (driver_of(folder), numa_node_of(PORT, None, pci.root)) == ("vfio-pci", 1)
    assert device_at(PORT, pci.root) is None


@pytest.mark.skipif(not REAL, reason="this machine has no port on a PCI bus")
@pytest.mark.parametrize(("interface", "address"), REAL)
def test_real_ports_of_this_machine(interface: str, address: str) -> None:
    assert device_at(address) == interface
    assert driver_of(Path("/sys/bus/pci/devices", address))
    vendor, device = pci_ids(address)
    assert vendor and device and vendor.startswith("0x") and device.startswith("0x")


def test_users_of_an_iommu_group_are_found(tmp_path: Path) -> None:
    me = os.getpid()
    for pid, target in ((me, "/dev/vfio/12"), (1, "/dev/vfio/120"), (2, "/dev/vfio/noiommu-3")):
        folder = tmp_path / str(pid) / "fd"
        folder.mkdir(parents=True)
        (folder / "5").symlink_to(target)
    (found,) = Surroundings.users_of_group(12, tmp_path)
    assert found.startswith(f"pid {me} (")
    assert Surroundings.users_of_group(1, tmp_path) == []
