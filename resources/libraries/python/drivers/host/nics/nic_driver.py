"""Temporary change of the driver of a PCI port, such as to one for user space, the users of the port, and its state.

Everything is done in sysfs: `driver_override` names the driver that may have a device, `unbind` takes it from the one
that has it, `drivers_probe` lets the kernel look for a driver again.
"""

import logging
import subprocess
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from pathlib import Path

from pydantic import Field

from resources.libraries.python.drivers.host.kernel_files import line_of, write
from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespace_syscalls import SYSFS
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.nics import ethtool
from resources.libraries.python.drivers.host.nics.device_users import END_IT, users
from resources.libraries.python.drivers.host.nics.port_inventory import (
    Device,
    device_at,
    devices,
    driver_of,
    group_of,
    index_at,
    why_not,
)
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import ConfigError, CsitError, NotReady, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.testbed.attachment import VFIO

USER_SPACE = VFIO
_HARMLESS = frozenset({USER_SPACE, "pci-stub", "pcieport"})
"""Drivers that do not touch a device's memory: the rest of an IOMMU group may have them."""
_NETWORK_CLASS = "0x02"
_NO_OVERRIDE = "(null)"
_BOUND_S = 10.0
_PAUSE_S = 0.05
_log = logging.getLogger(__name__)


_RENAMED_S = 3.0
_LOADED_S = 30.0


class Surroundings:
    """Environment of a sysfs: the kernel that reacts to it, processes, and the ports of a network namespace."""

    @staticmethod
    def load(module: str) -> None:
        """Load a module of the kernel, where there is one of that name."""
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(["modprobe", "--quiet", module], check=False, timeout=_LOADED_S, stdin=subprocess.DEVNULL)

    @staticmethod
    def write(path: Path, value: str) -> None:
        """Write a text to a file of sysfs, in one piece.

        Raises:
            OSError: The kernel refused.
        """
        write(path, value)

    @staticmethod
    def refusal_of_port(interface: str) -> tuple[str | None, Device]:
        """Why a port must not be taken from the kernel (None when it may be), and the port as it is.

        Raises:
            ConfigError: It is not in the network namespace of the calling thread.
        """
        with closing(Netlink()) as netlink:
            known = devices(netlink)
            if interface not in known:
                raise ConfigError(f"{interface} is in another network namespace, where it may be in use")
            device = known[interface]
            return why_not(netlink, device, known), device

    @staticmethod
    def parameters_of_port(interface: str) -> ethtool.Parameters:
        """Settings of a port that its driver forgets when it loses the port."""
        with closing(Netlink()) as netlink:
            return ethtool.parameters(netlink.socket, interface)

    @staticmethod
    def bring_down(name: str) -> None:
        """Bring a port down, where it is in the network namespace of the calling thread."""
        with closing(Netlink()) as netlink:
            if (device := devices(netlink).get(name)) is not None:
                netlink.do([rtnetlink_messages.set_down(name, device.index)])

    @staticmethod
    def users_of(device: Path) -> list[str]:
        """Processes that have a PCI device (its folder in sysfs) open, each as `pid 17 (command)`."""
        return [f"pid {pid} ({command})" for pid, command in users(device, Path("/proc"))]

    @staticmethod
    def restore_port(index: int, name: str, before: "Binding") -> None:
        """Give a port that is new its old name, MAC, MTU, parameters and state.

        Waits first until udev has named the ports of this machine.

        `index`: Its index: udev may rename it at any moment.
        """
        with closing(Netlink()) as netlink:

            def called() -> str | None:
                return next((each.name for each in devices(netlink).values() if each.index == index), None)

            def missing() -> str:
                now = called()
                return "" if now == name else f"it is called {now}"

            try:
                wait_until(f"the name {name}", missing, _RENAMED_S, _PAUSE_S)
            except NotReady:
                now = called() or f"port {index}"
                netlink.do([rtnetlink_messages.set_down(now, index), rtnetlink_messages.rename(now, index, name)])
            # That of a virtual function may be another one each time its driver gets it.
            if before.mac is not None and (new := devices(netlink).get(name)) is not None and new.mac != before.mac:
                netlink.do([rtnetlink_messages.set_mac(name, index, before.mac)])
            if before.mtu is not None:
                netlink.do([rtnetlink_messages.set_mtu(name, index, before.mtu)])
            ethtool.restore_parameters(netlink.socket, name, before.parameters)
            if before.promiscuous:
                netlink.do([rtnetlink_messages.set_promiscuous(name, index, on=True)])
            if before.up:
                netlink.do([rtnetlink_messages.set_up(name, index)])


class Binding(Frozen):
    """A PCI port as it was before it got another driver."""

    pci_address: str
    driver: str | None
    """None where no driver had it."""
    override: str | None
    """The driver that it was reserved for already, if any."""
    device: str | None = None
    """The kernel's name of the port, where the kernel had it."""
    up: bool = False
    mtu: int | None = None
    mac: str | None = None
    promiscuous: bool = False
    parameters: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    """Queues, ring sizes, interrupt coalescing, pause frames and offloads, see `ethtool.parameters`."""

    def __str__(self) -> str:
        return f"PCI port {self.pci_address}, taken from {self.driver or 'no driver'}"

    def restore(self) -> list[str]:
        """Give it its driver back; say so where that was needed.

        Raises:
            CsitError: It has another one still.
        """
        return PciDrivers().restore(self)


class PciDrivers:
    """Drivers of PCI devices.

    `root`: Where sysfs is mounted; it shows the ports of one network namespace.
    `surroundings`: What is around that sysfs; another one for tests, where no kernel reacts.
    `within_s`: How long a driver may take.
    """

    def __init__(
        self,
        root: Path = SYSFS,
        surroundings: Surroundings | None = None,
        within_s: float = _BOUND_S,
    ) -> None:
        self._root = root
        self._around = surroundings or Surroundings()
        self._within_s = within_s

    def look(self, pci_address: str, driver: str = USER_SPACE, together: Collection[str] = ()) -> Binding:
        """Describe a port that is to get another driver, and see that it may; the driver's module is loaded.

        `together`: PCI addresses of ports that are handed to user space with it, which may be of its IOMMU group.

        Raises:
            ConfigError: It is not there, is no network device, or must not be taken: the machine or a program uses it,
                or it has virtual functions.
            Unsupported: The driver or an IOMMU is missing.
        """
        folder = self._folder(pci_address)
        kind = line_of(folder / "class") or ""
        if not kind.startswith(_NETWORK_CLASS):
            raise ConfigError(f"{pci_address} is no network device (PCI class {kind or 'unknown'})")
        place = self._root / "bus/pci/drivers" / driver
        if not place.is_dir():
            self._around.load(driver)
        if not place.is_dir():
            raise Unsupported(f"no driver {driver} for {pci_address} in this kernel: modprobe {driver} loads none")
        before, port = driver_of(folder), device_at(pci_address, self._root)
        was, parameters = None, ethtool.Parameters()
        if port is not None:
            reason, was = self._around.refusal_of_port(port)
            if reason:
                raise ConfigError(
                    f"{pci_address}: {port} {reason}: it may be what this machine is reached by; name another port"
                )
            parameters = self._around.parameters_of_port(port)
        if driver == USER_SPACE and before != driver:
            for problem in self._isolation(pci_address, folder, together):
                raise Unsupported(problem)
        # Its driver removes them when it loses the port.
        refuse_functions(pci_address, self._root)
        # While the kernel has the port no program can have it, unlike one that was bound to another driver before.
        if port is None and (by := self._users_left(pci_address, folder)):
            raise ConfigError(f"{pci_address} is in use by {by}; {END_IT}")
        override = line_of(folder / "driver_override")
        return Binding(
            pci_address=pci_address,
            driver=before,
            override=None if override in (None, _NO_OVERRIDE) else override,
            device=port,
            up=was is not None and was.up,
            mtu=None if was is None else was.mtu,
            mac=None if was is None else was.mac,
            promiscuous=was is not None and was.promiscuous,
            parameters=parameters,
        )

    def _isolation(self, pci_address: str, folder: Path, together: Collection[str]) -> Iterator[str]:
        """Why the IOMMU does not let user space have a device."""
        group = group_of(folder)
        if group is None:
            if line_of(self._root / "module/vfio/parameters/enable_unsafe_noiommu_mode") != "Y":
                yield (
                    f"{pci_address} is behind no IOMMU; boot with intel_iommu=on (or amd_iommu=on), or allow user "
                    "space all of the memory: echo Y > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
                )
            return
        for other in sorted((folder / "iommu_group/devices").glob("*")):
            has = driver_of(other.resolve())
            if other.name not in (pci_address, *together) and has is not None and has not in _HARMLESS:
                yield (
                    f"{pci_address} shares IOMMU group {group} with {other.name}, which the driver {has} has; "
                    "they can be handed to user space together only: use another slot, or unbind that one too"
                )

    def bind(self, binding: Binding, driver: str = USER_SPACE) -> None:
        """Give a port another driver.

        `binding`: from `look`, on record.

        Raises:
            CsitError: Its driver does not release it, or the other one does not take it.
        """
        self._change(binding.pci_address, driver)
        group = self._path(binding.pci_address) / "iommu_group"
        if driver == USER_SPACE and (not group.is_symlink() or line_of(group / "name") == "vfio-noiommu"):
            _log.warning("%s is in user space without an IOMMU: nothing protects memory", binding.pci_address)

    def restore(self, binding: Binding) -> list[str]:
        """Give a port its driver back, and what the kernel had said about it.

        Returns:
            One sentence, also for a device that is gone; nothing where it had its driver already.

        Raises:
            CsitError: It is in use, or the driver does not accept it.
        """
        folder = self._path(binding.pci_address)
        if not folder.is_dir():
            return [f"PCI port {binding.pci_address} is not on this machine any more"]
        now = driver_of(folder)
        if now != binding.driver:
            # The kernel does not return from an unbind before the last user has gone.
            if by := self._users_left(binding.pci_address, folder):
                raise CsitError(f"{binding.pci_address} is in use by {by}; {END_IT}")
            self._change(binding.pci_address, binding.driver)
        self._override(folder, binding.override)
        # Also where the driver is back: what gave it back may have been killed before it came to the port.
        if binding.device is not None and (now != binding.driver or device_at(binding.pci_address, self._root)):
            self._wait_port(binding, binding.device)
        if now == binding.driver:
            return []
        return [f"gave PCI port {binding.pci_address} back to {binding.driver or 'no driver'}"]

    def _change(self, pci_address: str, driver: str | None) -> None:
        folder = self._folder(pci_address)
        if driver_of(folder) == driver:
            return
        self._override(folder, driver)
        if driver_of(folder) is not None:
            self._set(folder / "driver/unbind", pci_address, pci_address, driver)
        if driver is not None:
            self._set(self._root / "bus/pci/drivers_probe", pci_address, pci_address, driver)

        def missing() -> str:
            now = driver_of(folder)
            return "" if now == driver else f"it has {now or 'no driver'}"

        wait_until(f"driver {driver or '(none)'} of {pci_address}", missing, self._within_s, _PAUSE_S)

    def _users_left(self, pci_address: str, folder: Path) -> str:
        """Return processes that have a device open and keep it: those that are about to end are waited for."""
        try:
            wait_until(
                f"end of the users of {pci_address}",
                lambda: ", ".join(self._around.users_of(folder)),
                self._within_s,
                _PAUSE_S,
            )
        except NotReady as error:
            return error.last_seen
        return ""

    def _wait_port(self, binding: Binding, name: str) -> None:
        found: list[int] = []

        def missing() -> str:
            found[:] = [index for index in [index_at(binding.pci_address, self._root)] if index is not None]
            return "" if found else "no port of the kernel"

        wait_until(f"port of {binding.pci_address}", missing, self._within_s, _PAUSE_S)
        self._around.restore_port(found[0], name, binding)

    def _override(self, folder: Path, driver: str | None) -> None:
        if (line_of(folder / "driver_override") or _NO_OVERRIDE) != (driver or _NO_OVERRIDE):
            # An empty line takes the reservation away.
            self._set(folder / "driver_override", driver or "\n", folder.name, driver)

    def _set(self, path: Path, value: str, pci_address: str, driver: str | None) -> None:
        try:
            self._around.write(path, value)
        except OSError as error:
            raise CsitError(f"{pci_address} cannot get {driver or 'no driver'}: {path}: {error.strerror}") from error

    def _folder(self, pci_address: str) -> Path:
        folder = self._path(pci_address)
        if not folder.is_dir():
            raise ConfigError(f"this machine has no PCI device {pci_address}")
        return folder

    def _path(self, pci_address: str) -> Path:
        return self._root / "bus/pci/devices" / pci_address


def refuse_functions(pci_address: str, root: Path = SYSFS) -> None:
    """Refuse a port that has virtual functions, which are not ours: ours are removed with their cell.

    Raises:
        ConfigError: It has some.
    """
    count = line_of(root / "bus/pci/devices" / pci_address / "sriov_numvfs") or "0"
    if count != "0":
        raise ConfigError(
            f"{pci_address} has {count} virtual functions already, which are not ours; if nothing uses them: ",
            f"echo 0 > /sys/bus/pci/devices/{pci_address}/sriov_numvfs",
        )


class ParentFunction(Frozen):
    """A physical function as it was before it got virtual ones; it had none."""

    pci_address: str
    device: str | None = None
    """The kernel's name of its port."""
    up: bool = Field(default=True, exclude_if=lambda up: up)

    def __str__(self) -> str:
        return f"virtual functions of PCI port {self.pci_address}"

    def restore(self, root: Path = SYSFS, around: Surroundings | None = None) -> list[str]:
        """Remove its virtual functions, and bring its port down where it was; say so where there were some.

        Raises:
            CsitError: One is in use, or the kernel refused.
        """
        around = around or Surroundings()
        folder = root / "bus/pci/devices" / self.pci_address
        try:
            has_some = (line_of(folder / "sriov_numvfs") or "0") != "0"
            # The kernel does not return from the removal before the last user has gone.
            for function in sorted(folder.glob("virtfn*")):
                device = function.resolve()
                if driver_of(device) == USER_SPACE and (by := around.users_of(device)):
                    raise CsitError(f"{self} cannot be removed: {', '.join(by)} has {device.name} open")
            if has_some:
                around.write(folder / "sriov_numvfs", "0")
            # Also where a cleanup was killed after it had removed them.
            if self.device is not None and not self.up:
                around.bring_down(self.device)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CsitError(f"{self} cannot be removed: {error.strerror}") from error
        return [f"removed {self}"] if has_some else []
