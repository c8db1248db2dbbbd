"""Physical ports as a run needs them, and as they were again afterwards: with virtual functions, with another driver.

Virtual functions (SR-IOV) are trusted and have a MAC of their own. The kernel makes them when their number is written
to `sriov_numvfs` of the physical function. Where they will be on the PCI bus is known before: `sriov_offset` and
`sriov_stride` of the physical function (PCI Express, "First VF Offset" and "VF Stride").
"""

from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path

from pyroute2.netlink.rtnl import RTM_SETLINK
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespace_syscalls import SYSFS
from resources.libraries.python.drivers.host.links.netlink import Netlink, Request
from resources.libraries.python.drivers.host.nics.nic_driver import (
    USER_SPACE,
    Binding,
    ParentFunction,
    PciDrivers,
    Surroundings,
    refuse_functions,
)
from resources.libraries.python.drivers.host.nics.port_inventory import device_at, devices
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.ownership.ownership_record import Claims
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import ConfigError, CsitError, SystemBroken, Unsupported
from resources.libraries.python.model.plan import Nic, Plan
from resources.libraries.python.testbed.roles.part import Part

_MADE_S = 10.0
_PAUSE_S = 0.05


class FunctionNetlink:
    """Changes of virtual functions by way of the port of their physical function; another one for tests."""

    @staticmethod
    def do(interface: str, mac: str) -> None:
        """Give function 0 of a port its MAC, trust it, do not check its source addresses, and bring the port up.

        Raises:
            CommandFailed: The kernel refused.
            SystemBroken: The port has gone away.
        """
        with closing(Netlink()) as netlink:
            port = devices(netlink).get(interface)
            if port is None:
                raise SystemBroken(f"port {interface} went away while its virtual functions were made")
            changes = set_function(interface, port.index, 0, mac), rtnetlink_messages.set_up(interface, port.index)
            netlink.do(list(changes))


def set_function(name: str, index: int, number: int, mac: str) -> Request:
    """Configure a virtual function: its MAC, trusted (it may be promiscuous), without a check of source addresses.

    `number`: of the function, from 0.
    """
    function = [
        ("IFLA_VF_MAC", {"vf": number, "mac": mac}),
        ("IFLA_VF_SPOOFCHK", {"vf": number, "spoofchk": 0}),
        ("IFLA_VF_TRUST", {"vf": number, "trust": 1}),
    ]
    rows = [("IFLA_VFINFO_LIST", {"attrs": [("IFLA_VF_INFO", {"attrs": function})]})]
    body = rtnetlink_messages.encoded(ifinfmsg, {"index": index}, rows)
    return Request(RTM_SETLINK, 0, body, f"configure virtual function {number} of {name}")


def address_of(parent: str, number: int = 0, root: Path = SYSFS) -> str:
    """The PCI address that a virtual function has, or will have.

    Raises:
        Unsupported: The port has no virtual functions.
    """
    folder = root / "bus/pci/devices" / parent
    try:
        offset, stride = (int((folder / name).read_text()) for name in ("sriov_offset", "sriov_stride"))
    except (OSError, ValueError) as error:
        raise Unsupported(f"{parent} has no virtual functions (SR-IOV), which nic_vfs asks for") from error
    domain, bus, rest = parent.split(":")
    device, function = rest.split(".")
    routing_id = (int(bus, 16) << 8 | int(device, 16) << 3 | int(function)) + offset + stride * number
    return f"{domain}:{routing_id >> 8:02x}:{routing_id >> 3 & 0x1F:02x}.{routing_id & 7}"


def on_functions(plan: Plan, owners: Iterable[str], root: Path = SYSFS) -> Plan:
    """The plan with the PCI addresses of virtual functions in the place of those of their ports.

    `plan`: As it was made, which reaches no node.
    `owners`: Whose ports are on this machine.

    Raises:
        Unsupported: A port has no virtual functions.
    """
    here = frozenset(owners)
    if not any(port.nic is not None and port.nic.vfs for owner in here for port in plan.ports(owner)):
        return plan
    links = []
    for link in plan.links:
        ends = {}
        for end, port in (("a", link.a), ("b", link.b)):
            nic = port.nic
            if port.owner in here and nic is not None and nic.vfs and nic.pci_address is not None:
                changed = nic.model_copy(
                    update={"pci_address": address_of(nic.pci_address, root=root), "parent": nic.pci_address}
                )
                ends[end] = port.model_copy(update={"nic": changed})
        links.append(link.model_copy(update=ends))
    return plan.model_copy(update={"links": tuple(links)})


class VirtualFunctions(Part):
    """Virtual functions of a machine's ports, from `start` to `stop`.

    `nics`: Ports as `on_functions` has them, each with its MAC in the plan.
    `root`: Where sysfs is mounted; another one for tests.
    `around`: What is around that sysfs; another one for tests.
    `netlink`: How functions are configured; another one for tests.
    """

    def __init__(
        self,
        nics: Iterable[tuple[Nic, str]],
        lock: Claims,
        root: Path = SYSFS,
        around: Surroundings | None = None,
        netlink: FunctionNetlink | None = None,
    ) -> None:
        self._nics = {nic.parent: (nic, mac) for nic, mac in nics if nic.parent is not None}
        self._lock = lock
        self._root = root
        self._around = around or Surroundings()
        self._netlink = netlink or FunctionNetlink()
        self._made: list[ParentFunction] = []

    def start(self) -> None:
        """Make and configure all of them.

        Raises:
            ConfigError: The machine is reached by such a port, or it has functions already.
            Unsupported: A port has no virtual functions.
            CsitError: The kernel refused, or made another device than was expected.
        """
        for parent, (nic, mac) in self._nics.items():
            folder = self._root / "bus/pci/devices" / parent
            port = device_at(parent, self._root)
            if port is None:
                raise ConfigError(f"{parent} has no port of the kernel, so its virtual functions cannot be configured")
            reason, was = self._around.refusal_of_port(port)
            if reason is not None:
                raise ConfigError(f"{parent}: {port} {reason}: it may be what this machine is reached by")
            refuse_functions(parent, self._root)
            function = ParentFunction(pci_address=parent, device=port, up=was.up)
            self._lock.claim("functions", function)
            self._made.append(function)
            try:
                self._around.write(folder / "sriov_numvfs", str(nic.vfs))
            except OSError as error:
                raise CsitError(f"{function} cannot be made: {error.strerror}") from error
            wanted = str(nic.pci_address)

            def missing(folder: Path = folder, wanted: str = wanted) -> str:
                link = folder / "virtfn0"
                there = link.resolve().name if link.is_symlink() else "not there"
                return "" if there == wanted else f"it is {there}"

            wait_until(f"virtual function {wanted} of {parent}", missing, _MADE_S, _PAUSE_S)
            self._netlink.do(port, mac)

    def stop(self) -> None:
        """Remove all of them. Safe to call after a failure.

        Raises:
            CsitError: The kernel refused, or a function is in use; the others were removed.
        """
        take_all(partial(self._remove, function) for function in reversed(self._made))

    def _remove(self, function: ParentFunction) -> list[str]:
        removed = function.restore(self._root, self._around)
        self._lock.release("functions", [function])
        self._made = [each for each in self._made if each is not function]
        return removed


class HandedOver(Part):
    """Ports with another driver, from `start` to `stop`.

    `nics`: Ports with their PCI addresses; their `uio_driver` is the one that they get, by default vfio-pci.
    `drivers`: Drivers by device; replaced in tests.

    Raises:
        ConfigError: One has no PCI address.
    """

    def __init__(self, nics: Iterable[Nic], lock: Claims, drivers: PciDrivers | None = None) -> None:
        self._wanted: dict[str, str] = {}
        for nic in nics:
            if nic.pci_address is None:
                raise ConfigError(f"{nic.port}: no pci_address, so it cannot be handed to a program of user space")
            self._wanted[nic.pci_address] = nic.uio_driver or USER_SPACE
        self._lock = lock
        self._drivers = drivers or PciDrivers()
        self._bound: list[Binding] = []

    def start(self) -> None:
        """Look at all of them, then give them their driver one by one.

        Raises:
            ConfigError: One is not there, or must not be taken.
            Unsupported: The driver or an IOMMU is missing.
            CsitError: A driver does not release one, or does not take it.
        """
        # Ports of one NIC may share an IOMMU group, which user space gets as a whole or not at all.
        together = [address for address, driver in self._wanted.items() if driver == USER_SPACE]
        found = [(self._drivers.look(address, driver, together), driver) for address, driver in self._wanted.items()]
        for binding, driver in found:
            self._lock.claim("bindings", binding)
            self._bound.append(binding)
            self._drivers.bind(binding, driver)

    def stop(self) -> None:
        """Give all of them back. Safe to call after a failure.

        Raises:
            CsitError: One could not be given back, and stays on record; the others were.
        """
        bound, self._bound = self._bound, []
        take_all(partial(self._restore, binding) for binding in reversed(bound))

    def _restore(self, binding: Binding) -> list[str]:
        restored = self._drivers.restore(binding)
        self._lock.release("bindings", [binding])
        return restored
