"""Users of a port that gets another driver, and its state in the kernel."""

import os
import re
import subprocess
from contextlib import closing, suppress
from pathlib import Path

from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.nics.port_inventory import devices, why_not
from resources.libraries.python.drivers.host.ownership.processes import process
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import ConfigError, NotReady

_RENAMED_S = 3.0
_LOADED_S = 30.0
_PAUSE_S = 0.05


class Surroundings:
    """What is around a sysfs: the kernel that reacts to it, processes, and the ports of a network namespace."""

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
