"""Processes identified by PID and start time, as PIDs are reused."""

import getpass
import os
import select
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.errors import ending
from resources.libraries.python.model.base import Frozen

_EXIT_S = 10.0
"""How long a process that is ending may take to free its memory."""
_FLAGS, _STARTED, _PENDING = 6, 19, 28
"""Fields of /proc/PID/stat, counted from the state: flags of the kernel, start time, pending signals."""
_PF_EXITING, _PF_SIGNALED = 0x4, 0x400
"""Flags of a thread that is in `exit`, and of one that a signal ends. Source: include/linux/sched.h."""
_SIGKILL = 1 << (signal.SIGKILL - 1)
"""Pending in all threads of a process that any signal has ended, until each of them notices."""


class Process(Frozen):
    """A process of this machine."""

    pid: int
    start_ticks: int
    """When it started, in clock ticks since boot: with the pid it is unique."""
    command: str

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return _start_ticks(self.pid) == self.start_ticks

    def command_now(self) -> str:
        """What it runs now: one that was described on its way from fork to exec had another command, or none."""
        return (_command(self.pid) if self.alive else "") or self.command

    def kill(self) -> bool:
        """Kill this process, never another one with a reused PID, and let it end; return whether it was alive.

        With one that leads a process group, the group is killed: what it has started in it would outlive it.
        """
        with suppress(ProcessLookupError):
            # The descriptor holds on to one process: what is checked after it was opened is what gets killed.
            descriptor = os.pidfd_open(self.pid)
            try:
                if self.alive:
                    if os.getpgid(self.pid) == self.pid:
                        os.killpg(self.pid, signal.SIGKILL)
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    # On a busy machine it may have its ports and its memory for a while yet.
                    select.select([descriptor], [], [], _EXIT_S)
                    return True
            finally:
                os.close(descriptor)
        return False


def process(pid: int) -> Process:
    """Describe a process.

    Raises:
        ProcessLookupError: There is none.
    """
    start_ticks = _start_ticks(pid)
    if start_ticks is None:
        raise ProcessLookupError(pid)
    return Process(pid=pid, start_ticks=start_ticks, command=_command(pid))


def children_of(pid: int) -> tuple[int, ...]:
    """Ids of the processes that a process has started; none where it has ended."""
    try:
        return tuple(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()))
    except (FileNotFoundError, ProcessLookupError):
        return ()


def continue_group(leader: int) -> None:
    """Continue the processes of a group in case they are stopped: stopped ones get no signal but SIGKILL.

    `leader`: The process that leads it; not reaped yet, so that its PID is that of the group.
    """
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGCONT)


def end_group(leader: "subprocess.Popen[bytes]", within_s: float) -> bool:
    """Wait until a process that was asked to end has ended, kill what is left of its process group, and reap it.

    `leader`: Leads a process group.
    `within_s`: How long to wait before it is killed, in seconds.

    Returns:
        Whether it ended by itself in time.
    """
    if leader.poll() is not None:
        # Reaped earlier: its PID could be a new process's, which is in another session unless this process started it.
        _kill_members(leader.pid)
        return True
    continue_group(leader.pid)
    descriptor = os.pidfd_open(leader.pid)
    try:
        ended, _, _ = select.select([descriptor], [], [], within_s)
    finally:
        os.close(descriptor)
    # Before it is reaped: until then no other group can have its number.
    with suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()
    return bool(ended)


def _kill_members(group: int) -> None:
    """Kill processes of a group whose leader has ended, if they are of this process's session."""
    session = os.getsid(0)
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        with suppress(ProcessLookupError):
            if os.getpgid(pid) == group and os.getsid(pid) == session:
                os.kill(pid, signal.SIGKILL)


def user() -> str:
    """The person behind this process, also behind sudo."""
    if name := os.environ.get("SUDO_USER"):
        return name
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def exit_status(started: "subprocess.Popen[bytes]", *, closed: bool = False) -> int | None:
    """Return the status of a process as `poll` does; None while it runs.

    Where it is about to end (see `is_ending`), this waits for that: `poll` would call a process running that has lost
    its threads, devices or connections.

    `closed`: whether it is known to end, or has closed its input or output, as it does then: this waits as well.
    """
    status = started.poll()
    if status is None and (closed or is_ending(started.pid)):
        with suppress(subprocess.TimeoutExpired):
            status = started.wait(_EXIT_S)
    return status


def end_of(started: "subprocess.Popen[bytes]", *, closed: bool = False) -> str:
    """How a process ended, in words for after its name, also of one that does not come to its end; empty otherwise.

    `closed`: as of `exit_status`: a process that goes on running has failed then, too.
    """
    # One look decides whether it is waited for, and what is said: it may begin to end at any moment.
    waits = closed or is_ending(started.pid)
    status = exit_status(started, closed=waits)
    if status is not None:
        return ending(status)
    if closed and not is_ending(started.pid):
        return f"closed its input or output, and did not end within {_EXIT_S:.0f} s"
    return f"is ending, and takes more than {_EXIT_S:.0f} s for that (a core file?)" if waits else ""


def is_ending(pid: int) -> bool:
    """Whether a process ends and nothing can prevent it: it was killed, exits, or its first thread has ended.

    Each thread ends by itself. Files are closed by the last one that has them, after it has freed their memory, and
    only when all have ended can the process be waited for. False where there is none.
    """
    if not (fields := _stat(pid)):
        return False
    flags, pending = int(fields[_FLAGS]), int(fields[_PENDING])
    return fields[0] in {"Z", "X"} or bool(flags & (_PF_EXITING | _PF_SIGNALED) or pending & _SIGKILL)


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal (SIGSTOP) or a tracer; False where there is none."""
    return _stat(pid)[:1] in (["T"], ["t"])


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on, which is the state; those of the first thread. Empty where none is.

    Source: proc_pid_stat(5).
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return stat.rpartition(")")[2].split()


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return " ".join(words).strip()


def _start_ticks(pid: int) -> int | None:
    fields = _stat(pid)
    return None if not fields or fields[0] in "ZX" else int(fields[_STARTED])
