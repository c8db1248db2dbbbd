"""Interface counters, as the system under test keeps them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InterfaceCounters:
    """Packets since the interface was made."""

    rx_packets: int
    tx_packets: int
    rx_dropped: int
    tx_dropped: int

    def __sub__(self, earlier: "InterfaceCounters") -> "InterfaceCounters":
        """What was counted since `earlier`."""
        return InterfaceCounters(
            self.rx_packets - earlier.rx_packets,
            self.tx_packets - earlier.tx_packets,
            self.rx_dropped - earlier.rx_dropped,
            self.tx_dropped - earlier.tx_dropped,
        )
