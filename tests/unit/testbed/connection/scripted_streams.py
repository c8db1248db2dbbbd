"""A program on a node whose error output is that of a test."""

import queue
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from resources.libraries.python.testbed.connection.program import RemoteProgram

TOKEN = "csit-0123456789abcdef"  # noqa: S105 - of the announcement


class ScriptedStreams:
    """Fulfils `command.Streams` of a program that runs, with an error output of the test's own."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        for block in blocks:
            self._blocks.put(block)

    def write(self, data: bytes, _within_s: float) -> int:
        return len(data)

    def end_input(self) -> None:
        pass

    def read(self, _within_s: float) -> bytes:
        return b""

    def read_errors(self) -> bytes:
        return self._blocks.get()

    def status(self, _within_s: float) -> int | None:
        return None

    def broken(self) -> str:
        return ""

    def release(self) -> None:
        self._blocks.put(b"")


@contextmanager
def started(*blocks: bytes) -> Iterator[tuple[RemoteProgram, list[int]]]:
    killed: list[int] = []
    program = RemoteProgram(["agent"], ScriptedStreams(blocks), TOKEN, "DUT1", killed.append)
    try:
        program.await_start(60.0)
        yield program, killed
    finally:
        program.end()
