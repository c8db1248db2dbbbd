"""Temporary change of the driver of a PCI port, such as to one for user space, the users of the port, and its state.

Everything is done in sysfs: `driver_override` names the driver that may have a device, `unbind` takes it from the one
that has it, `drivers_probe` lets the kernel look for a driver again.
"""

import logging
import os
import re
import subprocess
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from pathlib import Path

from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespace_syscalls import SYSFS
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.nics.port_inventory import device_at, devices, driver_of, group_of, why_not
from resources.libraries.python.drivers.host.ownership.processes import process
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import ConfigError, CsitError, NotReady, Unsupported
from resources.libraries.python.model.base import Frozen

USER_SPACE = "vfio-pci"
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
        descriptor = os.open(path, os.O_WRONLY)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)

    @staticmethod
    def refusal_of_port(interface: str) -> tuple[str | None, bool, int]:
        """Why a port must not be taken from the kernel (None when it may be), whether it is up, and its MTU.

        Raises:
            ConfigError: It is not in the network namespace of the calling thread.
        """
        with closing(Netlink()) as netlink:
            known = devices(netlink)
            if interface not in known:
                raise ConfigError(f"{interface} is in another network namespace, where it may be in use")
            device = known[interface]
            return why_not(netlink, device, known), device.up, device.mtu

    @staticmethod
    def users_of_group(group: int, root: Path = Path("/proc")) -> list[str]:
        """Processes that have an IOMMU group open, each as `pid 17 (command)`."""
        node = re.compile(rf"/dev/vfio/(noiommu-)?{group}$")
        found = []
        for entry in os.listdir(root):  # noqa: PTH208 - names are enough
            if entry.isdigit() and _has_open(root / entry / "fd", node):
                with suppress(ProcessLookupError):
                    found.append(f"pid {entry} ({process(int(entry)).command})")
        return found

    @staticmethod
    def restore_port(now: str, name: str, up: bool, mtu: int | None) -> None:
        """Give a port that is new its old name, MTU and state.

        Waits first until udev has named the ports of this machine.

        Args:
            now: Its present name.
            name: The one it had.
            up: Whether it was up.
            mtu: In bytes; None where that is not known.
        """
        with closing(Netlink()) as netlink:
            index = devices(netlink)[now].index

            def missing() -> str:
                here = {device.index: device.name for device in devices(netlink).values()}
                return "" if here.get(index) == name else f"it is called {here.get(index)}"

            try:
                wait_until(f"the name {name}", missing, _RENAMED_S, _PAUSE_S)
            except NotReady:
                netlink.do([rtnetlink_messages.set_down(now, index), rtnetlink_messages.rename(now, index, name)])
            if mtu is not None:
                netlink.do([rtnetlink_messages.set_mtu(name, index, mtu)])
            if up:
                netlink.do([rtnetlink_messages.set_up(name, index)])


def _has_open(folder: Path, node: re.Pattern[str]) -> bool:
    try:
        return any(node.match(str(entry.readlink())) for entry in folder.iterdir())
    except OSError:  # it has ended, or closed one in between
        return False


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

    def __str__(self) -> str:
        return f"PCI port {self.pci_address}, taken from {self.driver or 'no driver'}"

    def restore(self) -> list[str]:
        """Give it its driver back; say so where that was needed.

        Raises:
            CsitError: It has another one still.
        """
        return PciDrivers().restore(self)


class PciDrivers:
    """Drivers of PCI devices."""

    def __init__(
        self,
        root: Path = SYSFS,
        surroundings: Surroundings | None = None,
        within_s: float = _BOUND_S,
    ) -> None:
        """Prepare.

        Args:
            root: Where sysfs is mounted; it shows the ports of one network namespace.
            surroundings: What is around that sysfs; another one for tests, where no kernel reacts.
            within_s: How long a driver may take.
        """
        self._root = root
        self._around = surroundings or Surroundings()
        self._within_s = within_s

    def look(self, pci_address: str, driver: str = USER_SPACE, together: Collection[str] = ()) -> Binding:
        """Describe a port that is to get another driver, and see that it may; the driver's module is loaded.

        Args:
            pci_address: Of the port.
            driver: That it is to get.
            together: PCI addresses of ports that are handed to user space with it, which may be of its IOMMU group.

        Raises:
            ConfigError: It is not there, is no network device, or must not be taken.
            Unsupported: The driver or an IOMMU is missing.
        """
        folder = self._folder(pci_address)
        kind = _read(folder / "class") or ""
        if not kind.startswith(_NETWORK_CLASS):
            raise ConfigError(f"{pci_address} is no network device (PCI class {kind or 'unknown'})")
        place = self._root / "bus/pci/drivers" / driver
        if not place.is_dir():
            self._around.load(driver)
        if not place.is_dir():
            raise Unsupported(f"no driver {driver} for {pci_address} in this kernel: modprobe {driver} loads none")
        before, port = driver_of(folder), device_at(pci_address, self._root)
        up, mtu = False, None
        if port is not None:
            reason, up, mtu = self._around.refusal_of_port(port)
            if reason:
                raise ConfigError(
                    f"{pci_address}: {port} {reason}: it may be what this machine is reached by; name another port"
                )
        if driver == USER_SPACE and before != driver:
            for problem in self._isolation(pci_address, folder, together):
                raise Unsupported(problem)
        override = _read(folder / "driver_override")
        return Binding(
            pci_address=pci_address,
            driver=before,
            override=None if override in (None, _NO_OVERRIDE) else override,
            device=port,
            up=up,
            mtu=mtu,
        )

    def _isolation(self, pci_address: str, folder: Path, together: Collection[str]) -> Iterator[str]:
        """Why the IOMMU does not let user space have a device."""
        group = group_of(folder)
        if group is None:
            if _read(self._root / "module/vfio/parameters/enable_unsafe_noiommu_mode") != "Y":
                yield (
                    f"{pci_address} is behind no IOMMU; boot with intel_iommu=on (or amd_iommu=on), or allow user "
                    "space all of the memory: echo Y > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
                )
            return
        for other in sorted((folder / "iommu_group/devices").iterdir()):
            has = driver_of(other.resolve())
            if other.name not in (pci_address, *together) and has is not None and has not in _HARMLESS:
                yield (
                    f"{pci_address} shares IOMMU group {group} with {other.name}, which the driver {has} has; "
                    "they can be handed to user space together only: use another slot, or unbind that one too"
                )

    @staticmethod
    def without_protection(binding: Binding, root: Path = SYSFS) -> bool:
        """Whether user space that has a port can write anywhere in memory: there is no IOMMU before it."""
        folder = root / "bus/pci/devices" / binding.pci_address / "iommu_group"
        return not folder.is_symlink() or _read(folder / "name") == "vfio-noiommu"

    def bind(self, binding: Binding, driver: str = USER_SPACE) -> None:
        """Give a port another driver.

        Args:
            binding: From `look`, on record.
            driver: The kernel's name of the driver.

        Raises:
            CsitError: Its driver does not release it, or the other one does not take it.
        """
        self._change(binding.pci_address, driver)
        if driver == USER_SPACE and self.without_protection(binding, self._root):
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
            self._wait_unused(binding.pci_address, folder)
            self._change(binding.pci_address, binding.driver)
        self._override(folder, binding.override)
        if now == binding.driver:
            return []
        if binding.device is not None:
            self._wait_port(binding)
        return [f"gave PCI port {binding.pci_address} back to {binding.driver or 'no driver'}"]

    def _change(self, pci_address: str, driver: str | None) -> None:
        folder = self._folder(pci_address)
        if driver_of(folder) == driver:
            return
        self._override(folder, driver)
        if driver_of(folder) is not None:
            self._set(folder / "driver/unbind", pci_address)
        if driver is not None:
            self._set(self._root / "bus/pci/drivers_probe", pci_address)

        def missing() -> str:
            now = driver_of(folder)
            return "" if now == driver else f"it has {now or 'no driver'}"

        wait_until(f"driver {driver or '(none)'} of {pci_address}", missing, self._within_s, _PAUSE_S)

    def _wait_unused(self, pci_address: str, folder: Path) -> None:
        # The kernel does not return from an unbind before the last user has gone.
        group = group_of(folder)
        if group is None:
            return
        try:
            wait_until(
                f"end of the users of {pci_address}",
                lambda: ", ".join(self._around.users_of_group(group)),
                self._within_s,
                _PAUSE_S,
            )
        except NotReady as error:
            raise CsitError(f"{pci_address} is in use by {error.last_seen}; end it first") from error

    def _wait_port(self, binding: Binding) -> None:
        found: list[str] = []

        def missing() -> str:
            found[:] = [name for name in [device_at(binding.pci_address, self._root)] if name]
            return "" if found else "no port of the kernel"

        wait_until(f"port of {binding.pci_address}", missing, self._within_s, _PAUSE_S)
        self._around.restore_port(found[0], binding.device or found[0], binding.up, binding.mtu)

    def _override(self, folder: Path, driver: str | None) -> None:
        if (_read(folder / "driver_override") or _NO_OVERRIDE) != (driver or _NO_OVERRIDE):
            # An empty line takes the reservation away.
            self._set(folder / "driver_override", driver or "\n")

    def _set(self, path: Path, value: str) -> None:
        try:
            self._around.write(path, value)
        except OSError as error:
            raise CsitError(f"{value.strip() or 'nothing'} cannot be written to {path}: {error.strerror}") from error

    def _folder(self, pci_address: str) -> Path:
        folder = self._path(pci_address)
        if not folder.is_dir():
            raise ConfigError(f"this machine has no PCI device {pci_address}")
        return folder

    def _path(self, pci_address: str) -> Path:
        return self._root / "bus/pci/devices" / pci_address


def _read(path: Path) -> str | None:
    with suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip() or None
    return None


class ParentFunction(Frozen):
    """A physical function; it had no virtual ones before."""

    pci_address: str

    def __str__(self) -> str:
        return f"virtual functions of PCI port {self.pci_address}"

    def restore(self, root: Path = SYSFS, around: Surroundings | None = None) -> list[str]:
        """Remove its virtual functions; say so where there were some.

        Raises:
            CsitError: One is in use, or the kernel refused.
        """
        around = around or Surroundings()
        folder = root / "bus/pci/devices" / self.pci_address
        try:
            if int((folder / "sriov_numvfs").read_text(encoding="ascii")) == 0:
                return []
            # The kernel does not return from the removal before the last user has gone.
            for function in sorted(folder.glob("virtfn*")):
                group = group_of(function.resolve()) if driver_of(function.resolve()) == USER_SPACE else None
                if group is not None and (users := around.users_of_group(group)):
                    raise CsitError(f"{self} cannot be removed: {', '.join(users)} has {function.resolve().name} open")
            around.write(folder / "sriov_numvfs", "0")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CsitError(f"{self} cannot be removed: {error.strerror}") from error
        return [f"removed {self}"]
