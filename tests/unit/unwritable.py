"""Streams to which nothing can be written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

UNWRITABLE = ("closed pipe", "full disk", "closed terminal")


@contextmanager
def unwritable(lack: str) -> Iterator[TextIO]:
    """Yield a stream whose reader, space or terminal is gone; closing it must not raise."""
    if lack == "full disk":
        writer = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, writer = os.pipe() if lack == "closed pipe" else os.openpty()
        os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        yield stream
