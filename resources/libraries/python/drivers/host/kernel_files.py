"""Files of the kernel, as of /proc and /sys: opened by descriptor, written in one call, read as far as known."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opened(path: Path | str, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Yield the descriptor of a file that is there, until the context ends.

    Raises:
        OSError: It cannot be opened.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write(path: Path, value: str) -> None:
    """One `write` call, as the kernel wants it; a file that is not there is an error and not made.

    Raises:
        OSError: The kernel refuses.
    """
    with opened(path, os.O_WRONLY | os.O_TRUNC) as descriptor:
        os.write(descriptor, value.encode())


def line_of(path: Path) -> str | None:
    """The text of a file without white space around it; None where it is empty or cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip() or None
    except OSError:
        return None


def number_of(path: Path) -> int | None:
    """The number in a file; None where it cannot be read, or is none, such as `max` for no limit."""
    try:
        return int(line_of(path) or "")
    except ValueError:
        return None
