"""Accounts of what a guest sees of itself: its vCPUs or control group, and its ports."""

from collections.abc import Iterable
from pathlib import Path

from pyroute2.netlink.rtnl import RTM_GETSTATS

from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup
from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.probes.sampler.accounts import PERCENT_OF_NS, Amounts, OpenFiles
from resources.libraries.python.drivers.probes.sampler.tasks import PROC
from resources.libraries.python.errors import CsitError


class VcpuAccount:
    """The vCPUs of a virtual machine: what the guest has had of its CPUs."""

    def __init__(self, threads: Iterable[int], root: Path = PROC) -> None:
        self._files = OpenFiles(("vcpu", root / str(thread) / "schedstat") for thread in threads)

    def read(self) -> Amounts:
        return {"guest_cpu_percent": sum(int(text.split()[0]) * PERCENT_OF_NS for _, text in self._files.texts())}

    def close(self) -> None:
        self._files.close()


class GroupAccount:
    """The control group of an owner."""

    def __init__(self, group: ControlGroup) -> None:
        self._group = group

    def read(self) -> Amounts:
        used, memory, stood = self._group.cpu_s(), self._group.memory_bytes(), self._group.throttling()
        rows = {
            "guest_cpu_percent": None if used is None else 100 * used,
            "guest_memory_bytes": memory,
            "throttled_percent": None if stood is None else 100 * stood.still_s,
        }
        return {name: float(amount) for name, amount in rows.items() if amount is not None}

    def close(self) -> None:
        """Nothing is open."""


class NeverThrottled:
    """An owner without a quota: nothing makes it stand still."""

    def read(self) -> Amounts:
        return {"throttled_percent": 0.0}

    def close(self) -> None:
        """Nothing is open."""


class PortAccount:
    """The ports of an owner, all together, as the kernel counts them."""

    def __init__(self, netlink: Netlink, indexes: Iterable[int]) -> None:
        """Prepare.

        Args:
            netlink: Opened in the owner's namespace, and used only here: it is queried from another thread.
            indexes: Of its ports.
        """
        self._netlink = netlink
        self._indexes = frozenset(indexes)

    def read(self) -> Amounts:
        sums = [0, 0, 0, 0]
        try:
            for body in self._netlink.dump(RTM_GETSTATS, rtnetlink_messages.GET_COUNTERS, "read counters"):
                index, found = rtnetlink_messages.read_counters(body)
                if index in self._indexes:
                    row = (found.rx_packets, found.tx_packets, found.rx_dropped, found.tx_dropped)
                    sums = [before + more for before, more in zip(sums, row, strict=True)]
        except (CsitError, OSError):
            return {}
        return dict(zip(("rx_pps", "tx_pps", "rx_dropped_pps", "tx_dropped_pps"), map(float, sums), strict=True))

    def close(self) -> None:
        self._netlink.close()
