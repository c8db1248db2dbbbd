"""Space for results: checked before it is needed, with a reserve for the end of a run."""

import os
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.errors import RunStopped

RESERVE_BYTES = 8_000_000
"""For Robot's output on tests that did not run, and the last records."""
LEAST_BYTES = 4_000_000
"""Least free space to begin a test."""


def free_bytes(folder: Path) -> int:
    """Free space for this user."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


class Reserve:
    """A file that reserves space, so that a run can write its last records when the disk is full.

    Args:
        folder: Of the results.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / ".reserve"

    def hold(self) -> None:
        """Allocate the space, where the file system can."""
        with suppress(OSError), self._path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)

    def free(self) -> None:
        """Release the space."""
        self._path.unlink(missing_ok=True)

    def check(self) -> None:
        """Check that there is space for another test.

        Raises:
            RunStopped: There is not; the reserve is released.
        """
        left = free_bytes(self._folder)
        if left < LEAST_BYTES:
            self.free()
            raise RunStopped(
                f"{self._folder}: {left / 1e6:.1f} MB of disk space left for results; free space, then resume the run"
            )
