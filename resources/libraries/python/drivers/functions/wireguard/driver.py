"""Network functions as a WireGuard tunnel with both ends in one network namespace.

They are in the kernel where it has WireGuard, and processes of wireguard-go elsewhere.
Keys are generated at each start; they are never in a file or an argument.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.tunnels import (
    WITHIN_S,
    TunnelEnd,
    Tunnels,
    devices_here,
    kernel_makes,
    no_tun,
    tunnel_device,
    version,
)
from resources.libraries.python.drivers.functions.wireguard import SOCKETS
from resources.libraries.python.drivers.host.ownership.cleanup_steps import remove_file, take_all
from resources.libraries.python.drivers.host.ownership.ownership_record import Claims
from resources.libraries.python.drivers.host.programs.program_output import completed, path_of
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.nodes import DutNode

_KIND = "wireguard"
_FOR = f"for NFs of kind {_KIND}"
_PORTS, _TABLES = (51820, 51821), (101, 102)
_SOCKETS = Path("/var/run/wireguard")
"""Where wireguard-go listens for its configuration: a file by the name of the device, for all network namespaces."""
_LONGEST_NAME = 15
"""Of an interface (IFNAMSIZ)."""
_INITIATOR = "initiator"
_KEY = re.compile(r"[A-Za-z0-9+/]{43}=")
_EVERYTHING = "0.0.0.0/0"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Keys of an end, Base64."""

    private: str = field(repr=False)
    public: str


class WireGuards(Tunnels):
    """NFs that encrypt packets and decrypt them again, in the kernel or by two processes of wireguard-go."""

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan]) -> None:
        super().__init__(node, context, functions, "" if in_kernel() else _KIND)
        self._machine: Claims = context.lock
        self._claimed: list[str] = []
        where = "on all CPUs of the machine" if self._in_kernel else "in two processes"
        self._does = f"encrypts each packet by ChaCha20-Poly1305 and decrypts it again, {where}"

    def ends(self, name: str) -> tuple[TunnelEnd, TunnelEnd]:
        """Named after the NF, as the control sockets of all network namespaces are in one folder."""
        return ends_of(name)

    def make(self) -> str:
        """Make the devices, or start the programs that do; then configure them."""
        if self._in_kernel:
            made = f"Linux {os.uname().release} in the kernel"
            for name in self._owners:
                self._fabric.change(name, [tunnel_device(end.device, _KIND) for end in ends_of(name)])
        else:
            made = self._start_programs()
        wg = path_of("wg") or "wg"
        for function in self._functions:
            keys = (make_keys(wg), make_keys(wg))
            for side in (0, 1):
                self._configure(wg, function, side, keys)
        return made

    def _start_programs(self) -> str:
        program = path_of("wireguard-go") or "wireguard-go"
        self._claimed = [end.device for name in self._owners for end in ends_of(name)]
        for device in self._claimed:
            self._machine.claim(SOCKETS, device)
        for side, companions in enumerate(self._companions):
            for name in self._owners:
                companions.start(name, [program, "--foreground", ends_of(name)[side].device])
        return f"{version(program)} in user space"

    def _configure(self, wg: str, function: NfPlan, side: int, keys: tuple[KeyPair, KeyPair]) -> None:
        """Tell an end its key and its peer, and route into it."""
        end, name = ends_of(function.name)[side], function.name
        self._wait_for(name, side, f"an open {end.device}", partial(self._not_made, name, end))
        argv = [wg, *settings(end, keys[1 - side].public)]
        self._fabric.run_inside(name, partial(ask, argv, keys[side].private))
        self._route_into(function, side)
        self._wait_for(name, side, f"an open {end.device}", partial(self.not_open, name, end))

    def _not_made(self, name: str, end: TunnelEnd) -> str:
        if not self._in_kernel and not _socket(end.device).exists():
            return "it does not take its configuration"
        return "" if end.device in self._fabric.run_inside(name, devices_here) else "there is no such device"

    def stop(self) -> None:
        super().stop()
        remove_left(self._claimed)  # those of ends that were killed
        if self._claimed:
            self._machine.release(SOCKETS, self._claimed)
        self._claimed = []


def remove_left(devices: Iterable[str]) -> list[str]:
    """Remove control sockets of programs that have ended; return a sentence for each.

    Raises:
        CsitError: Some cannot be removed; the others were.
    """
    return take_all(
        partial(remove_file, _socket(device), f"the control socket of the WireGuard device {device}")
        for device in devices
    )


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
    """
    own = ["set", end.device, "private-key", "/dev/stdin", "listen-port", str(end.port)]
    peer = ["peer", peer_key, "allowed-ips", _EVERYTHING]
    if end.role == _INITIATOR:
        peer += ["endpoint", f"127.0.0.1:{_PORTS[1]}"]
    return [*own, *peer]


def make_keys(wg: str) -> KeyPair:
    """Generate the keys of an end.

    Raises:
        CsitError: As `ask`, or what it prints is no key.
    """
    private = ask([wg, "genkey"])
    keys = KeyPair(private, ask([wg, "pubkey"], private))
    if not (_KEY.fullmatch(keys.private) and _KEY.fullmatch(keys.public)):
        raise CsitError(f"{wg} printed no key of 32 bytes in Base64")
    return keys


def ask(argv: Sequence[str], private_key: str = "") -> str:
    """Run `wg`; a private key is its standard input.

    Raises:
        CommandFailed: It failed.
        NotReady: It did not end.
        CsitError: It cannot be run.
    """
    return completed(argv, WITHIN_S, stdin=f"{private_key}\n", what=f"wg {argv[1]}").stdout.strip()


def in_kernel() -> bool:
    """Whether the kernel has WireGuard; its module is loaded by that where it is one."""
    return kernel_makes(tunnel_device("wg-probe", _KIND))


def missing(*, in_kernel: bool) -> Iterator[PreflightProblem]:
    """Requirements that this machine lacks."""
    programs = {"wg": "wireguard-tools"} if in_kernel else {"wireguard-go": "wireguard-go", "wg": "wireguard-tools"}
    for program, package in programs.items():
        if path_of(program) is None:
            fix = f"install it: apt-get install --no-install-recommends {package}"
            yield PreflightProblem(f"{program} missing {_FOR}", fix)
    if not in_kernel:
        yield from no_tun(_FOR)


def missing_on(_: DutNode, __: NfKind) -> Iterator[PreflightProblem]:
    """Requirements of a node's NFs that this machine lacks."""
    return missing(in_kernel=in_kernel())
