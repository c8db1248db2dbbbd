"""Ends programs of users with the process that asked for them, however that ends. Run as a script of its own.

    python supervisor.py PROGRAM ARGUMENT...   # the reading end of a lifeline is its standard input
    python supervisor.py                       # lines of its standard input name network namespaces and control groups

A lifeline is a pipe whose other end the asking process holds: it ends when that end is closed, as the kernel does for a
process that is killed, which can end nothing itself.

With a program, the supervisor runs it, ends as it ends, and adopts processes whose parents have ended, so those that
left group and session are found, too. Without one it ends all processes in the namespaces and control groups: those
that a script has left running are not its children. A process can leave its network namespace; its control group it
leaves only if it writes itself into another. Processes of other users, as under `sudo`, it may not be allowed to end.

A supervisor that is killed ends nothing: what its script has started is found by a mark in its environment.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_MARK = "CSIT_SUPERVISED"
"""Variable of the environment that a script and its children inherit."""
_WITHIN_S = 10.0
"""A killed process has ended by then, unless the kernel holds it."""
_PAUSE_S = 0.01


def supervised(argv: Sequence[str]) -> list[str]:
    """Return the argument vector of a program that ends, with all that it has started, when its input does."""
    return [sys.executable, "-I", "-S", __file__, *argv]


def marked(mark: str) -> dict[str, str]:
    """Return the environment of a supervised program whose processes `end_marked` finds."""
    return {**os.environ, _MARK: mark}


def end_marked(mark: str) -> None:
    """End the processes with a mark, such as those of a script that was killed together with its supervisor."""
    entry = f"{_MARK}={mark}".encode()
    _end(lambda: [pid for pid in _processes() if entry in _environment(pid)])


class Supervisor:
    """A supervisor of network namespaces and control groups, which holds no CPU while this process lives."""

    def __init__(self) -> None:
        """Start it, on the CPUs and in the namespaces of the calling thread."""
        self._process = subprocess.Popen(
            supervised([]),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            # What kills the group of this process must not kill it.
            start_new_session=True,
        )

    def add(self, place: Path) -> None:
        """End the processes of a namespace or control group too, should this process end before it is removed.

        Raises:
            OSError: There is no such file or folder, or the supervisor has ended.
        """
        assert self._process.stdin is not None  # noqa: S101 - asked for above
        self._process.stdin.write(f"{place.stat().st_ino} {place}\n".encode())
        self._process.stdin.flush()

    def let_go(self) -> None:
        """Let the lifeline end, as far as this process holds it: a forked one must not."""
        assert self._process.stdin is not None  # noqa: S101 - asked for above
        with suppress(OSError):
            self._process.stdin.close()

    def close(self) -> None:
        """End it, after it has ended what still runs in the namespaces and groups."""
        self.let_go()
        self._process.wait()


def _run(argv: Sequence[str]) -> None:
    """Run a program; end as it ends."""
    control = ctypes.CDLL(None).prctl
    control(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # A script does not go on where this process itself is killed; what it has started goes on until `end_marked`.
    program = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: control(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),  # noqa: PLW1509 - it has one thread
    )
    ended = os.pidfd_open(program.pid)
    ready, _, _ = select.select([ended, sys.stdin], [], [])
    status = program.wait() if ended in ready else -signal.SIGKILL
    _end(_children)
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


def _watch() -> None:
    """End all processes in namespaces and control groups when their names end."""
    known: dict[Path, int] = {}
    for line in sys.stdin:
        inode, _, name = line.rstrip("\n").partition(" ")
        known[Path(name)] = int(inode)
    with ExitStack() as held:
        places = _existing(known, held)
        _end(lambda: _inside(*places))


def _existing(known: dict[Path, int], held: ExitStack) -> tuple[set[int], list[Path]]:
    """Return the namespaces, kept until no process is in them, and groups that still have their names.

    The number of a namespace that is gone is used again, and its name may end with the first process that is killed.
    """
    inodes, groups = set(), []
    for path, inode in known.items():
        with suppress(OSError):
            if path.is_dir():
                groups += [path] * (path.stat().st_ino == inode)
            elif os.fstat(held.enter_context(path.open("rb")).fileno()).st_ino == inode:
                inodes.add(inode)
    return inodes - {Path("/proc/self/ns/net").stat().st_ino}, groups  # never all processes of a machine


def _end(left: Callable[[], Iterable[int]]) -> None:
    """Kill processes until there are none: children of a killed one may have come in the meantime."""
    end = time.monotonic() + _WITHIN_S
    while (found := list(left())) and time.monotonic() < end:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def _processes() -> Iterator[int]:
    return (int(process.name) for process in Path("/proc").iterdir() if process.name.isdecimal())


def _environment(pid: int) -> list[bytes]:
    """Variables of a process, as it was started; none of one that has ended, or of another user's."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def _children() -> list[int]:
    """Children that have not ended: those of a killed one become ours."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return [*map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split())]


def _inside(inodes: set[int], groups: list[Path]) -> set[int]:
    """Return the processes in namespaces and groups."""
    found = set()
    for group in groups:
        with suppress(OSError):
            found |= {pid for procs in group.rglob("cgroup.procs") for pid in _programs(procs)}
    for pid in _processes() if inodes else ():
        with suppress(OSError):
            if Path(f"/proc/{pid}/ns/net").stat().st_ino in inodes:
                found.add(pid)
    return found - {os.getpid()}


def _programs(procs: Path) -> list[int]:
    """Processes of a group that run a program: threads of the kernel cannot be ended, and ended ones are none."""
    found = []
    with suppress(OSError):
        for pid in procs.read_text(encoding="ascii").split():
            with suppress(OSError):
                Path(f"/proc/{pid}/exe").readlink()
                found.append(int(pid))
    return found


if __name__ == "__main__":
    _run(sys.argv[1:]) if len(sys.argv) > 1 else _watch()
