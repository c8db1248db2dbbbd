"""How many packets wait in queues whose length nobody counts: what came in, less what went out or was dropped.

A veth port takes a packet from its ring when its data thread does, and both ends count it then. So packets in the rings
behind the vSwitch have been received by one of its ports and not yet been sent by another. All ports are read in one
answer of the kernel, within microseconds.
"""

from resources.libraries.python.drivers.sampler.accounts import Amounts
from resources.libraries.python.drivers.sampler.guest_accounts import PortAccount
from resources.libraries.python.model.plan import Medium, Plan


class QueueAccount:
    """The queues behind a vSwitch, all together; empty when it is first read.

    For one that forwards in the kernel. In user space packets are lost that no port of the kernel counts, and they
    would stay in the sum. What a port drops as it comes in was never received.

    Args:
        ports: Of the vSwitch, without those that send copies.
    """

    def __init__(self, ports: PortAccount) -> None:
        self._ports = ports
        self._empty: float | None = None

    def read(self) -> Amounts:
        """See Account."""
        row = self._ports.read()
        if not row:
            return {}
        inside = row["rx_pps"] - row["tx_pps"] - row["tx_dropped_pps"]
        if self._empty is None:
            self._empty = inside
        return {"queued_packets": max(0.0, inside - self._empty)}

    def close(self) -> None:
        """See Account."""
        self._ports.close()


def forwarding(plan: Plan, owner: str) -> tuple[str, ...]:
    """Interfaces between which a vSwitch forwards, without those that send copies.

    Nothing where one is a physical port: what waits in a NIC is counted nowhere, and dropped without being received.
    """
    copies = {name for segment in plan.segments for name in segment.copies}
    ends = [(link.medium, port) for link in plan.links for port in (link.a, link.b) if port.owner == owner]
    if any(medium is not Medium.VETH for medium, _ in ends):
        return ()
    return tuple(port.interface for _, port in ends if port.interface not in copies)
