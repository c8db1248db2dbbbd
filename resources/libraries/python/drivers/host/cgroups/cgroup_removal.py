"""The end of control groups with all their processes."""

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.host.cgroups.cgroup_tree import let_threads_go, processes_of, remove_folders
from resources.libraries.python.drivers.host.programs.waiting import wait_until

_KILLED_WITHIN_S = 10.0
_PAUSE_S = 0.01


def end(folders: Collection[Path], grace_s: float) -> tuple[int, ...]:
    """End all processes of groups: ask them by SIGTERM, kill those that are there after a time.

    Args:
        folders: Of the groups.
        grace_s: Seconds that they have to end by themselves; 0 for none.

    Returns:
        Ids of the processes that had to be killed.

    Raises:
        NotReady: One does not even end when it is killed.
    """
    if grace_s:
        _signal(processes_of(folders), signal.SIGTERM)
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
    """Kill all processes of groups and remove these; a sentence for each thing that was done.

    Raises:
        NotReady: A process does not end.
        CsitError: A group cannot be removed.
    """
    there = [folder for folder in folders if folder.exists()]
    let_threads_go(there)
    done = [f"killed process {pid} of an instance" for pid in end(there, 0)]
    remove_folders(there)
    return [*done, *(f"removed control group {folder}" for folder in there)]


def _signal(pids: Collection[int], which: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, which)
