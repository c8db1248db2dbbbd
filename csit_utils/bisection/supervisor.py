"""Runs a program and ends everything it has started, with it or with the process that asked for it. Run as a script.

    python supervisor.py LIFELINE PROGRAM ARGUMENT...

The lifeline is the reading end of a pipe: it ends when the other end is closed, as the kernel does for a process that
is killed. The supervisor adopts processes whose parents have ended, so those that left group and session are found,
too. Those of other users, as under `sudo`, it may not be allowed to end.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_WITHIN_S = 10.0
"""A killed process has ended by then, unless the kernel holds it."""
_PAUSE_S = 0.01


def main(lifeline: int, argv: list[str]) -> None:
    """Run a program; end as it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.set_inheritable(lifeline, False)
    program = subprocess.Popen(argv)
    ended = os.pidfd_open(program.pid)
    ready, _, _ = select.select([ended, lifeline], [], [])
    status = program.wait() if ended in ready else -signal.SIGKILL
    _end_children()
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


def _end_children() -> None:
    """Kill all children until there are none: those of a killed one become ours."""
    own = Path(f"/proc/self/task/{os.getpid()}/children")
    end = time.monotonic() + _WITHIN_S
    while time.monotonic() < end:
        for child in map(int, own.read_text(encoding="ascii").split()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
