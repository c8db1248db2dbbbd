"""Why a session over SSH is over: the server has closed it, or the connection has ended."""

import socket
import threading
from collections.abc import Callable, Iterator

import paramiko
import pytest

from resources.libraries.python.testbed.connection.ssh import OrderedTransport, _SshSession

WITHIN_S = 60.0


class Server(paramiko.ServerInterface):  # type: ignore[misc]
    """Lets anybody in."""

    def check_auth_none(self, *_: object) -> int:
        return int(paramiko.AUTH_SUCCESSFUL)

    def check_channel_request(self, *_: object) -> int:
        return int(paramiko.OPEN_SUCCEEDED)


@pytest.fixture
def ends() -> Iterator[tuple[paramiko.Transport, paramiko.Transport]]:
    """A connection: the client's end, and the server's."""
    near, far = socket.socketpair()
    client, server = OrderedTransport(near), paramiko.Transport(far)
    server.add_server_key(paramiko.ECDSAKey.generate())
    server.start_server(event=threading.Event(), server=Server())
    client.start_client(timeout=WITHIN_S)
    client.auth_none("anybody")
    yield client, server
    for end in (client, server):
        end.close()


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lambda _, channel: channel.close(), "the session ended without a word"),
        (lambda server, _: server.close(), "the connection ended"),
    ],
)
def test_a_session_that_ends_without_a_status_names_what_ended(
    ends: tuple[paramiko.Transport, paramiko.Transport],
    end: Callable[[paramiko.Transport, paramiko.Channel], None],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also while the transport still counts as active, as it does when it closes its channels at its end."""
    client, server = ends
    session = _SshSession(client.open_ordered_session(WITHIN_S))
    channel = server.accept(WITHIN_S)
    assert session.broken() == ""
    monkeypatch.setattr(client, "is_active", lambda: True)
    end(server, channel)
    assert session.status(WITHIN_S) is None
    assert session.broken() == why
