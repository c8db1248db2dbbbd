"""Requests to a guest over a virtio serial port: one line, answered by lines and an end mark."""

import socket
import time
from pathlib import Path

from resources.libraries.python.drivers.functions.vm_application.image import END
from resources.libraries.python.errors import CsitError, NotReady

_WITHIN_S = 20.0
"""A guest in emulation may have to wait for its CPU."""
_CHUNK = 1 << 16
_MOST_BYTES = 1 << 20


class Questions:
    """A connection to one guest, made when it is first needed and again after a failure."""

    def __init__(self, name: str, path: Path, within_s: float = _WITHIN_S) -> None:
        """Prepare; nothing is connected yet.

        Args:
            name: Of the NF.
            path: The host's end of the port.
            within_s: Deadline for each answer, in seconds.
        """
        self._name = name
        self._path = path
        self._within_s = within_s
        self._socket: socket.socket | None = None

    def ask(self, question: str) -> str:
        """Ask one of the questions that the guest's init knows; return its answer.

        Raises:
            CsitError: The guest has none, or is gone; the text has its words.
            NotReady: It does not answer in time.
        """
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
                self._socket.connect(str(self._path))
            self._socket.sendall(question.encode() + b"\n")
            lines = self._answer(self._socket, question)
        except (CsitError, OSError) as error:
            self.close()  # what comes late would be taken for the next answer
            if isinstance(error, OSError):
                raise CsitError(f"the guest of {self._name} cannot be asked: {error.strerror}") from error
            raise
        status = lines.pop().removeprefix(END).strip()
        if status != "0":
            raise CsitError(f"the guest of {self._name}: {' '.join(lines)[-400:] or f'status {status}'}")
        return "\n".join(lines)

    def _answer(self, connection: socket.socket, question: str) -> list[str]:
        got = b""
        end = time.monotonic() + self._within_s
        while not (got.endswith(b"\n") and got.splitlines()[-1].startswith(END.encode())):
            connection.settimeout(max(0.001, end - time.monotonic()))
            try:
                part = connection.recv(_CHUNK)
            except TimeoutError as error:
                what = f"answer of the guest of {self._name} to '{question}'"
                raise NotReady(what, self._within_s, got[-80:].decode(errors="replace") or "nothing") from error
            if not part or len(got) > _MOST_BYTES:
                raise CsitError(f"the guest of {self._name} ended its answer to '{question}' early")
            got += part
        return got.decode(errors="replace").replace("\r", "").splitlines()

    def close(self) -> None:
        """Close the connection. Safe to call at any time."""
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()
