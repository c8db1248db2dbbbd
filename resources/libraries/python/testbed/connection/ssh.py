"""The connection to a node over SSH: one for all calls, reopened once when it turns out to be dead."""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import paramiko

from resources.libraries.python.errors import ConnectionFailed
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.testbed.connection.command import command_line
from resources.libraries.python.testbed.connection.machine import StreamConnection
from resources.libraries.python.testbed.connection.route import route, user_configuration
from resources.libraries.python.testbed.connection.streams import Streams
from resources.libraries.python.testbed.connection.transport import CONNECT_S, OpenTransport, connect

_BLOCK_BYTES = 262144
_REFUSED_S = 2.0
_LOOK_S = 0.05


class SshConnection(StreamConnection):
    """Fulfils `roles.connection.Connection` for a node of a lab. Threads may share it."""

    def __init__(self, name: str, access: Access) -> None:
        """Prepare; the node is connected to when it is first needed.

        Args:
            name: The node, for messages.
            access: How it is reached.
        """
        super().__init__(name, access.become)
        self._access = access
        self._way: OpenTransport | None = None
        self._making = threading.Lock()
        self._opening = threading.Lock()
        """One session after the other: why one was not opened is kept per transport, and would reach another thread."""
        self._closed = False

    def connect(self) -> Any:  # noqa: ANN401 (paramiko has no types)
        """The transport of the connection, made where there is none that stands: for what speaks SSH itself.

        Raises:
            ConnectionFailed: The node cannot be reached.
            ConfigError: A key or a password is not there.
        """
        return self._standing()[0].transport

    def _standing(self) -> tuple[OpenTransport, bool]:
        """The connection, and whether it was made just now."""
        with self._making:
            if self._closed:
                raise ConnectionFailed(f"the connection to {self.name} has been closed")
            if self._way is not None and self._way.alive:
                return self._way, False
            if self._way is not None:
                self._way.close()
            self._way = None
            self._way = connect(route(self._access, user_configuration()), self.name, self._access.silence_s)
            return self._way, True

    def _start(self, command: Sequence[str]) -> Streams:
        channel = self._session()
        # From here on the command may have been started: whatever happens, it is not sent again.
        try:
            channel.settimeout(CONNECT_S)
            channel.exec_command(command_line(command))
        except (paramiko.SSHException, EOFError, OSError) as error:
            channel.close()
            raise ConnectionFailed(
                f"{self.name}: the connection ended as {command[0]} was started ({error}); whether it ran is not known"
            ) from error
        return _SshSession(channel)

    def _session(self) -> Any:  # noqa: ANN401 (paramiko has no types)
        way, fresh = self._standing()
        refused_until = time.monotonic() + _REFUSED_S
        while True:
            try:
                with self._opening:
                    return way.transport.open_ordered_session(timeout=CONNECT_S)
            except paramiko.ChannelException as error:
                # A session that has ended counts until the server has noticed.
                if time.monotonic() < refused_until:
                    time.sleep(0.02)
                    continue
                raise ConnectionFailed(
                    f"{self.name} refuses one more session ({error.args[-1]}); see MaxSessions in its sshd_config"
                ) from error
            except (paramiko.SSHException, EOFError, OSError) as error:
                if fresh:
                    raise ConnectionFailed(
                        f"{self.name} opens no session: {error or 'it closed the connection'}"
                    ) from error
                # It had been cut unnoticed: nothing of the command has left this machine yet.
                with self._making:
                    if self._way is way:
                        way.close()
                way, fresh = self._standing()

    def close(self) -> None:
        """Close the connection, after the programs that were opened."""
        super().close()
        with self._making:
            self._closed = True
            if self._way is not None:
                self._way.close()
                self._way = None


class _SshSession:
    """Fulfils `streams.Streams` by a session channel."""

    def __init__(self, channel: Any) -> None:  # noqa: ANN401 (paramiko has no types)
        self._channel = channel

    def write(self, data: bytes, within_s: float) -> int:
        deadline = time.monotonic() + within_s
        while True:
            with self._channel.order:
                if self._channel.closed:
                    raise OSError("the channel is closed")
                if self._channel.send_ready():  # so that sending does not block while `order` is held
                    return int(self._channel.send(data))
            if time.monotonic() > deadline:
                raise TimeoutError
            with self._channel.out_buffer_cv:
                self._channel.out_buffer_cv.wait(_LOOK_S)

    def end_input(self) -> None:
        with self._channel.order, suppress(paramiko.SSHException, EOFError, OSError):
            if not self._channel.closed:
                self._channel.shutdown_write()

    def read(self, within_s: float) -> bytes:
        self._channel.settimeout(within_s)
        received: bytes = self._channel.recv(_BLOCK_BYTES)
        return received

    def read_errors(self) -> bytes:
        while True:
            try:
                received: bytes = self._channel.recv_stderr(_BLOCK_BYTES)
            except TimeoutError:
                continue
            return received

    def status(self, within_s: float) -> int | None:
        self._channel.status_event.wait(within_s)
        status: int = self._channel.exit_status
        return None if status < 0 else status

    def broken(self) -> str:
        if self.status(0) is not None:
            return ""
        if not self._channel.get_transport().is_active():
            return "the connection ended"
        return "the session ended without a word" if self._channel.closed else ""

    def release(self) -> None:
        with self._channel.order, suppress(paramiko.SSHException, EOFError, OSError):
            self._channel.close()
