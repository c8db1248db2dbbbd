"""A channel whose other end is a script: bytes of an agent that misbehaves."""

import queue
from collections.abc import Iterable

from resources.libraries.python.errors import NotReady


class ScriptedChannel:
    """Does as a `RemoteProgram`: pieces come out as given, then nothing, or the end of the output."""

    def __init__(self, pieces: Iterable[bytes | BaseException] = ()) -> None:
        self._pieces: queue.SimpleQueue[bytes | BaseException] = queue.SimpleQueue()
        for piece in pieces:
            self._pieces.put(piece)

    def says(self, piece: bytes | BaseException) -> None:
        """Add a piece, or an error of the connection."""
        self._pieces.put(piece)

    def send(self, data: bytes) -> None: ...

    def end_input(self) -> None: ...

    def receive(self, within_s: float) -> bytes:
        try:
            piece = self._pieces.get(timeout=within_s)
        except queue.Empty as error:
            raise NotReady("output", within_s, "nothing") from error
        if isinstance(piece, BaseException):
            raise piece
        return piece

    def stderr_tail(self) -> str:
        return ""

    def status(self) -> int | None:
        return 1

    def close(self) -> None:
        self.says(b"")
