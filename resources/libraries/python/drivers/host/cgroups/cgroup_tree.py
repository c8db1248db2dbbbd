"""Control groups by their folders: their processes, ending these, and removing the groups."""

import errno
import os
import signal
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.host.kernel_files import write
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError

_PF_KTHREAD = 0x200000
"""Among a process's flags: a thread of the kernel."""


def processes_of(folders: Iterable[Path]) -> tuple[int, ...]:
    """Return the PIDs in groups; a group that is gone has none."""
    found: set[int] = set()
    for folder in folders:
        # ENODEV: the group was removed after the file was opened.
        with suppress(OSError):
            found |= {int(word) for word in (folder / "cgroup.procs").read_text(encoding="ascii").split()}
    return tuple(sorted(found - {0}))


def folders_of(pid: int, root: Path = Path("/proc")) -> dict[str, Path]:
    """The groups that a process is in, of both versions, by their controllers as /proc/PID/cgroup names them.

    `root`: where processes and the table of mounts are; another one for tests.

    Raises:
        CsitError: The process is gone.
    """
    try:
        rows = (root / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines()
        mounts = (root / "self" / "mounts").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise CsitError(f"control groups of process {pid} cannot be read: {error.strerror}") from error
    roots: dict[str, Path] = {}
    for row in mounts:
        _, place, kind, options, *_ = row.split()
        if kind == "cgroup2":
            roots[""] = Path(place)
        elif kind == "cgroup":
            roots |= dict.fromkeys(options.split(","), Path(place))
    found = {}
    for row in rows:
        _, controllers, inside = row.split(":", 2)
        if (top := roots.get(controllers.split(",")[0])) is not None:
            found[controllers] = top / inside.lstrip("/")
    return {controllers: folder for controllers, folder in found.items() if (folder / "cgroup.procs").exists()}


def let_threads_go(folders: Iterable[Path]) -> None:
    """Move kernel threads to the parents of their groups, as they cannot be killed.

    Raises:
        CsitError: The kernel refuses.
    """
    for folder in folders:
        for thread in filter(_is_of_the_kernel, processes_of([folder])):
            try:
                write(folder.parent / "cgroup.procs", str(thread))
            except ProcessLookupError:  # it has ended in the meantime
                continue
            except OSError as error:
                raise CsitError(f"thread {thread} cannot leave control group {folder}: {error.strerror}") from error


def _is_of_the_kernel(pid: int) -> bool:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return bool(int(fields[6]) & _PF_KTHREAD)
    return False


def remove_folders(folders: Iterable[Path]) -> None:
    """Remove groups by their folders; groups that are gone are skipped.

    Raises:
        CsitError: One has processes; the others were removed.
    """
    failures: list[str] = []
    for folder in folders:
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError as error:
            reason = f"processes {processes_of([folder])} are in it" if error.errno == errno.EBUSY else error.strerror
            failures.append(f"control group {folder} cannot be removed: {reason}")
    if failures:
        raise CsitError("; ".join(failures))


_STATE_1, _STATE_2 = "freezer.state", "cgroup.freeze"
"""Files by which groups of version 1 and 2 are frozen."""


def frozen(folders: Iterable[Path]) -> bool:
    """Whether a group is frozen, as engines do to pause a container."""
    for folder in folders:
        with suppress(OSError):  # of the other version, or gone
            return (folder / _STATE_1).read_text(encoding="ascii").strip() != "THAWED"
        with suppress(OSError):
            if (folder / _STATE_2).read_text(encoding="ascii").strip() == "1":
                return True
    return False


def thaw(folders: Iterable[Path]) -> None:
    """Let the processes of frozen groups go on: in version 1 they could not even be killed. Others stay as they are."""
    for folder in folders:
        for file, value in ((_STATE_1, "THAWED"), (_STATE_2, "0")):
            with suppress(OSError):
                write(folder / file, value)


_KILLED_WITHIN_S = 10.0
_PAUSE_S = 0.01


def end(folders: Collection[Path], grace_s: float) -> tuple[int, ...]:
    """Terminate all processes of groups by SIGTERM, and kill those left after a grace period.

    `grace_s`: seconds before SIGKILL; 0 to kill at once.

    Returns:
        PIDs of the killed processes.

    Raises:
        NotReady: A killed process does not exit.
    """
    thaw(folders)
    if grace_s:
        for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process could not end
            _signal(processes_of(folders), number)
        deadline = time.monotonic() + grace_s
        while processes_of(folders) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
    killed: set[int] = set()

    def left() -> str:
        # Again at each look: one of them may have forked in the meantime.
        there = processes_of(folders)
        _signal(there, signal.SIGKILL)
        killed.update(there)
        return f"processes {', '.join(map(str, there))}" if there else ""

    wait_until("the end of killed processes", left, _KILLED_WITHIN_S, pause_s=_PAUSE_S)
    return tuple(sorted(killed))


def end_and_remove(folders: Collection[Path]) -> list[str]:
    """Kill all processes of groups and remove the groups; return one message per action.

    Raises:
        CsitError: A process does not end, or a group cannot be removed; the other groups were.
    """
    there = [folder for folder in folders if folder.exists()]
    try:
        let_threads_go(there)
        done = [f"killed process {pid} of an instance" for pid in end(there, 0)]
    finally:
        remove_folders(there)
    return [*done, *(f"removed control group {folder}" for folder in there)]


def _signal(pids: Collection[int], which: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, which)
