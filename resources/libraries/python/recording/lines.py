"""Append-only files of lines: each line is on disk before the caller continues, and one process at a time writes.

A write that is cut short, by a kill, a power cut or a full disk, tears the last line at most, and a torn line is never
joined with the next one.
"""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from resources.libraries.python.dialogue import MAX_LINE_BYTES
from resources.libraries.python.errors import CsitError, RunStopped
from resources.libraries.python.redaction import redacted_json


class JournalFull(RunStopped):
    """No further line can be written: no space, or the disk fails. All earlier lines are intact."""


def active(path: Path) -> str:
    """The sentence about a file that another process writes."""
    return (
        f"{path}: the run of this journal is still active: choose another folder (-d), or resume it when it has ended, "
        "which also restores its output.xml"
    )


def refuse_active(path: Path) -> None:
    """Check that no process writes a file, which may be missing. Nothing is changed.

    Raises:
        CsitError: One does.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # reported where it is read
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CsitError(active(path)) from error
    finally:
        os.close(descriptor)


def read_lines(path: Path) -> Iterator[bytes | None]:
    """Yield the lines of a file; None for one that is longer than any record.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE_BYTES):
            is_whole = len(line) < MAX_LINE_BYTES or line.endswith(b"\n")
            yield line if is_whole else None
            while not is_whole:
                rest = file.readline(MAX_LINE_BYTES)
                is_whole = len(rest) < MAX_LINE_BYTES or rest.endswith(b"\n")


class Lines:
    """A file open for writing, by one process at a time; a context manager.

    `path`: The file; created when missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Open at the end, after a complete line.

        Raises:
            CsitError: Another process writes it, or it cannot be written.
        """
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            _sync_folder(self.path.parent)
        except OSError as error:
            raise CsitError(f"{self.path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise CsitError(active(self.path)) from error
        self._descriptor = descriptor
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            self._write(b"\n")  # a torn line stays where it is, alone
        return self

    def __exit__(self, *_: object) -> None:
        """Close, and release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def add_line(self, line: str) -> None:
        """Write a line of JSON, given without its end, with secrets masked; it is on disk on return.

        Raises:
            JournalFull: It could not be written, and nothing of it is left in the file.
        """
        self._write(redacted_json(line).encode() + b"\n")

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
                f"{self.path}: cannot be written: {error.strerror}; fix that, then resume the run"
            ) from error


def _sync_folder(folder: Path) -> None:
    """Flush the name of a new file to disk, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
