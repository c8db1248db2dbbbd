"""VPP's threads for planned CPUs. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkerPlacement:
    """CPUs of the threads of one VPP. It uses a CPU for one of its threads only."""

    main: int
    """Logical CPU of the main thread."""
    workers: tuple[int, ...]
    """Logical CPU of each worker, ascending as VPP numbers them; empty where the main thread does their work."""
    planned: tuple[int, ...]
    """Logical CPU of each data thread of the plan."""

    def worker_of(self, data_thread: int) -> int | None:
        """Number of the worker that does the work of a planned data thread; None for the main thread.

        Where several planned threads share a CPU, one worker does the work of all of them.
        """
        if not self.workers:
            return None
        cpu = self.planned[data_thread]
        return self.workers.index(cpu) if cpu in self.workers else 0

    def __str__(self) -> str:
        if not self.workers:
            return f"main thread on CPU {self.main} does all"
        numbers = ", ".join(map(str, self.workers))
        return f"main thread on CPU {self.main}, workers on CPU {numbers}"


def place(main: int, data: Sequence[int]) -> WorkerPlacement:
    """Give planned CPUs to VPP's threads.

    Args:
        main: Planned for the main thread.
        data: Planned for data threads, in order; some may be the same where a plan is folded onto few cores.
    """
    workers = tuple(sorted({cpu for cpu in data if cpu != main}))
    return WorkerPlacement(main, workers, tuple(data))
