"""Network functions as an OpenVPN tunnel with both ends in one network namespace."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.openvpn import identity
from resources.libraries.python.drivers.functions.openvpn.configuration import (
    CIPHER,
    ENDS,
    LEFT,
    RIGHT,
    End,
    Passed,
    TunnelFiles,
    configuration,
    passed,
)
from resources.libraries.python.drivers.functions.openvpn.policy_routing import device_up, into, loopback_up
from resources.libraries.python.drivers.functions.openvpn.requirements import missing, version
from resources.libraries.python.drivers.generators.builtin.counters import interface_numbers
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.routing import configure_routers
from resources.libraries.python.drivers.host.programs.installed import path_of
from resources.libraries.python.drivers.host.programs.namespace_programs import Companions
from resources.libraries.python.drivers.host.sockets.listeners import udp_ports
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.counters import InterfaceCounters, Processed
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import NfPlan

_READY_S = 30.0
_FEW = 2000
"""Packets that may be the system's own, or wait in the queues of both devices, 500 each, where they do not count."""
_TAKEN_IN = 0.9
"""Share of the packets received that must have gone into the tunnel."""
_ONE_EACH = Passed(len(ENDS), len(ENDS))
_NOWHERE = ("192.0.2.1", 9)
"""An address for documentation (RFC 5737), and the port of discard."""


class OpenVpns:
    """Fulfils `NetworkFunctions` and `Processing` of the roles: NFs that encrypt packets and decrypt them again.

    What arrives at the left port is routed into the left end, crosses loopback encrypted, and leaves from the right end
    by the routes that any NF has; the other way round alike.
    """

    def __init__(self, functions: Sequence[NfPlan], fabric: Fabric, left: Companions, right: Companions) -> None:
        """Prepare.

        Args:
            functions: Those that are of this kind.
            fabric: Has their namespaces, which route; started before `start`.
            left: Runs the left ends.
            right: Runs the right ends.
        """
        self._functions = tuple(functions)
        self._owners = tuple(function.name for function in self._functions)
        self._fabric = fabric
        self._companions = {LEFT: left, RIGHT: right}
        self._before: dict[str, Passed] = {}
        self._version = ""

    def start(self) -> None:
        """Start all of them, and wait until packets come through each; then give them their routes.

        Raises:
            Unsupported: Something is missing.
            CommandFailed: No certificate can be made, or the kernel refused a route.
            CsitError: An end has ended; the text has its last words.
            NotReady: A tunnel does not carry packets in time.
        """
        program, openssl = path_of("openvpn"), path_of("openssl")
        lacks = tuple(missing())
        if program is None or openssl is None or lacks:
            raise Unsupported("; ".join(map(str, lacks)))
        self._version = version(program)
        known = {end: identity.make(openssl, companions.folder) for end, companions in self._companions.items()}
        for name in self._owners:
            self._fabric.change(name, [loopback_up()])
        for end, other in ((LEFT, RIGHT), (RIGHT, LEFT)):
            own = known[end]
            files = TunnelFiles(str(own.certificate), str(own.key), known[other].fingerprint)
            self._start(end, [program, "--config", str(self._configured(end, files))])
        for name in self._owners:
            self._companions[RIGHT].wait_for(name, "a tunnel that carries", partial(self._not_carrying, name), _READY_S)
        for own in known.values():
            own.forget()  # both ends have read it, and never do it again
        configure_routers(self._functions, self._fabric)

    def _configured(self, end: End, files: TunnelFiles) -> Path:
        file = self._companions[end].folder / "openvpn.conf"
        file.write_text(configuration(end, files, self._fabric.mtu), encoding="ascii")
        return file

    def _start(self, end: End, argv: Sequence[str]) -> None:
        """Start an end of every tunnel, and route into it. It listens when this returns: the other one finds it."""
        companions = self._companions[end]
        for name in self._owners:
            companions.start(name, argv)
        for function in self._functions:
            companions.wait_for(
                function.name, f"an open {end.device}", partial(self._not_open, function.name, end), _READY_S
            )
            index = self._fabric.run_inside(function.name, partial(socket.if_nametoindex, end.device))
            port = function.left if end is LEFT else function.right
            requests = (*device_up(end, index, self._fabric.mtu), *into(end, index, port.name))
            self._fabric.change(function.name, requests)

    def _not_open(self, name: str, end: End) -> str:
        if end.device not in self._fabric.run_inside(name, _devices):
            return "there is no such device"
        return "" if end.port in self._fabric.run_inside(name, udp_ports) else f"UDP port {end.port} is not open"

    def _not_carrying(self, name: str) -> str:
        """A packet goes into each end at every look, until all those of one look have come out before the next."""
        for companions in self._companions.values():
            if problem := next(companions.problems(), ""):
                raise CsitError(problem)
        now, before = self._counted(name), self._before.get(name, Passed(0, 0))
        self._before[name] = now
        if now - before == _ONE_EACH:
            return ""
        self._fabric.run_inside(name, _send_one_each)
        return f"of {now.came} packets {now.left} came through"

    def affinity(self) -> Mapping[str, frozenset[int]]:
        return self._fabric.affinity(self._owners)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        return self._fabric.counters(self._owners)

    def processed(self) -> Mapping[str, Processed]:
        """Packets that each encrypted and decrypted, and that went into its tunnel and did not come out.

        Raises:
            CsitError: An end has ended.
        """
        return {name: Processed(row.left, max(0, row.came - row.left)) for name, row in self._passed().items()}

    def _passed(self) -> dict[str, Passed]:
        return {name: self._counted(name) - before for name, before in self._before.items()}

    def _counted(self, name: str) -> Passed:
        try:
            return passed(self._fabric.run_inside(name, _devices))
        except KeyError as error:
            raise CsitError(f"{name} has no device {error.args[0]}: that end of its tunnel has ended") from error

    def facts(self) -> Mapping[str, str]:
        """Its version and cipher."""
        if not self._version:
            return {}
        does = f"encrypts each packet by {CIPHER} and decrypts it again, in two processes"
        return {"openvpn": f"{self._version}, {does}"}

    def problems(self) -> tuple[str, ...]:
        """Ends that have ended or moved, ports without thread or carrier, packets that passed a tunnel by."""
        ended = (problem for companions in self._companions.values() for problem in companions.problems())
        found = (*ended, *self._fabric.problems(self._owners))
        try:
            return found or tuple(self._passed_by())
        except CsitError as error:  # one has just lost its device, and is about to end
            return (str(error),)

    def _passed_by(self) -> Iterator[str]:
        for name, row in self._passed().items():
            received = sum(port.rx_packets for port in self._fabric.counters([name]).values())
            if row.came < _TAKEN_IN * received - _FEW:
                yield f"{name} received {received} packets, and only {row.came} went into its tunnel"

    def stop(self) -> None:
        """End all of them; their devices and keys go with them. Safe to call at any time and more than once."""
        self._before = {}
        with ExitStack() as stack:
            for companions in self._companions.values():
                stack.callback(companions.stop)


def _devices() -> dict[str, list[str]]:
    """The columns of /proc/net/dev by interface, of the calling thread's namespace."""
    return interface_numbers(Path("/proc/thread-self/net/dev").read_text(encoding="ascii"))


def _send_one_each() -> None:
    """A packet into each device of the calling thread's namespace, which has no routes yet: it goes no further."""
    for end in ENDS:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, end.device.encode())
            sender.sendto(b"", _NOWHERE)


def make(_: DutNode, context: DriverContext, row: Sequence[NfPlan]) -> OpenVpns:
    """Make the driver of NFs on a node."""
    ends = (context.companions(f"openvpn-{side}") for side in ("left", "right"))
    return OpenVpns(row, context.fabric, *ends)
