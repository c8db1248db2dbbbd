"""Virtual functions on a sysfs in a folder, with a recorded netlink: made, configured, removed, also after a kill.

No emulated NIC has SR-IOV networking, so this was not tried on a device.
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resources.libraries.python.drivers.host.nics import virtual_functions
from resources.libraries.python.drivers.host.nics.nic_driver import USER_SPACE
from resources.libraries.python.drivers.host.nics.port_inventory import Device
from resources.libraries.python.drivers.host.nics.userspace_handover import HandedOver
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import ConfigError, CsitError, Unsupported
from resources.libraries.python.model.plan import Nic
from resources.libraries.python.model.testbed.attachment import Attachment
from tests.unit.drivers.host.fake_pci import FakePci, device
from tests.unit.planning.labs import lab
from tests.unit.planning.polled_ports import planned, polled

PARENT, FUNCTION, MAC = "0000:3b:00.1", "0000:3b:11.0", "02:00:5e:00:53:01"
NIC = Nic(port="port1", pci_address=FUNCTION, parent=PARENT, vfs=1, attachment=Attachment.DPDK)


class SriovPci(FakePci):
    """Makes and removes functions as their number is written."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, "ice", "iavf", USER_SPACE)
        self.up = True
        self.down: list[str] = []
        self.configured: list[tuple[str, str]] = []
        self.parent = self.add(PARENT, "ice", port="ens1f1", group=1)
        for name, text in (("sriov_offset", "135"), ("sriov_stride", "1"), ("sriov_numvfs", "0")):
            (self.parent / name).write_text(text)

    def write(self, path: Path, value: str) -> None:
        if path.name != "sriov_numvfs":
            super().write(path, value)
            return
        path.write_text(value)
        if value == "0":
            (self.parent / "virtfn0").unlink()
        else:
            (self.parent / "virtfn0").symlink_to(self.add(FUNCTION, "iavf", port="ens1f1v0", group=2))

    def refusal_of_port(self, interface: str) -> tuple[str | None, Device]:
        return self.refusals.get(interface), device(interface, up=self.up)

    def bring_down(self, name: str) -> None:  # type: ignore[override]
        self.down.append(name)


@pytest.fixture
def pci(tmp_path: Path) -> SriovPci:
    return SriovPci(tmp_path / "sys")


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[MachineLock]:
    with MachineLock(tmp_path / "lock") as lock:
        yield lock


def functions_of(pci: SriovPci, lock: MachineLock) -> virtual_functions.VirtualFunctions:
    netlink: Any = SimpleNamespace(do=lambda interface, mac: pci.configured.append((interface, mac)))
    return virtual_functions.VirtualFunctions([(NIC, MAC)], lock, pci.root, pci, netlink)


def test_one_is_made_configured_bound_and_removed(pci: SriovPci, lock: MachineLock) -> None:
    functions, ports = functions_of(pci, lock), HandedOver([NIC], lock, pci.host())
    functions.start()
    ports.start()
    assert (pci.parent / "sriov_numvfs").read_text() == "1"
    assert pci.drivers(FUNCTION, PARENT) == [USER_SPACE, "ice"]
    assert pci.configured == [("ens1f1", MAC)]
    assert f"virtual functions of PCI port {PARENT}" in lock.leftovers()
    ports.stop()
    functions.stop()
    assert (pci.parent / "sriov_numvfs").read_text() == "0"
    assert lock.leftovers() == []


@pytest.mark.parametrize(("up", "down"), [(True, []), (False, ["ens1f1"])])
def test_their_port_is_down_again_if_it_was(up: bool, down: list[str], pci: SriovPci, lock: MachineLock) -> None:
    """It is brought up for them: a function has no link without it."""
    pci.up = up
    functions = functions_of(pci, lock)
    functions.start()
    functions.stop()
    assert pci.down == down


@pytest.mark.parametrize("cleaned", [False, True])
def test_those_of_a_killed_run_are_removed_and_their_port_is_down_again(
    pci: SriovPci, tmp_path: Path, *, cleaned: bool
) -> None:
    """Also where a cleanup was killed halfway."""
    pci.up = False
    with MachineLock(tmp_path / "lock") as lock:
        functions_of(pci, lock).start()
    with MachineLock(tmp_path / "lock") as lock:
        (left,) = lock._inherited.functions if lock._inherited else ()
    if cleaned:
        pci.write(pci.parent / "sriov_numvfs", "0")
    assert left.restore(pci.root, pci) == ([] if cleaned else [f"removed virtual functions of PCI port {PARENT}"])
    assert left.restore(pci.root, pci) == []
    assert "ens1f1" in pci.down


def test_a_port_that_makes_none_is_named(pci: SriovPci, lock: MachineLock, monkeypatch: pytest.MonkeyPatch) -> None:
    write = pci.write

    def refuse(path: Path, value: str) -> None:
        if value == "1":
            raise OSError(errno.ERANGE, os.strerror(errno.ERANGE))
        write(path, value)

    monkeypatch.setattr(pci, "write", refuse)
    functions = functions_of(pci, lock)
    with pytest.raises(CsitError, match=rf"{PARENT} cannot be made: Numerical result out of range"):
        functions.start()
    functions.stop()
    assert lock.leftovers() == []


def test_one_that_a_program_has_open_is_named_as_its_removal_would_not_return(pci: SriovPci, lock: MachineLock) -> None:
    functions = functions_of(pci, lock)
    functions.start()
    pci.users = ["pid 17 (vpp)"]
    HandedOver([NIC], lock, pci.host()).start()
    with pytest.raises(CsitError, match=rf"pid 17 \(vpp\) of {FUNCTION} has {FUNCTION} open"):
        functions.stop()
    assert (pci.parent / "sriov_numvfs").read_text() == "1"
    pci.users = []
    functions.stop()
    assert (pci.parent / "sriov_numvfs").read_text() == "0"


def test_foreign_functions_and_the_port_that_the_machine_is_reached_by_are_left_alone(
    pci: SriovPci, lock: MachineLock
) -> None:
    (pci.parent / "sriov_numvfs").write_text("4")
    with pytest.raises(ConfigError, match="has 4 virtual functions already"):
        functions_of(pci, lock).start()
    assert (pci.parent / "sriov_numvfs").read_text() == "4"
    (pci.parent / "sriov_numvfs").write_text("0")
    pci.refusals["ens1f1"] = "has the default route"
    with pytest.raises(ConfigError, match="has the default route"):
        functions_of(pci, lock).start()


def test_addresses_are_known_before_there_is_a_function(pci: SriovPci) -> None:
    assert virtual_functions.address_of(PARENT, root=pci.root) == FUNCTION
    assert virtual_functions.address_of(PARENT, 8, pci.root) == "0000:3b:12.0"
    with pytest.raises(Unsupported, match="has no virtual functions"):
        virtual_functions.address_of("0000:3b:00.0", root=pci.root)


def test_the_plan_of_a_machine_has_their_addresses(pci: SriovPci) -> None:
    plan = planned(polled(lab(1), driver=None, nic_vfs=1, pci_address=PARENT))
    here = virtual_functions.on_functions(plan, ["vswitch"], pci.root)
    nics = [port.nic for port in here.ports("vswitch") if port.nic]
    assert [(nic.pci_address, nic.parent) for nic in nics] == [(FUNCTION, PARENT)] * 2
    assert virtual_functions.on_functions(plan, ["generator"], pci.root) == plan


def test_requests_to_the_kernel() -> None:
    body = virtual_functions.set_function("ens1f1", 7, 0, "02:00:00:00:00:01").body
    assert bytes.fromhex("020000000001") in body
    # struct ifla_vf_trust {vf 0, setting 1} and ifla_vf_spoofchk {vf 0, setting 0}: attributes 9 and 4
    assert bytes.fromhex("0c0009000000000001000000") in body
    assert bytes.fromhex("0c0004000000000000000000") in body
