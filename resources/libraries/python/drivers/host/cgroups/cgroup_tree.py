"""Control groups by their folders, whoever made them: what is in them, and their end."""

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.errors import CsitError

_PF_KTHREAD = 0x200000
"""Among a process's flags: a thread of the kernel."""


def processes_of(folders: Iterable[Path]) -> tuple[int, ...]:
    """Ids of the processes of groups, by their folders; one that is gone has none."""
    found: set[int] = set()
    for folder in folders:
        # ENODEV: the group was removed after the file was opened.
        with suppress(FileNotFoundError, OSError):
            found |= {int(word) for word in (folder / "cgroup.procs").read_text(encoding="ascii").split()}
    return tuple(sorted(found - {0}))


def folders_of(pid: int, root: Path = Path("/proc")) -> dict[str, Path]:
    """The groups that a process is in, of both versions, by their controllers as /proc/PID/cgroup names them.

    Args:
        pid: The process.
        root: Where processes and the table of mounts are; another one for tests.

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
    """Put the kernel threads that are in groups where their parents are; it is not for us to end them.

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
    """Remove groups by their folders; one that is gone is passed over.

    Raises:
        CsitError: One has processes.
    """
    for folder in folders:
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError as error:
            reason = f"processes {processes_of([folder])} are in it" if error.errno == errno.EBUSY else error.strerror
            raise CsitError(f"control group {folder} cannot be removed: {reason}") from error


def write(path: Path, value: str) -> None:
    """One `write` call, as the kernel wants it; a file that is not there is an error and not made."""
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
