"""A file of lines that only grows: each line is on disk before anything else happens, and one process at a time writes.

A write that is cut short, by a kill, a power cut or a full disk, can tear the last line only, and a torn line is never
joined with the next one.
"""

import fcntl
import os
from pathlib import Path

from resources.libraries.python.errors import CsitError, RunStopped


class JournalFull(RunStopped):
    """The journal cannot take another line: no space, or the disk fails. All earlier lines are intact."""


class Lines:
    """A file that is being written.

    Args:
        path: The file; made when it is missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def open(self) -> None:
        """Open it at its end, behind a whole line.

        Raises:
            CsitError: Another process writes it, or it cannot be written.
        """
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            _sync_folder(self._path.parent)
        except OSError as error:
            raise CsitError(f"{self._path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise CsitError(f"{self._path}: the run that writes this journal is still going on") from error
        self._descriptor = descriptor
        if not self._ends_a_line():
            self._write(b"\n")  # a torn line stays where it is, alone

    def close(self) -> None:
        """Close it; the lock goes with it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def append(self, line: str) -> None:
        """Write a line, given without its end; it is on disk when this returns.

        Raises:
            JournalFull: It could not be written, and nothing of it is left in the file.
        """
        self._write(line.encode() + b"\n")

    def _ends_a_line(self) -> bool:
        size = os.fstat(self._descriptor).st_size
        return size == 0 or os.pread(self._descriptor, 1, size - 1) == b"\n"

    def _write(self, data: bytes) -> None:
        size = os.fstat(self._descriptor).st_size
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, size)  # needs no space
            raise JournalFull(
                f"{self._path}: cannot be written: {error.strerror}; mend that, then resume the run"
            ) from error


def _sync_folder(folder: Path) -> None:
    """Put a new file's name on disk, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
