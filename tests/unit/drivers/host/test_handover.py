"""Ports that are handed over, and virtual functions, are on the machine's record until they are back or removed.

They are on a PCI bus in a folder; netlink is recorded. No emulated NIC has SR-IOV networking, so this
was not tried on a device.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from resources.libraries.python.drivers.host.links.namespaces import Namespace
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.nics import ethtool, handover, nic_adoption
from resources.libraries.python.drivers.host.nics.ethtool import Channels
from resources.libraries.python.drivers.host.nics.handover import HandedOver, VirtualFunctions
from resources.libraries.python.drivers.host.nics.nic_adoption import AdoptedPort, give_back, take
from resources.libraries.python.drivers.host.nics.nic_driver import USER_SPACE
from resources.libraries.python.drivers.host.nics.port_inventory import Device
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.ownership_record import read_record
from resources.libraries.python.errors import CommandFailed, ConfigError, CsitError, SystemBroken, Unsupported
from resources.libraries.python.model.plan import Nic
from resources.libraries.python.model.testbed.attachment import Attachment
from tests.unit.drivers.host.fake_pci import GONE, FakePci, device
from tests.unit.planning.labs import lab
from tests.unit.planning.polled_ports import planned, polled

PORTS = ("0000:3b:00.0", "0000:3b:00.1")
NICS = [Nic(port=f"port{number}", pci_address=address) for number, address in enumerate(PORTS, 1)]


@pytest.fixture
def pci(tmp_path: Path) -> FakePci:
    pci = FakePci(tmp_path / "sys", "ice", USER_SPACE, "uio_pci_generic")
    for number, address in enumerate(PORTS):
        pci.add(address, "ice", port=f"nosuch{number}", group=number)
    return pci


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[MachineLock]:
    with MachineLock(tmp_path / "lock") as lock:
        yield lock


def handed(pci: FakePci, lock: MachineLock, nics: list[Nic]) -> HandedOver:
    return HandedOver(nics, lock, pci.host())


def test_all_are_on_record_until_they_are_back(pci: FakePci, lock: MachineLock) -> None:
    ports = handed(pci, lock, NICS)
    ports.start()
    assert pci.drivers(*PORTS) == [USER_SPACE] * 2
    assert lock.leftovers() == [f"PCI port {address}, taken from ice" for address in PORTS]
    ports.stop()
    assert pci.drivers(*PORTS) == ["ice"] * 2
    assert lock.leftovers() == []
    ports.stop()  # safe to repeat


def test_ports_of_one_iommu_group_are_handed_over_together_only(pci: FakePci, lock: MachineLock) -> None:
    """Both ports of a NIC on a board that does not isolate its functions."""
    addresses = ("0000:5e:00.0", "0000:5e:00.1")
    for number, address in enumerate(addresses):
        pci.add(address, "ice", port=f"nosuch5{number}", group=9)
    nics = [Nic(port=f"port{number}", pci_address=address) for number, address in enumerate(addresses, 5)]
    with pytest.raises(Unsupported, match=rf"{addresses[0]} shares IOMMU group 9 with {addresses[1]}, which .* ice"):
        handed(pci, lock, nics[:1]).start()
    in_kernel = nics[1].model_copy(update={"uio_driver": "uio_pci_generic"})
    with pytest.raises(Unsupported, match="shares IOMMU group 9"):
        handed(pci, lock, [nics[0], in_kernel]).start()
    ports = handed(pci, lock, nics)
    ports.start()
    assert pci.drivers(*addresses) == [USER_SPACE] * 2
    ports.stop()
    assert pci.drivers(*addresses) == ["ice"] * 2


def test_a_port_in_use_stays_on_record(pci: FakePci, lock: MachineLock, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = handed(pci, lock, [NICS[0].model_copy(update={"uio_driver": "uio_pci_generic"}), NICS[1]])
    ports.start()
    assert pci.drivers(*PORTS) == ["uio_pci_generic", USER_SPACE], "the driver is that of the topology"
    monkeypatch.setattr(pci, "users_of", lambda device: ["pid 17 (vpp)"] if device.name == PORTS[1] else [])
    with pytest.raises(CsitError, match=f"{PORTS[1]} is in use by pid 17"):
        ports.stop()
    assert pci.drivers(*PORTS) == ["ice", USER_SPACE]
    assert lock.leftovers() == [f"PCI port {PORTS[1]}, taken from ice"]


def test_nothing_is_changed_when_one_cannot_be_had(pci: FakePci, lock: MachineLock) -> None:
    """It is what the machine is reached by, or VPP's system service took it at boot; the first port is free."""
    pci.refusals["nosuch1"] = "has the default route"
    with pytest.raises(ConfigError, match="nosuch1 has the default route"):
        handed(pci, lock, NICS).start()
    assert not pci.written
    pci.rebind(PORTS[1], USER_SPACE)
    pci.written.clear()
    pci.users.append("pid 17 (vpp)")
    with pytest.raises(ConfigError, match=rf"{PORTS[1]} is in use by pid 17 \(vpp\).*; end it first"):
        handed(pci, lock, NICS).start()
    with pytest.raises(ConfigError, match="port9: no pci_address"):
        handed(pci, lock, [Nic(port="port9", device="eth9")])
    assert not pci.written
    assert lock.leftovers() == []


def test_ports_of_vfio_are_handed_over_while_the_last_cell_ends(pci: FakePci, lock: MachineLock) -> None:
    """Nothing waits for the program of the last cell when a port has no other driver to go back to."""
    for address in PORTS:
        pci.rebind(address, USER_SPACE)
    for ending in ([], ["pid 17 (vpp)"]):
        pci.ending = ending
        ports = handed(pci, lock, NICS)
        ports.start()
        ports.stop()
    assert pci.ending == []
    assert pci.drivers(*PORTS) == [USER_SPACE] * 2
    assert lock.leftovers() == []


def test_a_port_that_went_away_is_a_broken_system_and_no_defect() -> None:
    nowhere = cast(Namespace, None)  # it does not come as far as that
    reason = r"^port nosuchport went away while it was taken"
    with closing(Netlink()) as home, pytest.raises(SystemBroken, match=reason):
        take(GONE, home, nowhere, "02:00:00:00:00:02", 1500, promiscuous=False)


def test_ring_sizes_are_set_back_after_the_queues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some drivers make queues with interrupts of their defaults when the number of queues changes."""
    recorded = GONE.model_copy(
        update={"rx_queues": 0, "tx_queues": 0, "combined_queues": 4, "parameters": {"ring sizes": (512, 0, 0, 512)}}
    )
    port, notes = AdoptedPort.model_validate_json(recorded.model_dump_json()), list[object]()
    monkeypatch.setattr(ethtool, "channels", lambda *_: Channels(0, 0, 1, 0, 0, 8, 0))
    monkeypatch.setattr(ethtool, "set_channels", lambda _, __, wanted: notes.append(wanted.combined))
    monkeypatch.setattr(ethtool, "restore_parameters", lambda _, __, before: notes.append(before))
    for name in ("set_offload", "lro", "set_lro"):
        monkeypatch.setattr(ethtool, name, lambda *_, **__: False)
    netlink = cast(Netlink, SimpleNamespace(socket=None, do=lambda _: None))
    nic_adoption._restore(port, netlink, cast(Device, SimpleNamespace(name="csg1p1", index=7)), tmp_path)
    assert notes == [4, {"ring sizes": (512, 0, 0, 512)}]


def test_a_port_that_goes_away_while_it_is_given_back_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its peer may be removed between the moment it is found and the moment it is set down."""
    gone = ["port nosuchport is not on this machine any more"]
    argv = ["netlink", "bring", "csg1p1", "down"]
    give = Mock(side_effect=[CommandFailed(argv, errno.ENODEV, "No such device"), gone])
    monkeypatch.setattr(nic_adoption, "_give_back", give)
    assert give_back([GONE]) == gone
    give.side_effect = CommandFailed(argv, errno.EBUSY, "No such device")
    with pytest.raises(CsitError, match=r"^port nosuchport cannot be given back: netlink bring csg1p1 down"):
        give_back([GONE])
    assert all(call.args == (GONE,) for call in give.call_args_list)


PARENT, FUNCTION, MAC = "0000:3b:00.1", "0000:3b:11.0", "02:00:5e:00:53:01"
NIC = Nic(port="port1", pci_address=FUNCTION, parent=PARENT, vfs=1, attachment=Attachment.DPDK)


class SriovPci(FakePci):
    """Makes and removes functions as their number is written."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, "ice", "iavf", USER_SPACE)
        self.up = True
        self.down: list[str] = []
        self.configured: list[tuple[str, str]] = []
        self.makes_none = False
        self.parent = self.add(PARENT, "ice", port="ens1f1", group=1)
        for name, text in (("sriov_offset", "135"), ("sriov_stride", "1"), ("sriov_numvfs", "0")):
            (self.parent / name).write_text(text)

    def write(self, path: Path, value: str) -> None:
        if path.name != "sriov_numvfs":
            super().write(path, value)
            return
        if value == "1" and self.makes_none:
            raise OSError(errno.ERANGE, os.strerror(errno.ERANGE))
        path.write_text(value)
        if value == "0":
            (self.parent / "virtfn0").unlink()
        else:
            (self.parent / "virtfn0").symlink_to(self.add(FUNCTION, "iavf", port="ens1f1v0", group=2))

    def refusal_of_port(self, interface: str) -> tuple[str | None, Device]:
        return self.refusals.get(interface), device(interface, up=self.up)

    def number(self) -> str:
        return (self.parent / "sriov_numvfs").read_text()

    def bring_down(self, name: str) -> None:  # type: ignore[override]
        self.down.append(name)


@pytest.fixture
def sriov(tmp_path: Path) -> SriovPci:
    return SriovPci(tmp_path / "sys")


@pytest.fixture
def functions(sriov: SriovPci, lock: MachineLock) -> VirtualFunctions:
    netlink: Any = SimpleNamespace(do=lambda interface, mac: sriov.configured.append((interface, mac)))
    return VirtualFunctions([(NIC, MAC)], lock, sriov.root, sriov, netlink)


@pytest.mark.parametrize("up", [True, False])
def test_one_is_made_configured_bound_and_removed(
    sriov: SriovPci, lock: MachineLock, functions: VirtualFunctions, up: bool
) -> None:
    """Its port is brought up for it, as it has no link without, and is down again if it was."""
    sriov.up = up
    ports = HandedOver([NIC], lock, sriov.host())
    functions.start()
    ports.start()
    assert (sriov.number(), sriov.drivers(FUNCTION, PARENT)) == ("1", [USER_SPACE, "ice"])
    assert sriov.configured == [("ens1f1", MAC)]
    assert f"virtual functions of PCI port {PARENT}" in lock.leftovers()
    ports.stop()
    functions.stop()
    assert (sriov.number(), sriov.down, lock.leftovers()) == ("0", [] if up else ["ens1f1"], [])


@pytest.mark.parametrize("cleaned", [False, True])
def test_functions_of_a_killed_run_are_removed(
    sriov: SriovPci, tmp_path: Path, functions: VirtualFunctions, *, cleaned: bool
) -> None:
    """Also where a cleanup was killed halfway."""
    sriov.up = False
    functions.start()
    record = read_record(tmp_path / "lock" / "owner.json")
    (left,) = record.functions if record else ()
    if cleaned:
        sriov.write(sriov.parent / "sriov_numvfs", "0")
    assert left.restore(sriov.root, sriov) == ([] if cleaned else [f"removed virtual functions of PCI port {PARENT}"])
    assert left.restore(sriov.root, sriov) == []
    assert "ens1f1" in sriov.down


def test_a_port_that_makes_none_is_named(sriov: SriovPci, lock: MachineLock, functions: VirtualFunctions) -> None:
    sriov.makes_none = True
    with pytest.raises(CsitError, match=rf"{PARENT} cannot be made: Numerical result out of range"):
        functions.start()
    functions.stop()
    assert lock.leftovers() == []


def test_a_function_that_a_program_has_open_is_named_and_kept(
    sriov: SriovPci, lock: MachineLock, functions: VirtualFunctions
) -> None:
    functions.start()
    sriov.users = ["pid 17 (vpp)"]
    HandedOver([NIC], lock, sriov.host()).start()
    with pytest.raises(CsitError, match=rf"pid 17 \(vpp\) of {FUNCTION} has {FUNCTION} open"):
        functions.stop()
    assert sriov.number() == "1"
    sriov.users = []
    functions.stop()
    assert sriov.number() == "0"


def test_foreign_functions_and_the_default_route_are_left_alone(sriov: SriovPci, functions: VirtualFunctions) -> None:
    (sriov.parent / "sriov_numvfs").write_text("4")
    with pytest.raises(ConfigError, match="has 4 virtual functions already"):
        functions.start()
    assert sriov.number() == "4"
    (sriov.parent / "sriov_numvfs").write_text("0")
    sriov.refusals["ens1f1"] = "has the default route"
    with pytest.raises(ConfigError, match="has the default route"):
        functions.start()


def test_addresses_are_known_before_there_is_a_function_and_in_the_plan_of_the_machine(sriov: SriovPci) -> None:
    assert handover.address_of(PARENT, root=sriov.root) == FUNCTION
    assert handover.address_of(PARENT, 8, sriov.root) == "0000:3b:12.0"
    with pytest.raises(Unsupported, match="has no virtual functions"):
        handover.address_of("0000:3b:00.0", root=sriov.root)
    plan = planned(polled(lab(1), driver=None, nic_vfs=1, pci_address=PARENT))
    here = handover.on_functions(plan, ["vswitch"], sriov.root)
    nics = [port.nic for port in here.ports("vswitch") if port.nic]
    assert [(nic.pci_address, nic.parent) for nic in nics] == [(FUNCTION, PARENT)] * 2
    assert handover.on_functions(plan, ["generator"], sriov.root) == plan


def test_requests_to_the_kernel() -> None:
    body = handover.set_function("ens1f1", 7, 0, "02:00:00:00:00:01").body
    assert bytes.fromhex("020000000001") in body
    # struct ifla_vf_trust {vf 0, setting 1} and ifla_vf_spoofchk {vf 0, setting 0}: attributes 9 and 4
    assert bytes.fromhex("0c0009000000000001000000") in body
    assert bytes.fromhex("0c0004000000000000000000") in body
