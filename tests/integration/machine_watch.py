"""Looks at this machine's processes, on whatever node of a lab they are."""

from collections.abc import Callable
from pathlib import Path

from resources.libraries.python.drivers.host.programs.waiting import wait_until


def processes(wanted: Callable[[list[str]], bool]) -> dict[int, str]:
    """Command lines that are wanted, by pid."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if wanted(words):
                found[int(entry.name)] = " ".join(words)
    return found


def running(word: str) -> dict[int, str]:
    """Command lines that have a word among their arguments, by pid."""
    return processes(lambda words: word in words)


def wait_for(*words: str) -> None:
    """Wait until something runs for each word."""
    wait_until(f"processes {words}", lambda: "" if all(map(running, words)) else "not all run", 30.0, pause_s=0.01)


def wait_for_end(*words: str) -> None:
    """Wait until nothing runs for any word."""
    wait_until(f"end of {words}", lambda: str([running(word) for word in words if running(word)] or ""), 30.0, 0.01)
