"""QEMU's monitor: JSON messages over a socket (QMP, docs/interop/qmp-spec.rst in QEMU's sources). See docs/adr/0038."""

import json
import socket
from typing import Any

from resources.libraries.python.dialogue import record_of, shown
from resources.libraries.python.errors import CommandFailed, NotReady

_ANSWER_WITHIN_S = 30.0
"""QEMU answers at once, but on few cores many guests may start at the same time."""


class Monitor:
    """The near end of a connected socket whose other end QEMU has."""

    def __init__(self, name: str, near: socket.socket, within_s: float = _ANSWER_WITHIN_S) -> None:
        """Read QEMU's greeting and let it take commands.

        Args:
            name: Of the guest, for errors.
            near: This end.
            within_s: Deadline for every answer, in seconds.

        Raises:
            NotReady: QEMU says nothing, or has ended.
        """
        self._name = name
        self._socket = near
        self._within_s = within_s
        self._buffer = b""
        near.settimeout(within_s)
        greeting = self._next()["QMP"]["version"]
        numbers = greeting["qemu"]
        self.version = f"{numbers['major']}.{numbers['minor']}.{numbers['micro']} {greeting['package']}".strip()
        self.ask("qmp_capabilities")

    def ask(self, command: str, **arguments: str) -> Any:  # noqa: ANN401 - JSON
        """Send a command and wait for its result.

        Raises:
            NotReady: No answer.
            CommandFailed: QEMU refused.
        """
        self._send({"execute": command, **({"arguments": arguments} if arguments else {})})
        while True:
            message = self._next()
            if "return" in message:
                return message["return"]
            if (error := message.get("error")) is not None:
                said = error.get("desc") if isinstance(error, dict) else None
                raise CommandFailed(("qmp", command), None, f"{self._name}: {said or shown(error)}")

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise NotReady(f"the monitor of {self._name}", self._within_s, str(error)) from error

    def _next(self) -> dict[str, Any]:
        """Return the next message: an answer, or an event."""
        while b"\n" not in self._buffer:
            try:
                received = self._socket.recv(1 << 16)
            except OSError as error:
                raise NotReady(f"the monitor of {self._name}", self._within_s, str(error) or "silence") from error
            if not received:
                raise NotReady(f"the monitor of {self._name}", self._within_s, "QEMU has closed it")
            self._buffer += received
        line, _, self._buffer = self._buffer.partition(b"\n")
        return record_of(line)
