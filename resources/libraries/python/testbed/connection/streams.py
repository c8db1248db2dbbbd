"""Standard streams of a running program: pipes of this machine, or a channel of an SSH connection."""

from typing import Protocol


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
