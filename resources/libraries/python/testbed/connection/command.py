"""A command as words: its user, its environment, a line that separates its start from output, its streams, its failure.

The only place of the project that quotes words for a shell. A program is started by a small script of POSIX shell, the
same on every machine, that says on standard error, in a line of its own, which process group the program is in, or
that there is no such program. So a program can be ended with its children from outside, also as root behind `sudo`, and
a missing program is distinguished from one that exits with 127.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from resources.libraries.python.errors import CommandFailed, CsitError, Unsupported, ending_of_shell

TRACEBACK = "Traceback (most recent call last):"
_NOT_STARTED = (126, 127)
_OLD = ("SyntaxError", "Unknown option", "unknown option", "TabError", "IndentationError")
"""What a Python older than our programs says of them, and one older than 3.4 of its own options."""
_SHELL_ADDS = 128


def python_failure(machine: str, python: str, failed: CommandFailed) -> CsitError:
    """Return the error to raise from a program that ended with a status other than zero, with a traceback as a note."""
    last = (failed.stderr.strip().splitlines() or ["nothing on stderr"])[-1].strip()
    status = failed.status or 0
    if status in _NOT_STARTED:
        return Unsupported(
            f"{machine}: {python} does not run there ({last}); say access.python where Python 3.11 or newer is"
        )
    if status < 0 or status > _SHELL_ADDS or last.startswith("MemoryError"):
        how = ending_of_shell(_SHELL_ADDS - status if status < 0 else status)
        return CsitError(
            f"{machine}: {python} {how} in the middle of its work, as where memory runs out: look at dmesg there, "
            "free memory, and repeat the command"
        )
    if any(word in last for word in _OLD) or (TRACEBACK not in failed.stderr and "SyntaxError" in failed.stderr):
        return Unsupported(f"{machine}: {python} is too old ({last}); say access.python where Python 3.11 or newer is")
    _, begin, trace = failed.stderr.rpartition(TRACEBACK)
    if begin:
        error = CsitError(f"{machine}: internal error: {last}")
        error.add_note(f"{machine}: {begin}{trace}")
        return error
    return CsitError(
        f"{machine}: {python} ended with {status} ({last}); try there: {python} -I -c 'import json, ssl, ctypes'"
    )


_MISSING = "missing"
_SCRIPT = (
    # The fifth field of stat is the process group; the second has no space in it, the shell being called `sh`.
    'read -r _ _ _ _ group _ <"/proc/$$/stat"; token=$1; shift; '
    f'command -v -- "$1" >/dev/null 2>&1 || {{ echo "$token {_MISSING}" >&2; exit 127; }}; '
    'echo "$token $group" >&2; '
    # In a shell below, so that this one lives to say the status when a signal ends the program.
    '(exec "$@"); exit $?'
)
_KILL = 'kill -s KILL -- "-$1"'
_AFTERWARDS_S = 5.0


def words(
    argv: Sequence[str],
    token: str,
    *,
    sudo: bool = False,
    environment: Mapping[str, str] | None = None,
    within_s: float | None = None,
) -> list[str]:
    """The words that start a program.

    `token`: Beginning of the line that reports its start; a text that no program prints.
    `sudo`: Whether root's rights come from `sudo`, without a password.
    `within_s`: The machine itself ends the program some seconds after that, in case the connection is lost.

    Raises:
        ValueError: A word cannot be passed to a program.
    """
    for name in environment or {}:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"no name of a variable: {name!r}")
    prefix = ["sudo", "-n", "--"] if sudo else []
    if environment:
        prefix += ["env", *(f"{name}={value}" for name, value in environment.items())]
    if within_s is not None:
        prefix += ["timeout", "--signal=KILL", f"{within_s + _AFTERWARDS_S:.3f}"]
    made = [*prefix, "sh", "-c", _SCRIPT, "sh", token, *argv]
    if not argv or any("\0" in word for word in made):
        raise ValueError(f"an empty command or a word with a NUL byte: {list(argv)!r}")
    return made


def killing(group: int, *, sudo: bool = False) -> list[str]:
    """The words that end a process group at once."""
    return [*(["sudo", "-n", "--"] if sudo else []), "sh", "-c", _KILL, "sh", str(group)]


def started(line: str, token: str) -> int | None:
    """Return the process group from a line with the token; None where there is no such program."""
    pid_text = line.removeprefix(token).strip()
    return None if pid_text == _MISSING else int(pid_text)


class Streams(Protocol):
    """Standard input, output and error of a program, and its end."""

    def write(self, data: bytes, within_s: float) -> int:
        """Write a part of it; return how many bytes were accepted.

        Raises:
            TimeoutError: None could be in time.
            OSError: The other end is closed.
        """

    def end_input(self) -> None:
        """Close standard input."""

    def read(self, within_s: float) -> bytes:
        """Some bytes of the output; empty at its end.

        Raises:
            TimeoutError: Nothing came in time.
        """

    def read_errors(self) -> bytes:
        """Some bytes of the error output, however long that takes; empty at its end."""

    def status(self, within_s: float) -> int | None:
        """The exit status as a shell has it (128 + the signal's number where it was killed by one).

        None when it did not end in time, or when it is unknown.
        """

    def broken(self) -> str:
        """Return why the connection to the program is gone; empty while it is not."""

    def release(self) -> None:
        """Release it, whether it has ended or not. Safe to call more than once."""
