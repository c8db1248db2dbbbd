"""vhost-net: packets between tap and guest are copied by the host's kernel instead of by QEMU."""

import os
from pathlib import Path

from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.errors import Unsupported

VHOST = Path("/dev/vhost-net")


def open_vhost(count: int) -> list[int]:
    """Open the device once for each network card.

    Raises:
        Unsupported: It cannot be opened.
    """
    opened: list[int] = []
    try:
        for _ in range(count):
            opened.append(os.open(VHOST, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        for descriptor in opened:
            os.close(descriptor)
        raise Unsupported(f"{VHOST} cannot be opened: {error.strerror}") from error
    return opened


def place_workers(pid: int | None, cpus: tuple[int, ...], root: Path = Path("/proc")) -> list[int]:
    """Pin the threads that copy a guest's packets to its data CPUs, in turns; return their ids.

    Args:
        pid: Of QEMU. The threads are called `vhost-<pid>`, and are QEMU's own from kernel 6.4 on.
        cpus: The NF's data CPUs.
        root: Where /proc is.
    """
    own = (entry.name for entry in (root / str(pid) / "task").iterdir())
    others = (entry.name for entry in root.iterdir() if entry.name.isdigit())
    found = sorted(
        {int(thread) for thread in (*own, *others) if data_threads.name(int(thread), root) == f"vhost-{pid}"}
    )
    for number, thread in enumerate(found):
        data_threads.pin(thread, cpus[number % len(cpus)])
    return found
