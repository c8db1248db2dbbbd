"""Looks at this machine's processes, on whatever node of a lab they are."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from resources.libraries.python.drivers.host.programs.waiting import wait_until

_TESTS = "[pytest-xdist "
"""The title of a process of tests begins so, and has the name of its present test."""
_RUN = "PYTEST_XDIST_TESTRUNUID"
"""In the environment of what tests start that run in several processes: which run of pytest it is."""


def entries(wanted: Callable[[list[str]], bool]) -> Iterator[tuple[Path, list[str]]]:
    """Folders below /proc with command lines that are wanted, without those of another run of tests beside this one."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if not words[0].startswith(_TESTS) and wanted(words) and not _of_other_tests(entry):
                    yield entry, words
            except (FileNotFoundError, ProcessLookupError):
                continue


def _of_other_tests(entry: Path) -> bool:
    rows = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
    runs = [value for name, _, value in (row.partition("=") for row in rows) if name == _RUN]
    return bool(runs) and runs != [os.environ.get(_RUN)]


def processes(wanted: Callable[[list[str]], bool]) -> dict[int, str]:
    """Command lines that are wanted, by pid."""
    return {int(entry.name): " ".join(words) for entry, words in entries(wanted)}


def running(word: str) -> dict[int, str]:
    """Command lines that have a word among their arguments, by pid."""
    return processes(lambda words: word in words)


def wait_for(*words: str) -> None:
    """Wait until something runs for each word."""
    wait_until(f"processes {words}", lambda: "" if all(map(running, words)) else "not all run", 30.0, pause_s=0.01)


def wait_for_end(*words: str) -> None:
    """Wait until nothing runs for any word."""
    wait_until(f"end of {words}", lambda: str([running(word) for word in words if running(word)] or ""), 30.0, 0.01)
