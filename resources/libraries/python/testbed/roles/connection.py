"""The way to a machine: this one, or a node of a lab."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CompletedProgram:
    """A program that has ended."""

    argv: tuple[str, ...]
    status: int
    """As a shell has it: 128 + the signal's number where it was killed by one."""
    stdout: str
    stderr: str
    seconds: float


class Channel(Protocol):
    """A running program, to be talked with through its standard input and output."""

    def send(self, data: bytes) -> None:
        """Write all of it to the program's standard input.

        Raises:
            ConnectionFailed: The program or the way to it is gone.
        """

    def receive(self, within_s: float) -> bytes:
        """Some bytes of its standard output; empty when that has ended.

        Raises:
            NotReady: Nothing came in time.
            ConnectionFailed: The way to the program is gone.
        """

    def stderr_tail(self) -> str:
        """The end of what it wrote to its standard error until now."""

    def status(self) -> int | None:
        """Its exit status; None while it runs, or when it cannot be known any more."""

    def close(self) -> None:
        """Close its standard input, wait a little for its end, then end it. Safe to call more than once."""


class Connection(Protocol):
    """Runs programs on a machine and moves files. Argument vectors only: quoting is this role's affair."""

    @property
    def name(self) -> str:
        """The machine's name, for messages."""

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        within_s: float = 30.0,
        check: bool = True,
        root: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> CompletedProgram:
        """Run a program to its end, which is when no process has its output open any more.

        Where the way to the machine has broken since it was last used, it is made again, once. A program is never
        started twice: where it is not known whether it ran, that is said.

        `within_s`: When to give up; the program is then ended with its children.
        `environment`: Variables on top of those that are there; no secrets, everybody on the machine can read
          them.

        Raises:
            CommandFailed: It ended with another status than zero, and `check` is set; or there is no such program.
            Unsupported: There is no way to root's rights.
            NotReady: It did not end in time.
            ConnectionFailed: The machine cannot be reached.
        """

    def open(self, argv: Sequence[str], *, root: bool = False, environment: Mapping[str, str] | None = None) -> Channel:
        """Start a program and talk with it.

        Raises:
            CommandFailed: There is no such program, or it may not be run.
            Unsupported: There is no way to root's rights.
            ConnectionFailed: The machine cannot be reached.
        """

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o600, *, root: bool = False) -> None:
        """Copy a file there. It appears under its name only when it is whole.

        `target`: Where it goes; its folder is there.

        Raises:
            CommandFailed: It cannot be written, such as for want of space.
            ConnectionFailed: The machine cannot be reached.
        """

    def get(self, source: PurePosixPath, target: Path, *, root: bool = False) -> None:
        """Copy a file from there. It appears here only when it is whole.

        `target`: Where it goes; its folder is there.

        Raises:
            CommandFailed: It cannot be read.
            ConnectionFailed: The machine cannot be reached.
        """

    def close(self) -> None:
        """Close the connection and end the programs that were opened. Safe to call more than once."""
