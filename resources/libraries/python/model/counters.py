"""Counters of the system under test, as it keeps them itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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


@dataclass(frozen=True, slots=True)
class ThreadTime:
    """Nanoseconds of one thread since it began."""

    running_ns: int
    waiting_ns: int
    """Ready to run, and another thread had the CPU."""


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Nanoseconds of one logical CPU since boot."""

    user_ns: int
    system_ns: int
    softirq_ns: int
    """Hard interrupts included."""
    stolen_ns: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading of a sampler."""

    threads: Mapping[str, ThreadTime] = field(default_factory=dict)
    """By the interface that the data thread serves."""
    cpus: Mapping[int, CpuTime] = field(default_factory=dict)
    """By logical CPU; in a lab those of the (first) DUT."""
    backlog_dropped: int = 0
    squeezed: int = 0
