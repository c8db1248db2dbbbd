"""The ports of a machine's share of a plan: their interface indexes, and what the kernel tells of them by these."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from pyroute2.netlink.rtnl import RTM_GETLINK, RTM_GETSTATS

from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespaces import Namespace
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.plan import Port

_FIRST_INDEX = 100
"""Interface indexes of links are chosen here, so that none need be read back. Below are those that the kernel makes by
itself in a new namespace (lo, and tunl0 and others where their modules are loaded). They are unique on the machine:
where both ends of a veth pair have the same index, the kernel takes them for a physical port and lets its carrier wait,
up to 1 s. Physical ports come with an index, which is read back.
"""
Result = TypeVar("Result")


class PortTable:
    """Ports by owner.

    Args:
        ports: All of them.
        physical: Names of those that are physical ports.
        namespace: Of an owner, once it is made.
    """

    def __init__(
        self,
        ports: Mapping[str, Sequence[Port]],
        physical: Collection[str],
        namespace: Callable[[str], Namespace],
    ) -> None:
        self._names = {owner: [port.interface for port in row] for owner, row in ports.items()}
        self._physical = physical
        self._namespace = namespace
        self.index: dict[str, int] = {}
        """Interface index of each port, in its namespace."""
        self._by_index: dict[str, dict[int, str]] = {}

    def of(self, owner: str) -> list[str]:
        """Names of an owner's ports."""
        return self._names.get(owner, [])

    def veths(self) -> list[str]:
        """Names of all ports that are no physical ones."""
        return [name for row in self._names.values() for name in row if name not in self._physical]

    def choose_indexes(self, physical: Mapping[str, int]) -> None:
        """Give every port an index.

        Args:
            physical: Those that physical ports have.
        """
        taken = set(physical.values())
        free = (index for index in range(_FIRST_INDEX, 1 << 31) if index not in taken)
        self.index = dict(zip(self.veths(), free, strict=False)) | dict(physical)
        self._by_index = {owner: {self.index[name]: name for name in row} for owner, row in self._names.items()}

    @property
    def free_index(self) -> int:
        """The first of the indexes that no port has."""
        return max(self.index.values(), default=_FIRST_INDEX) + 1

    def down(self, owners: Iterable[str]) -> list[str]:
        """Ports of these owners that have no carrier.

        Raises:
            CsitError: The kernel refused, or a namespace is not made.
        """
        return [
            name
            for owner in owners
            for name, running in self._dump(
                owner, RTM_GETLINK, rtnetlink_messages.GET_LINKS, rtnetlink_messages.read_running
            )
            if not running
        ]

    def counters(self, owners: Iterable[str]) -> dict[str, InterfaceCounters]:
        """Counters of these owners' ports by name.

        Raises:
            CsitError: As for `down`.
        """
        rows = (
            self._dump(owner, RTM_GETSTATS, rtnetlink_messages.GET_COUNTERS, rtnetlink_messages.read_counters)
            for owner in owners
        )
        return dict(row for of_owner in rows for row in of_owner)

    def bridges(self, owner: str) -> dict[str, int | None]:
        """Index of the bridge that each port of an owner is a member of; None for one that is of none.

        Raises:
            CsitError: As for `down`.
        """
        return dict(self._dump(owner, RTM_GETLINK, rtnetlink_messages.GET_LINKS, rtnetlink_messages.read_master))

    def _dump(
        self, owner: str, kind: int, body: bytes, read: Callable[[bytes], tuple[int, Result]]
    ) -> Iterator[tuple[str, Result]]:
        """What the kernel says of an owner's ports; those that are none of ours are passed over."""
        known = self._by_index.get(owner, {})
        for answer in self._namespace(owner).netlink.dump(kind, body, f"read the links of {owner}"):
            index, found = read(answer)
            if index in known:
                yield known[index], found
