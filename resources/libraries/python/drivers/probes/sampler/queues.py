"""Packets in queues without a counter of their length: received packets minus sent and dropped ones.

A veth port takes a packet from its ring when its data thread does, and both ends count it then. So packets in the rings
behind the vSwitch have been received by one of its ports and not yet been sent by another. All ports are read in one
answer of the kernel, within microseconds.

A vSwitch that forwards in user space loses packets between its ports. With AF_XDP the rings of its sockets count how
many, and the sum closes. With packet sockets it is unknown: Open vSwitch sends through one socket that does not wait,
which the kernel refuses while too many of its packets are in the rings of ports, and throws the rest of a batch away.
Of 60,000 packets at 20 kpps into a router with 2 % of a CPU these were 38,292, and no counter had them. So there the
bytes that wait in the sockets stand for the queues.
"""

from resources.libraries.python.drivers.host.sockets.socket_backlog import ReceivingSockets, Seen
from resources.libraries.python.drivers.probes.sampler.accounts import Amounts, PortAccount
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.plan import Medium, Plan

_KIB = 1024


class SocketAccount:
    """The sockets of a vSwitch that forwards in user space, all together: what is lost there and counted by no port."""

    def __init__(self, sockets: ReceivingSockets) -> None:
        self._sockets = sockets

    def read(self) -> Amounts:
        """See Account. Nothing once the vSwitch has ended."""
        seen = self.seen()
        if seen is None:
            return {}
        # What a socket of AF_XDP refuses the port counts as dropped itself.
        found = {"socket_dropped_pps": float(seen.refused if seen.kept is None else seen.kept)}
        if seen.waiting_bytes is not None:
            found["queued_kib"] = seen.waiting_bytes / _KIB
        return found

    def seen(self) -> Seen | None:
        """Counters of all sockets; None after the vSwitch has exited."""
        try:
            return self._sockets.read()
        except CsitError:
            return None

    def in_rings(self) -> int:
        """Packets that are in rings now; 0 once the vSwitch has ended."""
        try:
            return self._sockets.in_rings()
        except CsitError:
            return 0

    @property
    def closes(self) -> bool:
        """Whether all that is lost is known, so that what waits is what remains."""
        seen = self.seen()
        return seen is not None and seen.kept is not None

    def close(self) -> None:
        self._sockets.close()


class QueueAccount:
    """The queues behind a vSwitch, all together; empty when it is first read, but for rings of AF_XDP sockets.

    In those packets stay for long: Open vSwitch has the kernel look into one only when it puts the next packet there.
    What a port drops as it comes in was never received, unless it was for a socket of AF_XDP.

    Args:
        ports: Of the vSwitch, without those that send copies.
        sockets: Of a vSwitch that forwards in user space by AF_XDP; closed by their creator.
    """

    def __init__(self, ports: PortAccount, sockets: SocketAccount | None = None) -> None:
        self._ports = ports
        self._sockets = sockets
        self._empty: float | None = None

    def read(self) -> Amounts:
        row = self._ports.read()
        lost = Seen(0, 0) if self._sockets is None else self._sockets.seen()
        if not row or lost is None:
            return {}
        inside = row["rx_pps"] - row["tx_pps"] - row["tx_dropped_pps"] - lost.refused - (lost.kept or 0)
        if self._empty is None:
            self._empty = inside - (0 if self._sockets is None else self._sockets.in_rings())
        return {"queued_packets": max(0.0, inside - self._empty)}

    def close(self) -> None:
        self._ports.close()


def has_copies(plan: Plan) -> bool:
    """Whether ports send copies, so that more goes out than comes in."""
    return any(segment.copies for segment in plan.segments)


def forwarding(plan: Plan, owner: str) -> tuple[str, ...]:
    """Interfaces between which a vSwitch forwards, without those that send copies.

    Nothing where one is a physical port: what waits in a NIC is counted nowhere, and dropped without being received.
    """
    copies = {name for segment in plan.segments for name in segment.copies}
    ends = [(link.medium, port) for link in plan.links for port in (link.a, link.b) if port.owner == owner]
    if any(medium is not Medium.VETH for medium, _ in ends):
        return ()
    return tuple(port.interface for _, port in ends if port.interface not in copies)
