"""Tasks of a network function: its processes, and the kernel threads charged to it."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import GENERATOR

_VHOST = re.compile(r"vhost-(\d+)$")
_VCPU = re.compile(r"CPU \d+/")
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Tasks:
    """Of one owner."""

    processes: tuple[int, ...] = ()
    helpers: tuple[int, ...] = ()
    """Threads of the kernel: `napi/<interface>` of its ports, `vhost-<pid>` of its virtual machine."""

    def threads(self, root: Path = PROC) -> tuple[int, ...]:
        """Ids of all its threads now, those of its processes first."""
        return (*(thread for process in self.processes for thread in threads_of(process, root)), *self.helpers)

    def vcpus(self, root: Path = PROC) -> tuple[int, ...]:
        """Threads of its virtual machine that run the guest."""
        threads = (thread for process in self.processes for thread in threads_of(process, root))
        return tuple(thread for thread in threads if _VCPU.match(_read(root / str(thread) / "comm")))


def tasks_on(plan: Plan, fabric: Fabric) -> dict[str, Tasks]:
    """The tasks of all owners on this machine but the generator, by name in the plan.

    `fabric`: has the data threads of those; started.
    """
    owners = [owner for owner in fabric.owners if owner != GENERATOR]
    threads = fabric.threads()
    receivers = {owner: dict.fromkeys(port.receiver for port in plan.ports(owner)) for owner in owners}
    helpers = {owner: [thread for name in row for thread in threads.get(name, ())] for owner, row in receivers.items()}
    return tasks_of(owners, helpers)


def tasks_of(
    owners: Iterable[str], helpers: Mapping[str, Collection[int]], root: Path = PROC, mine: int | None = None
) -> dict[str, Tasks]:
    """Find the tasks of owners, in one pass over /proc.

    A process belongs to an owner when it is in the owner's network namespace, or when it was started by this run and
    its command line has the owner's name, as a virtual machine's has.

    `owners`: Names of network functions and vSwitches.
    `helpers`: The data threads of their ports, by owner.
    `mine`: The process that started what was started; by default this one.
    """
    names = tuple(owners)
    inodes = {inode: name for name in names if (inode := namespaces.inode(namespaces.name_of(name))) is not None}
    words = {name: re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])") for name in names}
    processes: dict[str, list[int]] = {name: [] for name in names}
    kernel: dict[str, list[int]] = {name: [*helpers.get(name, ())] for name in names}
    parents, vhosts = dict[int, int](), dict[int, int]()
    for pid in _numbers(root):
        status = _read(root / str(pid) / "stat")
        if not status:
            continue
        name, _, rest = status.partition("(")[2].rpartition(")")
        parents[pid] = int(rest.split()[1])
        if match := _VHOST.match(name):
            vhosts[pid] = int(match[1])
    children = _descendants(parents, os.getpid() if mine is None else mine)
    for pid in sorted(parents):
        owner = _by_namespace(root / str(pid), inodes)
        if owner is None and pid in children:
            command = _read(root / str(pid) / "cmdline").replace("\0", " ")
            owner = next((name for name in names if words[name].search(command)), None)
        if owner is not None and parents[pid] != _KTHREADD and pid != _KTHREADD:
            processes[owner].append(pid)
    for thread, pid in vhosts.items():
        for name in names:
            if pid in processes[name]:
                kernel[name].append(thread)
    return {name: Tasks(tuple(processes[name]), tuple(kernel[name])) for name in names}


_KTHREADD = 2
"""The parent of all threads of the kernel."""


def threads_of(process: int, root: Path = PROC) -> tuple[int, ...]:
    """Ids of a process's threads; none when it is gone."""
    return tuple(sorted(_numbers(root / str(process) / "task")))


def _by_namespace(folder: Path, inodes: Mapping[int, str]) -> str | None:
    with suppress(OSError):  # it has ended
        return inodes.get((folder / "ns" / "net").stat().st_ino)
    return None


def _descendants(parents: Mapping[int, int], ancestor: int) -> set[int]:
    found = {ancestor}
    for pid in parents:
        way = [pid]
        while way[-1] in parents and way[-1] not in found:
            way.append(parents[way[-1]])
        if way[-1] in found:
            found.update(way)
    return found - {ancestor}


def _numbers(folder: Path) -> Iterator[int]:
    with suppress(OSError):
        yield from (int(entry) for entry in os.listdir(folder) if entry.isdigit())  # noqa: PTH208 - names are enough


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    return ""
