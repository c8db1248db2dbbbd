"""Control groups: what the processes of a group may use of CPUs and memory, and what they have used. Versions 1 and 2.

The files are those of the kernel's Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst. A machine may have both
mounted; version 2 is used where it has the controllers.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Literal

from resources.libraries.python.drivers.host.cgroups.cgroup_tree import processes_of, remove_folders
from resources.libraries.python.drivers.host.kernel_files import number_of, write
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.counters import Throttling

MOUNTS = Path("/proc/self/mounts")
NEEDED = ("cpu", "cpuacct", "memory")
PINNING = "cpuset"
_PERIOD_US = 100_000
"""Of the kernel and of container platforms: a group that has used its quota stands still until the period ends."""
_MIN_QUOTA_US = 1_000
_LONGEST_PERIOD_US = 1_000_000


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Limits of a control group; None for no limit."""

    cpus: float | None = None
    """Time on CPUs per time; 0.5 is half of one."""
    memory_bytes: int | None = None
    pinned: frozenset[int] | None = None
    """The only CPUs that it may run on."""


def quota_us(cpus: float) -> tuple[int, int]:
    """CPU time in each period, and the period, in microseconds; longer periods for very small shares.

    Raises:
        Unsupported: The share is too small for the kernel.
    """
    period = max(_PERIOD_US, ceil(_MIN_QUOTA_US / cpus))
    if period > _LONGEST_PERIOD_US:
        least = _MIN_QUOTA_US / _LONGEST_PERIOD_US
        raise Unsupported(f"{cpus:g} CPUs cannot be had: the kernel gives a group at least {least:g}")
    return round(cpus * period), period


_NO_LIMITS = GroupLimits()


@dataclass(frozen=True, slots=True)
class Controllers:
    """Where this machine has the controllers."""

    version: Literal[1, 2]
    roots: Mapping[str, Path]
    """Controller to the folder in which its groups are."""

    def folders(self, name: str) -> tuple[Path, ...]:
        """All folders of a group; of version 2 one."""
        return tuple(dict.fromkeys(root / name for root in self.roots.values()))


def discover(mounts: Path = MOUNTS) -> Controllers:
    """Find the controllers.

    `mounts`: A table as /proc/self/mounts; another one for tests.

    Raises:
        Unsupported: One that is needed is not there.
    """
    roots: dict[str, Path] = {}
    for row in mounts.read_text(encoding="utf-8").splitlines():
        _, folder, kind, options, *_ = row.split()
        root = Path(folder.replace("\\040", " "))
        if not root.is_dir():  # something else is mounted above it
            continue
        if kind == "cgroup":
            roots |= dict.fromkeys({*options.split(",")} & {*NEEDED, PINNING}, root)
        elif kind == "cgroup2" and (found := _unified(root)):
            return Controllers(2, found)
    missing = [name for name in NEEDED if name not in roots]
    if missing:
        raise Unsupported(
            f"instances cannot be limited: no control group controller {', '.join(missing)} is mounted; "
            "in a container, start it with --privileged --cgroupns=host"
        )
    return Controllers(1, roots)


def _unified(root: Path) -> dict[str, Path]:
    with suppress(OSError):
        there = (root / "cgroup.controllers").read_text(encoding="ascii").split()
        if {"cpu", "memory"} <= {*there}:
            # Version 2 accounts CPU time in every group.
            return dict.fromkeys((*NEEDED, *({PINNING} & {*there})), root)
    return {}


class ControlGroup:
    """One control group."""

    def __init__(self, controllers: Controllers, name: str) -> None:
        self._controllers = controllers
        self._name = name
        self.folders = controllers.folders(name)

    def make(self, limits: GroupLimits = _NO_LIMITS) -> None:
        """Make it and set its limits.

        Raises:
            Unsupported: The kernel does not let us.
            CsitError: There is one of that name.
        """
        if limits.pinned is not None and PINNING not in self._controllers.roots:
            raise Unsupported("instances cannot be pinned: no control group controller cpuset is mounted")
        settings = dict(self._settings(limits))
        try:
            if self._controllers.version == 2:
                self._enable(self.folders[0].parent)
            for folder in self.folders:
                folder.mkdir()
            if self._controllers.version == 1 and PINNING in self._controllers.roots:
                # A group of version 1 takes no process before both are set.
                for file in ("cpuset.mems", "cpuset.cpus"):
                    path = self._file(PINNING, file)
                    write(path, (path.parent.parent / file).read_text(encoding="ascii"))
            for path, value in settings.items():
                write(path, value)
        except FileExistsError as error:
            raise CsitError(f"there is a control group {error.filename} already; `rmdir` removes it") from error
        except OSError as error:
            raise Unsupported(f"control group {self._name} cannot be made: {error}") from error

    def limit(self, limits: GroupLimits) -> None:
        """Set limits of a group that is there already, as that of a container.

        Raises:
            Unsupported: The kernel does not let us.
        """
        try:
            for path, value in self._settings(limits):
                write(path, value)
        except OSError as error:
            raise Unsupported(f"control group {self._name} cannot be limited: {error}") from error

    def _enable(self, root: Path) -> None:
        """Version 2: a group has those controllers that its parent hands down."""
        control = root / "cgroup.subtree_control"
        handed = control.read_text(encoding="ascii").split()
        for name in ("cpu", "memory", PINNING):
            if name in self._controllers.roots and name not in handed:
                write(control, f"+{name}")

    def _settings(self, limits: GroupLimits) -> Iterator[tuple[Path, str]]:
        unified = self._controllers.version == 2
        if limits.cpus is not None:
            quota, period = quota_us(limits.cpus)
            if unified:
                yield self._file("cpu", "cpu.max"), f"{quota} {period}"
            else:
                yield self._file("cpu", "cpu.cfs_period_us"), str(period)
                yield self._file("cpu", "cpu.cfs_quota_us"), str(quota)
        if limits.memory_bytes is not None:
            name = "memory.max" if unified else "memory.limit_in_bytes"
            yield self._file("memory", name), str(limits.memory_bytes)
        if limits.pinned is not None:
            yield self._file(PINNING, "cpuset.cpus"), ",".join(map(str, sorted(limits.pinned)))

    @property
    def doors(self) -> tuple[Path, ...]:
        """Files into which a process writes its id to enter."""
        return tuple(folder / "cgroup.procs" for folder in self.folders)

    def cpu_s(self) -> float | None:
        """CPU time of all its processes since it was made; None when that cannot be read."""
        if self._controllers.version == 2:
            used = _table(self._file("cpu", "cpu.stat")).get("usage_usec")
            return None if used is None else used / 1e6
        used = number_of(self._file("cpuacct", "cpuacct.usage"))
        return None if used is None else used / 1e9

    def memory_bytes(self) -> int | None:
        """Its working set now; None when that cannot be read.

        That is all its memory without file pages that have not been used lately. Those are a cache: the kernel takes
        them back at no cost, and without a limit they grow until the machine is full.
        """
        name = "memory.current" if self._controllers.version == 2 else "memory.usage_in_bytes"
        if (used := number_of(self._file("memory", name))) is None:
            return None
        return max(0, used - _table(self._file("memory", "memory.stat")).get("inactive_file", 0))

    def throttling(self) -> Throttling | None:
        """How often it stood still because it had used its quota; None when that cannot be read."""
        row = _table(self._file("cpu", "cpu.stat"))
        if "nr_throttled" not in row:
            return None
        still_s = row.get("throttled_usec", 0) / 1e6 if self._controllers.version == 2 else row["throttled_time"] / 1e9
        return Throttling(row["nr_periods"], row["nr_throttled"], still_s)

    def take_in_threads(self, threads: Iterable[int]) -> None:
        """Let kernel threads, or processes, have their CPU time from this group too; not their memory.

        They stay on their CPUs: before Linux 6.2, version 2 lets entering processes run on all CPUs of the group.

        Raises:
            Unsupported: The kernel refuses.
        """
        folders = dict.fromkeys(self._controllers.roots[name] / self._name for name in ("cpu", "cpuacct"))
        for thread in threads:
            try:
                cpus = _cpus_by_thread(thread)
                for folder in folders:
                    write(folder / "cgroup.procs", str(thread))
                for each, allowed in cpus.items():
                    with suppress(ProcessLookupError):  # it has ended in the meantime
                        os.sched_setaffinity(each, allowed)
            except OSError as error:
                raise Unsupported(f"thread {thread} cannot enter control group {self._name}: {error}") from error

    def killed_for_memory(self) -> int:
        """Processes that the kernel killed because the group had used all its memory."""
        name = "memory.events" if self._controllers.version == 2 else "memory.oom_control"
        return _table(self._file("memory", name)).get("oom_kill", 0)

    def processes(self) -> tuple[int, ...]:
        return processes_of(self.folders)

    def remove(self) -> None:
        """Remove it; its processes must have ended. It need not be there.

        Raises:
            CsitError: It has processes.
        """
        remove_folders(self.folders)

    def _file(self, controller: str, name: str) -> Path:
        return self._controllers.roots[controller] / self._name / name


def _cpus_by_thread(process: int) -> dict[int, set[int]]:
    """Where each thread of a process may run; a kernel thread is a process of one."""
    found = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        with suppress(ProcessLookupError):
            found[int(task.name)] = os.sched_getaffinity(int(task.name))
    return found


def _table(path: Path) -> dict[str, int]:
    """A file of `name number` rows; empty when it cannot be read."""
    with suppress(OSError):
        rows = (row.split() for row in path.read_text(encoding="ascii").splitlines())
        return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}
    return {}
