"""Counters of the system under test, as it keeps them itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from resources.libraries.python.model.base import Frozen


class ConnectionTable(Frozen):
    """The table of one network function; what cannot be read is None."""

    entries: int
    """Now."""
    limit: int | None
    """Most entries that it may have."""
    buckets: int | None
    """Of its hash table, which network functions of one kernel share."""
    timeout_s: int | None
    """After which an entry of UDP that had no reply expires."""
    failed: int | None
    """Insertions that failed, since the network function was made."""
    dropped: int | None
    """Packets dropped because no entry could be made, since then."""
    evicted: int | None
    """Entries deleted to make room for others, since then."""


class Deletion(Frozen):
    """The deletion of all entries of one table."""

    entries: int
    """Before it."""
    left: int
    """After it."""
    began_ns: int
    """By the monotonic clock of its machine, which is virtual in a simulation."""
    ended_ns: int

    @property
    def seconds(self) -> float:
        """Its duration."""
        return (self.ended_ns - self.began_ns) / 1e9


@dataclass(frozen=True, slots=True)
class InterfaceCounters:
    """Packets since the interface was made."""

    rx_packets: int
    tx_packets: int
    rx_dropped: int
    tx_dropped: int

    def __sub__(self, earlier: "InterfaceCounters") -> "InterfaceCounters":
        """Return the difference from `earlier`."""
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
class TaskTime:
    """Time of one thread that works for a network function, and where it may run."""

    time: ThreadTime
    cpus: frozenset[int]
    """Logical CPUs of its affinity."""


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
    tasks: Mapping[str, Mapping[int, TaskTime]] = field(default_factory=dict)
    """Of virtual machines and of programs beside the kernel, all threads that work for them: by owner and thread id."""
    memory_bytes: Mapping[str, int] = field(default_factory=dict)
    """Memory in use by the same, by owner; those of which it is unknown are left out."""
    available_bytes: int | None = None
    """Memory that the machine can still give to programs; in a lab the least of all DUTs. None if unknown."""


@dataclass(frozen=True, slots=True)
class HostState:
    """What a machine counts and measures besides the times of a sample."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """Since boot: interrupts of each line on each data CPU, counters of the ports' drivers."""
    levels: Mapping[str, float] = field(default_factory=dict)
    """As they are now, by name and unit, `clock rate of CPU 3 in MHz`: of data CPUs, and temperatures."""


@dataclass(frozen=True, slots=True)
class ProcessedPackets:
    """Packets processed and dropped by a network function since its start."""

    packets: int
    """Forwarded by a router, inspected by a monitor, passed on by a proxy; both directions."""
    dropped: int | None = None
    """Packets that it received but had no time to process; None if unknown."""

    def __add__(self, more: "ProcessedPackets") -> "ProcessedPackets":
        """Return both together; unknown drops are none."""
        return ProcessedPackets(self.packets + more.packets, (self.dropped or 0) + (more.dropped or 0))

    def __sub__(self, earlier: "ProcessedPackets") -> "ProcessedPackets":
        """Return the difference from `earlier`."""
        known = self.dropped is not None and earlier.dropped is not None
        dropped = (self.dropped or 0) - (earlier.dropped or 0) if known else None
        return ProcessedPackets(self.packets - earlier.packets, dropped)


@dataclass(frozen=True, slots=True)
class Cost:
    """Resources that a network function used over a time; None if unknown."""

    cpu_s: float | None = None
    """CPU time of its processes and of the kernel's threads that work for it."""
    memory_bytes: int | None = None
    """Memory of its processes, at the end."""
    cache_misses: int | None = None
    """Cache misses of the last level of cache, by all its threads."""


@dataclass(frozen=True, slots=True)
class Throttling:
    """Throttling of a network function by its CPU quota, since its start."""

    periods: int
    """Periods in which it ran."""
    throttled: int
    """Periods in which it was throttled."""
    still_s: float
    """For how long, all its CPUs together."""

    def __sub__(self, earlier: "Throttling") -> "Throttling":
        """Return the difference from `earlier`."""
        return Throttling(
            self.periods - earlier.periods, self.throttled - earlier.throttled, self.still_s - earlier.still_s
        )
