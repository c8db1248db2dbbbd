"""A client of VPP's command line: one line of text to a UNIX socket, one reply.

The socket speaks telnet. VPP asks a new client for the type of its terminal; one that names VPP's own command-line tool
is served line by line, without echo, prompt, pager and banner, and each reply ends with a NUL byte, also an empty one.
VPP takes what it reads at once for one command, so the next one is sent when the reply to this one is complete. There
is no status: a refusal is text too.
"""

import re
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.host.sockets.answers import SocketDialogue, receive
from resources.libraries.python.drivers.vpp import show_output
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.redaction import MASK

_IAC, _SB, _SE, _TERMINAL_TYPE, _IS = 255, 250, 240, 24, 0
_ASKED = bytes([_IAC, _SB, _TERMINAL_TYPE])
_LINE_BY_LINE = bytes([_IAC, _SB, _TERMINAL_TYPE, _IS]) + b"vppctl" + bytes([_IAC, _SE])
_END = b"\0"
_MAX_BYTES = 2048
"""Maximum size of a command; VPP reads up to 4096 bytes at once."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


_DONE = (
    ("create host-interface ", re.compile(r"host-\S+")),
    ("create interface vmxnet3 ", re.compile(r"vmxnet3-\S+")),
    ("create vhost-user ", re.compile(r"VirtualEthernet\d+/\d+/\d+")),
    ("create bridge-domain ", re.compile(r"bridge-domain \d+")),
    ("set interface default rx-mode ", re.compile(r"Default interface rx-mode set to \w+")),
    ("create sub-interfaces ", re.compile(r"\S+\.\d+")),
    ("pipe create ", re.compile(r"pipe\d+")),
    ("ipsec itf create ", re.compile(r"ipsec\d+")),
)
"""Commands that name what they made. All others that change something are answered with nothing."""
_NOTHING = re.compile("")
_REPORTED_S = 3.0
_KEY = re.compile(r"\b(crypto-key|salt) [^\s'`]+")
_REFUSED = re.compile(r"^(?:[a-z0-9_ -]+: )?(?:unknown (?:input|command|interface)|ambiguous)\b", re.IGNORECASE)


def _shown(text: str) -> str:
    """A command, or a reply that repeats one, without the keys in it."""
    return _KEY.sub(rf"\1 {MASK}", text)


def check(command: str, reply: str) -> None:
    """See whether a command that changes something was done.

    Raises:
        CommandFailed: The reply is another one than that of success.
    """
    expected = next((says for start, says in _DONE if command.startswith(start)), _NOTHING)
    if not expected.fullmatch(reply.strip()):
        said = _shown(reply) or "nothing, where it should name what was made"
        raise CommandFailed(("vpp:", _shown(command)), None, said)


def check_shown(command: str, reply: str) -> None:
    """See whether a command that shows something was understood.

    Raises:
        CommandFailed: It was not.
    """
    if _REFUSED.search(reply):
        raise CommandFailed(("vpp:", command), None, reply)


def plain(reply: bytes) -> str:
    """The text of a reply, without the colours that some tables have in any case."""
    return _COLOUR.sub("", reply.decode(errors="replace")).replace("\r", "").strip("\n ")


class CommandLine(SocketDialogue):
    """A connection to the command line of one VPP."""

    def __init__(self, path: Path, within_s: float = 10.0, first: bytes = b"") -> None:
        """Prepare; nothing is connected yet.

        `first`: What a relay on the way wants to read before it connects to VPP.
        """
        super().__init__(path, within_s)
        self._first = first

    def ask(self, command: str) -> str:
        """Send a command that only shows something; return the reply without colours.

        Raises:
            CommandFailed: VPP does not know it.
            CsitError: There is no VPP, or it closed the connection.
            NotReady: It does not answer.
        """
        reply = self._ask(command)
        check_shown(command, reply)
        return reply

    def do(self, commands: Iterable[str]) -> None:
        """Send commands that change something, and see that each is answered as if it was done.

        Raises:
            CommandFailed: One was not; the text has it with the reply. Later ones have not been sent.
            CsitError: There is no VPP, or it closed the connection.
            NotReady: It does not answer.
        """
        for command in commands:
            check(command, self._ask(command))

    def _ask(self, command: str) -> str:
        line = command.encode()
        if not line or len(line) > _MAX_BYTES or any(byte in line for byte in b"\n\r\0"):
            raise CsitError(f"no command line for VPP (1 to {_MAX_BYTES} bytes, one line): {_shown(command)[:80]!r}")
        try:
            return plain(self._exchange(line, f"a reply to {_shown(command)!r}", _ends).replace(_END, b""))
        except OSError as error:
            raise CsitError(f"VPP at {self._path} cannot be asked {_shown(command)!r}: {error.strerror}") from error

    def _begin(self, connection: socket.socket) -> None:
        connection.sendall(self._first)
        # Sent before VPP asks, the answer would be lost where its session is not yet made.
        self._read(connection, "its telnet options", lambda got: _ASKED in got)
        # The reply to an empty line ends all that was sent before: options, a banner, a prompt that came too early.
        connection.sendall(_LINE_BY_LINE)
        connection.sendall(b"\n")
        self._read(connection, "a reply to 'an empty line'", _ends)

    def _read(self, connection: socket.socket, what: str, complete: Callable[[bytes], bool]) -> bytes:
        return receive(connection, f"VPP at {self._path}: {what}", complete, self._within_s, show=_shown)


def _ends(got: bytes) -> bool:
    return got.endswith(_END)


def wait_for_reports(routers: Iterable[tuple[NfPlan, Callable[[str], str]]]) -> None:
    """Wait until routers of IPv6 have reported the multicast groups of their ports (MLD), or would have.

    VPP does so within a second of a port's being up, once; in a trial the report would count as a packet that came
    back. By `ip6 nd ra-suppress` it is the only packet that VPP sends by itself.

    `routers`: Each with its command line.
    """
    waiting = [(router, ask) for router, ask in routers if ":" in router.left.address]

    def silent() -> str:
        for router, ask in waiting:
            rows = show_output.interfaces(ask("show interface"))
            for side in (router.left, router.right):
                if side.name not in rows or not rows[side.name].count("tx packets"):
                    return side.name
        return ""

    with suppress(NotReady):
        wait_until("multicast groups reported", silent, _REPORTED_S, pause_s=0.05)
