"""The noise floor of a CPU: how often, and for how long, it is taken from a thread that only reads the clock.

What takes it is anything that data threads cannot prevent: interrupts and their softirqs, the kernel's tick, other
threads, the hypervisor (steal), and the firmware (System Management Interrupts).
"""

from typing import Annotated

from pydantic import Field

from resources.libraries.python.model.base import Frozen, is_none

_Count = Annotated[int, Field(ge=0)]


class CpuNoise(Frozen):
    """Interruptions of one idle logical CPU while it was observed. A simulated one says so in its record."""

    cpu: int
    machine: str | None = Field(default=None, exclude_if=is_none)
    """The node that it is of; None where it is that of the (first) DUT."""
    observed_s: Annotated[float, Field(gt=0)]
    real_time: bool
    """Whether the observer had real-time priority, as data threads have; otherwise other threads count too."""
    threshold_ns: Annotated[int, Field(gt=0)]
    """Shorter gaps between two readings of the clock do not count."""
    longest_ns: _Count
    durations: tuple[tuple[int, _Count], ...]
    """Interruptions by duration: lower edge of a class in ns, and their number. Eight classes per power of two."""
    preemptions: _Count
    """Times that another thread ran instead."""
    interrupts: dict[str, int]
    """Interrupts that the CPU handled meanwhile, by the kernel's names, most frequent first."""
    stolen_s: float | None
    """Time that the hypervisor took; None where the kernel does not count it."""
    smis: int | None
    """System Management Interrupts; None where their counter cannot be read."""

    @property
    def count(self) -> int:
        """Number of interruptions."""
        return sum(number for _, number in self.durations)

    @property
    def share(self) -> float:
        """Share of the time in which the CPU was taken, in [0, 1]."""
        return min(1.0, sum(mean * number for mean, number in self.gaps()) / self.observed_s)

    def gaps(self) -> tuple[tuple[float, int], ...]:
        """Interruptions: duration in seconds and number, ascending; each class in its middle, the longest as it was."""
        middles = [(min(edge * 17 / 16, self.longest_ns) * 1e-9, number) for edge, number in self.durations]
        if not middles:
            return ()
        _, last = middles.pop()
        rest = [(self.durations[-1][0] * 17 / 16 * 1e-9, last - 1)] if last > 1 else []
        rest = [(min(mean, self.longest_ns * 1e-9), number) for mean, number in rest]
        return (*middles, *rest, (self.longest_ns * 1e-9, 1))
