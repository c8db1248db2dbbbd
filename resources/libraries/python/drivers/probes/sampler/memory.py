"""Memory in use by network functions, and memory left on the machine."""

import os
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup
from resources.libraries.python.drivers.probes.sampler.tasks import PROC, Tasks

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_RESIDENT = 1
"""Column of /proc/<pid>/statm, in pages."""


def memory_of(tasks: Tasks, group: ControlGroup | None, root: Path = PROC) -> int | None:
    """Return the bytes of an owner: those of its control group, else the resident memory of its processes.

    Threads of the kernel have no memory of their own, so that of an owner without processes is unknown.

    Args:
        tasks: Of the owner.
        group: Its control group; None where it has none.
        root: Where proc is mounted.
    """
    if not tasks.processes:
        return None
    if group is not None and (used := group.memory_bytes()) is not None:
        return used
    pages = []
    for process in tasks.processes:
        with suppress(OSError, ValueError, IndexError):  # it has ended
            pages.append(int((root / str(process) / "statm").read_text(encoding="ascii").split()[_RESIDENT]))
    return _PAGE_BYTES * sum(pages) if pages else None


def available_bytes(root: Path = PROC) -> int | None:
    """Return the memory that the machine can give to programs without swapping; None where it is not known."""
    with suppress(OSError, ValueError, KeyError, IndexError):
        rows = dict(line.split(":", 1) for line in (root / "meminfo").read_text(encoding="ascii").splitlines())
        return 1024 * int(rows["MemAvailable"].split()[0])
    return None
