"""What is found out about ports: from a sysfs in a folder, and from the real ports of this machine, read only."""

import os
import re
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.nics.nic_driver import Surroundings
from resources.libraries.python.drivers.host.nics.nic_facts import device_at, facts_of_device, facts_of_pci, link_bps
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


def test_facts_of_a_port_with_its_link(pci: FakePci) -> None:
    port = pci.root / "class/net/nosuch0"
    for name, text in (("speed", "25000"), ("carrier", "1"), ("mtu", "9000"), ("address", "3c:fd:fe:00:00:01")):
        (port / name).write_text(f"{text}\n")
    facts = facts_of_device("nosuch0", pci.root)
    assert facts == facts_of_pci(PORT, pci.root)
    assert (facts.device, facts.pci_address, facts.driver) == ("nosuch0", PORT, "i40e")
    assert (facts.vendor, facts.model, facts.numa_node, facts.iommu_group) == ("0x8086", "0x1572", 1, 7)
    assert (facts.link_bps, facts.carrier, facts.mtu) == (25_000_000_000, True, 9000)
    assert facts.mac_address == "3c:fd:fe:00:00:01"


@pytest.mark.parametrize("speed", ["-1\n", "", "0\n"])
def test_an_unknown_speed_is_none(pci: FakePci, speed: str) -> None:
    assert link_bps("nosuch0", pci.root) is None  # the kernel refuses to read it of a port that is down
    (pci.root / "class/net/nosuch0/speed").write_text(speed)
    assert link_bps("nosuch0", pci.root) is None


def test_a_port_of_user_space_has_no_name_but_facts(pci: FakePci) -> None:
    pci.add_driver("vfio-pci")
    folder = pci.root / "bus/pci/devices" / PORT
    pci.write(folder / "driver_override", "vfio-pci")
    pci.write(folder / "driver/unbind", PORT)
    pci.write(pci.root / "bus/pci/drivers_probe", PORT)
    facts = facts_of_pci(PORT, pci.root)
    assert facts is not None
    assert (facts.device, facts.driver, facts.numa_node, facts.link_bps) == (None, "vfio-pci", 1, None)
    assert device_at(PORT, pci.root) is None
    assert facts_of_pci("0000:99:00.0", pci.root) is None


@pytest.mark.skipif(not REAL, reason="this machine has no port on a PCI bus")
@pytest.mark.parametrize(("interface", "address"), REAL)
def test_real_ports_of_this_machine(interface: str, address: str) -> None:
    facts = facts_of_device(interface)
    assert facts.device == interface
    assert facts.driver
    assert facts.mac_address is not None and re.fullmatch(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", facts.mac_address)
    assert facts.mtu is not None and facts.mtu > 0
    if facts.pci_address is not None:
        assert facts.pci_address == address
        assert device_at(address) == interface
        assert facts_of_pci(address) == facts


def test_users_of_an_iommu_group_are_found(tmp_path: Path) -> None:
    me = os.getpid()
    for pid, target in ((me, "/dev/vfio/12"), (1, "/dev/vfio/120"), (2, "/dev/vfio/noiommu-3")):
        folder = tmp_path / str(pid) / "fd"
        folder.mkdir(parents=True)
        (folder / "5").symlink_to(target)
    (found,) = Surroundings.users_of_group(12, tmp_path)
    assert found.startswith(f"pid {me} (")
    assert Surroundings.users_of_group(1, tmp_path) == []
