"""Messages on a terminal: wrapped at words there, one line anywhere else."""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

_LAID_OUT = re.compile(r"\s|.*[\t\x1b]|.*\r(?!$)")
"""Start of a line that is not wrapped: indented, in columns, rewritten or coloured."""
_ELLIPSIS = " … "


def terminal_width(stream: TextIO | None = None) -> int:
    """Return the columns of the terminal, at least 40: those of `COLUMNS` where it is set.

    `stream`: Leads to the terminal; None for standard output.
    """
    found = 0
    if not os.environ.get("COLUMNS", "").isdigit():
        with suppress(OSError, ValueError):  # neither a terminal nor a file
            found = os.get_terminal_size((stream or sys.stdout).fileno()).columns
    return max(40, found or shutil.get_terminal_size().columns)


def wrapped_line(line: str, width: int) -> str:
    """Return a line whose words continue on more indented lines; paths and other long words stay whole."""
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.fill(
        line.strip(), width, initial_indent=indent, subsequent_indent=f"{indent}  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def wrapped(text: str, width: int, used: int = 0) -> str:
    """Return messages whose lines have at most `width` characters, except those that are laid out already."""
    if used + len(text) <= width:
        return text
    lines = []
    for line in text.split("\n"):
        too_wide = used + len(line) > width and not _LAID_OUT.match(line)
        lines.append(wrapped_line("x" * used + line, width)[used:] if too_wide else line)
        used = 0
    return "\n".join(lines)


def with_command(text: str, command: str, width: int | None) -> str:
    """Return a sentence that ends with a command to be copied, which is never broken.

    `command`: A command line; where it does not fit, it has an indented line of its own.
    `width`: Of the terminal; None for a message of one line.
    """
    if width is None or len(text) + 1 + len(command) <= width:
        return f"{text} {command}".rstrip()
    lines = [wrapped_line(line, width) for line in text.split("\n")]
    return "\n".join([*lines, f"  {command}"] if command else lines)


def shortened(line: str, width: int) -> str:
    """Return a line of at most `width` characters; its middle is left out, as progress is at its ends."""
    if len(line) <= width:
        return line
    head = line[: width // 3].rpartition(" ")[0]
    tail = line[len(line) - (width - len(head) - len(_ELLIPSIS)) :]
    return f"{head}{_ELLIPSIS}{tail.partition(' ')[2] or tail}"


@contextmanager
def dropping_output(stream: TextIO) -> Iterator[None]:
    """Drop what cannot be written to a stream, and all that follows.

    A measurement goes on when the reader of a pipe, the terminal or the space for a log is gone.
    """
    try:
        yield
    except OSError:
        discard_output(stream)


def discard_output(stream: TextIO) -> None:
    """Send what a stream still buffers, and all that follows, to nowhere: Python would try again when it ends."""
    with suppress(OSError, ValueError):  # a stream without a descriptor, as in tests
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
