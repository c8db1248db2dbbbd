"""Network functions as a WireGuard tunnel with both ends in one network namespace, in user space by wireguard-go.

Keys are generated at each start; they are never in a file or an argument.
"""

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.tunnels import (
    READY_S,
    TunnelEnd,
    Tunnels,
    devices_here,
    loopback_up,
    no_tun,
    version,
)
from resources.libraries.python.drivers.functions.wireguard.registration import SOCKETS
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.routing import configure_routers
from resources.libraries.python.drivers.host.ownership.claims import Claims
from resources.libraries.python.drivers.host.ownership.preflight import PreflightProblem
from resources.libraries.python.drivers.host.programs.installed import path_of
from resources.libraries.python.drivers.host.programs.namespace_programs import Companions
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, Unsupported
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import NfPlan

_FOR = "for NFs of kind wireguard"
_PORTS, _TABLES = (51820, 51821), (101, 102)
_SOCKETS = Path("/var/run/wireguard")
"""Where wireguard-go listens for its configuration: a file by the name of the device, for all network namespaces."""
_LONGEST_NAME = 15
"""Of an interface (IFNAMSIZ)."""
_WITHIN_S = 15.0
_INITIATOR = "initiator"
_EVERYTHING = "0.0.0.0/0"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Keys of an end, Base64."""

    private: str = field(repr=False)
    public: str


class WireGuards(Tunnels):
    """NFs that encrypt packets and decrypt them again by two processes of wireguard-go."""

    def __init__(
        self, functions: Sequence[NfPlan], fabric: Fabric, left: Companions, right: Companions, machine: Claims
    ) -> None:
        """As `Tunnels`; the machine's record has the control sockets, which a killed run would leave."""
        super().__init__(functions, fabric, left, right)
        self._machine = machine
        self._claimed: list[str] = []
        self._version = ""

    def ends(self, name: str) -> tuple[TunnelEnd, TunnelEnd]:
        """Named after the NF, as the control sockets of all network namespaces are in one folder."""
        return ends_of(name)

    def start(self) -> None:
        """Start all of them, and wait until packets come through each; then give them their routes.

        Raises:
            Unsupported: Something is missing.
            CommandFailed: An end does not take its configuration, or the kernel refused a route.
            CsitError: An end has ended; the text has its last words.
            NotReady: A tunnel does not carry packets in time.
        """
        program, wg = path_of("wireguard-go"), path_of("wg")
        lacks = tuple(missing())
        if program is None or wg is None or lacks:
            raise Unsupported("; ".join(map(str, lacks)))
        self._version = version(program)
        for name in self._owners:
            self._fabric.change(name, [loopback_up()])
        self._claimed = [end.device for name in self._owners for end in ends_of(name)]
        for device in self._claimed:
            self._machine.claim(SOCKETS, device)
        for side, companions in enumerate(self._companions):
            for name in self._owners:
                companions.start(name, [program, "--foreground", ends_of(name)[side].device])
        for function in self._functions:
            keys = (make_keys(wg), make_keys(wg))
            for side in (0, 1):
                self._configure(wg, function, side, keys)
        self._wait_until_carrying()
        configure_routers(self._functions, self._fabric)

    def _configure(self, wg: str, function: NfPlan, side: int, keys: tuple[KeyPair, KeyPair]) -> None:
        """Tell an end its key and its peer, and route into it."""
        end, name = ends_of(function.name)[side], function.name
        companions = self._companions[side]
        companions.wait_for(name, f"an open {end.device}", partial(self._not_made, name, end), READY_S)
        ask([wg, *settings(end, keys[1 - side].public)], keys[side].private)
        companions.wait_for(name, f"an open {end.device}", partial(self.not_open, name, end), READY_S)
        self._route_into(function, side)

    def _not_made(self, name: str, end: TunnelEnd) -> str:
        if not _socket(end.device).exists():
            return "it does not take its configuration"
        return "" if end.device in self._fabric.run_inside(name, devices_here) else "there is no such device"

    def stop(self) -> None:
        super().stop()
        remove_left(self._claimed)  # those of ends that were killed
        if self._claimed:
            self._machine.release(SOCKETS, self._claimed)
        self._claimed = []

    def facts(self) -> Mapping[str, str]:
        if not self._version:
            return {}
        does = "encrypts each packet by ChaCha20-Poly1305 and decrypts it again, in two processes"
        return {"wireguard": f"{self._version} in user space, {does}"}


def remove_left(devices: Iterable[str]) -> list[str]:
    """Remove control sockets of programs that have ended; return a sentence for each."""
    left = [device for device in devices if _socket(device).exists()]
    for device in left:
        _socket(device).unlink(missing_ok=True)
    return [f"removed the control socket of the WireGuard device {device}" for device in left]


def _socket(device: str) -> Path:
    return _SOCKETS / f"{device}.sock"


def ends_of(name: str) -> tuple[TunnelEnd, TunnelEnd]:
    """The left and the right end of the tunnel of an NF.

    Raises:
        Unsupported: Its name is too long for interfaces.
    """
    devices = [f"{name}-{side}" for side in ("wgl", "wgr")]
    if max(map(len, devices)) > _LONGEST_NAME:
        raise Unsupported(f"{name}: {devices[0]} has more than {_LONGEST_NAME} characters, too long for an interface")
    left = TunnelEnd(devices[0], _INITIATOR, _PORTS[0], _TABLES[0])
    return left, TunnelEnd(devices[1], "responder", _PORTS[1], _TABLES[1])


def settings(end: TunnelEnd, peer_key: str) -> list[str]:
    """Arguments of `wg` that set an end up; the private key comes by standard input.

    Only the initiator has the endpoint of its peer. When both ends initiate a handshake at the same time, each one
    waits for the response to its own, and both retry after five seconds, again at the same time.

    Args:
        end: Which one.
        peer_key: Public key of the other one.
    """
    own = ["set", end.device, "private-key", "/dev/stdin", "listen-port", str(end.port)]
    peer = ["peer", peer_key, "allowed-ips", _EVERYTHING]
    if end.role == _INITIATOR:
        peer += ["endpoint", f"127.0.0.1:{_PORTS[1]}"]
    return [*own, *peer]


def make_keys(wg: str) -> KeyPair:
    """Generate the keys of an end.

    Raises:
        CsitError: As `ask`.
    """
    private = ask([wg, "genkey"])
    return KeyPair(private, ask([wg, "pubkey"], private))


def ask(argv: Sequence[str], private_key: str = "") -> str:
    """Run `wg`; a private key is its standard input.

    Raises:
        CommandFailed: It failed.
        NotReady: It did not end.
        CsitError: It cannot be run.
    """
    try:
        done = subprocess.run(
            argv, input=f"{private_key}\n", capture_output=True, text=True, timeout=_WITHIN_S, check=False
        )
    except OSError as error:
        raise CsitError(f"{argv[0]} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise NotReady(f"wg {argv[1]}", _WITHIN_S, "still running") from error
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr)
    return done.stdout.strip()


def make(_: DutNode, context: DriverContext, row: Sequence[NfPlan]) -> WireGuards:
    """Make the driver of NFs on a node."""
    left, right = (context.companions(f"wireguard-{side}") for side in ("left", "right"))
    return WireGuards(row, context.fabric, left, right, context.lock)


def missing() -> Iterator[PreflightProblem]:
    """What this machine lacks."""
    for program, package in (("wireguard-go", "wireguard-go"), ("wg", "wireguard-tools")):
        if path_of(program) is None:
            fix = f"install it: apt-get install --no-install-recommends {package}"
            yield PreflightProblem(f"{program} missing {_FOR}", fix)
    yield from no_tun(_FOR)


def missing_on(_: DutNode, __: NfKind) -> Iterator[PreflightProblem]:
    """What this machine lacks for NFs of a node."""
    return missing()
