"""The connection to a node over SSH: one for all calls, reopened once when it turns out to be dead.

It leads through jump hosts. Every host key is checked against what OpenSSH's known_hosts files say.

Paramiko answers the end of a session in a thread of its own. What another thread is about to send on that channel may
then follow the answer, and OpenSSH closes the whole connection when it receives data on a channel that it has closed.
So a thread that sends on a channel holds its `order`, and the answer waits for that.
"""

import base64
import binascii
import fnmatch
import hashlib
import hmac
import logging
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
from paramiko.common import MSG_CHANNEL_CLOSE

from resources.libraries.python.errors import ConfigError, ConnectionFailed, HostRefused
from resources.libraries.python.model.load import content_of
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.redaction import command_text
from resources.libraries.python.testbed.connection.authentication import Transport, authenticate
from resources.libraries.python.testbed.connection.command import Streams
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.connection.route import SshHop, openssh_options, route

_BLOCK_BYTES = 262144
_REFUSED_S = 2.0
_LOOK_S = 0.05
CONNECT_S = 10.0
_LOGIN_S = 20.0
_PROXY_ENDS_S = 2.0
_WINDOW_BYTES = 4 * 1024 * 1024
_RSA = {"rsa-sha2-256": "ssh-rsa", "rsa-sha2-512": "ssh-rsa"}
_LOG = f"{__name__}.paramiko"
# What paramiko writes of failures comes with the stack of its thread, and each is an exception of ours as well.
logging.getLogger(_LOG).setLevel(logging.CRITICAL)
_LARGEST_FILE_BYTES = 16 << 20
"""Maximum size of a known_hosts file, which a topology may name; a line has 100 to 800."""
_ORDER_TIMEOUT_S = 1.0
"""`order` is held briefly, except while new session keys are negotiated, for which this thread is needed."""


def _close_in_order(channel: Any, message: Any) -> None:  # noqa: ANN401 (paramiko has no types)
    channel.closed_by_peer = True
    order: threading.Lock | None = getattr(channel, "order", None)
    held = order is not None and order.acquire(timeout=_ORDER_TIMEOUT_S)
    try:
        paramiko.Channel._handle_close(channel, message)
    finally:
        if order is not None and held:
            order.release()


class OrderedTransport(paramiko.Transport):  # type: ignore[misc]
    """A transport for channels that several threads use."""

    _channel_handler_table = {**paramiko.Transport._channel_handler_table, MSG_CHANNEL_CLOSE: _close_in_order}  # noqa: RUF012 (as there)

    def open_ordered_session(self, timeout: float) -> Any:  # noqa: ANN401 (paramiko has no types)
        """A session channel with an `order`, to be held while something is sent on it."""
        channel = self.open_session(timeout=timeout)
        channel.order = threading.Lock()
        return channel


@dataclass(frozen=True, slots=True)
class OpenTransport:
    """An established transport, with those of its jump hosts."""

    transport: Transport
    _through: ExitStack

    @property
    def alive(self) -> bool:
        """Whether it stands, as far as this end knows."""
        return bool(self.transport.is_active())

    def close(self) -> None:
        """Close it, then those it goes through."""
        self._through.close()


def connect(hops: Sequence[SshHop], name: str, silence_s: float) -> OpenTransport:
    """Connect through all hops and log in everywhere.

    `hops`: The way; the node last.
    `silence_s`: How long a host may leave what was sent unacknowledged before the connection counts as cut.

    Raises:
        ConnectionFailed: A host cannot be reached, is not who it says, or does not let us in.
        ConfigError: A key or a password is not there.
    """
    with ExitStack() as stack:
        transport: Transport = None
        for position, hop in enumerate(hops):
            who = f"{name} ({hop})" if hop is hops[-1] else f"the jump host {hop} towards {name}"
            if transport is not None:
                pipe = _tunnel(transport, hop, who)
            elif hop.proxy:
                pipe = stack.enter_context(_proxied(hop, who))
            else:
                pipe = _pipe(hop, who, silence_s)
            stack.callback(pipe.close)
            transport = OrderedTransport(pipe, default_window_size=_WINDOW_BYTES)
            stack.callback(transport.close)
            _shake_hands(transport, hop, who, hops[:position])
            authenticate(transport, hop, who)
            transport.set_keepalive(silence_s / 4)
        return OpenTransport(transport, stack.pop_all())


def _pipe(hop: SshHop, who: str, silence_s: float) -> socket.socket:
    try:
        pipe = socket.create_connection((hop.host, hop.port), timeout=CONNECT_S)
    except TimeoutError as error:
        raise ConnectionFailed(f"{who} cannot be reached: no answer within {CONNECT_S:.0f} s") from error
    except socket.gaierror as error:
        raise ConnectionFailed(f"{who} cannot be reached: there is no host of that name ({error.strerror})") from error
    except ConnectionRefusedError as error:
        raise ConnectionFailed(f"{who} cannot be reached: nothing listens on port {hop.port}") from error
    except OSError as error:
        raise ConnectionFailed(f"{who} cannot be reached: {error.strerror or error}") from error
    pipe.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # With the keepalives in it, so that a cut cable is noticed long before the kernel would give up by itself.
    pipe.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(silence_s * 1000))
    return pipe


@contextmanager
def _proxied(hop: SshHop, who: str) -> Iterator[socket.socket]:
    """The proxy command of the user's SSH configuration, run by a shell as OpenSSH does.

    Its tokens are filled in with a host and a user in which no shell finds more than words.
    """
    ours, its = socket.socketpair()
    with ours, its:
        command = ["/bin/sh", "-c", f"exec {hop.proxy}"]
        try:
            proxy = subprocess.Popen(
                command, stdin=its.fileno(), stdout=its.fileno(), stderr=subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            raise ConnectionFailed(
                f"{who} cannot be reached: ProxyCommand cannot be started: {error.strerror}"
            ) from error
        try:
            its.close()
            yield ours
        finally:
            ours.close()
            proxy.terminate()
            try:
                proxy.wait(_PROXY_ENDS_S)
            except subprocess.TimeoutExpired:
                proxy.kill()
                proxy.wait()


def _tunnel(transport: Transport, hop: SshHop, who: str) -> Any:  # noqa: ANN401 (paramiko has no types)
    try:
        return transport.open_channel("direct-tcpip", (hop.host, hop.port), ("127.0.0.1", 0), timeout=CONNECT_S)
    except paramiko.ChannelException as error:
        raise ConnectionFailed(f"{who} cannot be reached from the host before it: {error.args[-1]}") from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise ConnectionFailed(f"{who} cannot be reached through the host before it: {error}") from error


def _shake_hands(transport: Transport, hop: SshHop, who: str, before: Sequence[SshHop]) -> None:
    transport.set_log_channel(_LOG)
    transport.banner_timeout = transport.handshake_timeout = transport.channel_timeout = CONNECT_S
    transport.auth_timeout = _LOGIN_S
    entries = entries_of(hop.known_hosts, hop.known_as)
    _prefer(transport, {entry.kind for entry in entries if not entry.revoked})
    try:
        transport.start_client(timeout=CONNECT_S)
        key = transport.get_remote_server_key()  # there is none where the time has passed
    except (paramiko.SSHException, EOFError, OSError) as error:
        reason = str(error) or "it closed the connection"
        said_nothing = not str(error) or reason.startswith("Error reading SSH protocol banner")
        if said_nothing and hop.proxy:
            reason = f"ProxyCommand of your SSH configuration brings no SSH version: {hop.proxy}"
        elif said_nothing and str(error):
            reason = (
                "it sent no SSH version; OpenSSH refuses clients for a while after failed logins (PerSourcePenalties)"
            )
        raise ConnectionFailed(f"{who} does not answer as an SSH server: {reason}") from error
    shown = PresentedKey(hop.known_as, key.get_name(), key.asbytes())
    check_host_key(shown, entries, hop.known_hosts, who, _scan(hop, shown.kind, before))


def _prefer(transport: Transport, kinds: set[str]) -> None:
    """Ask for a key of a kind that is known, where the host has several."""
    options = transport.get_security_options()
    # RSA keys are one kind in the files, and several kinds of signatures.
    options.key_types = sorted(options.key_types, key=lambda kind: _RSA.get(kind, kind) not in kinds)


def _scan(hop: SshHop, kind: str, before: Sequence[SshHop]) -> str:
    """The command that prints a host's key, run where the host can be reached from."""
    words = ["ssh-keyscan", "-t", kind.removeprefix("ssh-").split("-")[0]]
    if hop.port != 22:
        words += ["-p", str(hop.port)]
    if before:
        words = ["ssh", "-p", str(before[-1].port), f"{before[-1].user}@{before[-1].host}", *words]
    return command_text(*words, hop.host)


class SshConnection(Connection):
    """A connection to a node of a lab. Threads may share it."""

    def __init__(self, name: str, access: Access) -> None:
        """Prepare; the node is connected to when it is first needed."""
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
        return self._connected()[0].transport

    def _connected(self) -> tuple[OpenTransport, bool]:
        """The connection, and whether it was made just now."""
        with self._making:
            if self._closed:
                raise ConnectionFailed(f"the connection to {self.name} has been closed")
            if self._way is not None and self._way.alive:
                return self._way, False
            if self._way is not None:
                self._way.close()
            self._way = None
            self._way = connect(route(self._access, openssh_options), self.name, self._access.silence_s)
            return self._way, True

    def _start(self, command: Sequence[str]) -> Streams:
        channel = self._session()
        # From here on the command may have been started: whatever happens, it is not sent again.
        try:
            channel.settimeout(CONNECT_S)
            channel.exec_command(shlex.join(command))
        except (paramiko.SSHException, EOFError, OSError) as error:
            channel.close()
            raise ConnectionFailed(
                f"{self.name}: the connection ended as {command[0]} was started ({error}); whether it ran is not known"
            ) from error
        return _SshSession(channel)

    def _session(self) -> Any:  # noqa: ANN401 (paramiko has no types)
        way, fresh = self._connected()
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
                way, fresh = self._connected()

    def close(self) -> None:
        """Close the connection, after the programs that were opened."""
        super().close()
        with self._making:
            self._closed = True
            if self._way is not None:
                self._way.close()
                self._way = None


class _SshSession:
    """Fulfils `command.Streams` by a session channel."""

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
        if not self._channel.closed:
            return ""
        # A transport that ends closes its channels while it still counts as active.
        by_peer = getattr(self._channel, "closed_by_peer", False)
        return "the session ended without a word" if by_peer else "the connection ended"

    def release(self) -> None:
        with self._channel.order, suppress(paramiko.SSHException, EOFError, OSError):
            self._channel.close()


@dataclass(frozen=True, slots=True)
class KnownHost:
    """A line of a known_hosts file."""

    file: Path
    line: int
    revoked: bool
    hosts: str
    kind: str
    """Such as `ssh-ed25519`."""
    key: bytes


@dataclass(frozen=True, slots=True)
class PresentedKey:
    """The key that a host has shown."""

    name: str
    """The host as known_hosts files name it: `host`, or `[host]:port` for another port than 22."""
    kind: str
    key: bytes


def fingerprint(key: bytes) -> str:
    """As `ssh-keygen -l` shows it."""
    return f"SHA256:{base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip('=')}"


def entries_of(files: Iterable[Path], name: str) -> list[KnownHost]:
    """Lines that speak of a host. A file that is not there has none; certificates' authorities are passed over."""
    return [entry for file in files for entry in _read(file) if _speaks_of(entry.hosts, name)]


def check_host_key(
    shown: PresentedKey, entries: Sequence[KnownHost], files: Sequence[Path], who: str, scan: str
) -> None:
    """Refuse a host that is not known, or is not who it was.

    `files`: Where that was looked for; the first is where it would be added.

    Raises:
        HostRefused: The text says what was shown, what is known, and what to do.
    """
    for entry in entries:
        if entry.revoked and entry.key == shown.key:
            raise HostRefused(
                f"{who} shows the host key {fingerprint(shown.key)} that line {entry.line} of {entry.file} revokes"
            )
    known = [entry for entry in entries if not entry.revoked]
    if any(entry.key == shown.key for entry in known):
        return
    offered = f"{shown.kind} {fingerprint(shown.key)}"
    if not known:
        looked = ", ".join(map(str, files))
        raise HostRefused(
            f"{who} is unknown: no known_hosts file has {shown.name} (looked in {looked}); it shows {offered}. "
            "Where `ssh-keygen -lf` prints the same for its key on the host itself: ",
            f"{scan} >>{command_text(files[0])}",
        )
    entry = next((entry for entry in known if entry.kind == shown.kind), known[0])
    file = command_text(entry.file)
    raise HostRefused(
        f"{who} shows another host key than before: {offered}, but line {entry.line} of {entry.file} has {entry.kind} "
        f"{fingerprint(entry.key)}. The connection may be intercepted; if the host was reinstalled: ",
        f"ssh-keygen -R {command_text(shown.name)} -f {file} && {scan} >>{file}",
    )


def _read(file: Path) -> Iterator[KnownHost]:
    if not file.exists():
        return
    try:
        lines = content_of(file, _LARGEST_FILE_BYTES).decode(errors="replace").splitlines()
    except ConfigError as error:
        raise HostRefused(str(error)) from error
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        mark = words.pop(0) if words[0].startswith("@") else ""
        if mark not in ("", "@revoked") or len(words) < 3:
            continue
        try:
            yield KnownHost(file, number, bool(mark), words[0], words[1], base64.b64decode(words[2], validate=True))
        except binascii.Error:
            continue  # OpenSSH passes over it too


def _speaks_of(hosts: str, name: str) -> bool:
    found = False
    for pattern in hosts.split(","):
        if pattern.startswith("|1|"):
            found |= _is_hash_of(pattern, name)
        elif pattern.startswith("!"):
            if _matches(pattern[1:], name):
                return False
        else:
            found |= _matches(pattern, name)
    return found


def _matches(pattern: str, name: str) -> bool:
    # Brackets stand for themselves here: they are part of a name with a port.
    return fnmatch.fnmatchcase(name.lower(), pattern.lower().replace("[", "[[]"))


def _is_hash_of(pattern: str, name: str) -> bool:
    try:
        salt, hashed = (base64.b64decode(part, validate=True) for part in pattern.split("|")[2:4])
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), hashed)
