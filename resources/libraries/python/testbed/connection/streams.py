"""What a running program is talked with through: pipes of this machine, or a channel of an SSH connection."""

from typing import Protocol


class Streams(Protocol):
    """Standard input, output and error of a program, and its end."""

    def write(self, data: bytes, within_s: float) -> int:
        """Write some of it; how many bytes were taken.

        Raises:
            TimeoutError: None could be in time.
            OSError: Nobody reads any more.
        """

    def end_input(self) -> None:
        """Say that nothing more comes."""

    def read(self, within_s: float) -> bytes:
        """Some bytes of the output; empty at its end.

        Raises:
            TimeoutError: Nothing came in time.
        """

    def read_errors(self) -> bytes:
        """Some bytes of the error output, however long that takes; empty at its end."""

    def status(self, within_s: float) -> int | None:
        """The exit status as a shell has it (128 + the signal's number where it was killed by one).

        None when it did not end in time, or nobody can tell.
        """

    def broken(self) -> str:
        """Why the way to the program is gone; empty as long as it is not."""

    def release(self) -> None:
        """Let go of it, whether it has ended or not. Safe to call more than once."""
