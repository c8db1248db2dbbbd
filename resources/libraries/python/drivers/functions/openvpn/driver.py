"""Network functions as an OpenVPN tunnel with both ends in one network namespace.

Each port has a routing table of its own, which sends packets into the tunnel. The ends authenticate by keys that are
generated at each start.
"""

import hashlib
import os
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import AF_INET

from pyroute2.netlink.rtnl import RTM_NEWROUTE, RTM_NEWRULE, RTM_SETLINK, rt_proto, rt_scope, rt_type
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.openvpn.configuration import (
    CIPHER,
    ENDS,
    LEFT,
    RIGHT,
    Passed,
    TunnelEnd,
    TunnelFiles,
    configuration,
    passed,
)
from resources.libraries.python.drivers.generators.builtin.counters import interface_numbers
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.netlink import CREATE_NEW, Request
from resources.libraries.python.drivers.host.links.routing import configure_routers
from resources.libraries.python.drivers.host.links.rtnetlink_messages import encoded, set_up
from resources.libraries.python.drivers.host.ownership.preflight import PreflightProblem
from resources.libraries.python.drivers.host.programs.disturbances import Disturbed, Steps, process_steps
from resources.libraries.python.drivers.host.programs.installed import path_of
from resources.libraries.python.drivers.host.programs.namespace_programs import Companions
from resources.libraries.python.drivers.host.sockets.listeners import udp_ports
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, Unsupported
from resources.libraries.python.model.counters import InterfaceCounters, Processed
from resources.libraries.python.model.disturbance import PartEvent
from resources.libraries.python.model.kinds import NfKind
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


_LOOPBACK = 1
_LAST_RESORT = 4096
"""A metric: of two routes the one with the lower is taken."""
_TO_TABLE = 1
"""FR_ACT_TO_TBL."""


_DAYS = "3650"
"""Longer than any run."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate that is signed by itself, and its key."""

    certificate: Path
    key: Path
    """Mode 0600."""
    fingerprint: str
    """SHA-256 of the certificate as `AA:BB:...`."""

    def forget(self) -> None:
        """Remove the key file; programs that have read it keep the key."""
        self.key.unlink(missing_ok=True)


def make_identity(openssl: str, folder: Path) -> Identity:
    """Make one.

    Args:
        openssl: The program.
        folder: Where its files go.

    Raises:
        CommandFailed: The program failed.
        NotReady: It did not end.
        CsitError: It cannot be run.
    """
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    key.touch(mode=0o600)
    argv = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256"]
    argv += ["-days", _DAYS, "-subj", "/CN=csit", "-keyout", str(key), "-out", str(certificate)]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN_S, check=False)
    except OSError as error:
        raise CsitError(f"{openssl} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise NotReady("a certificate by openssl", _WITHIN_S, "still running") from error
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr.decode(errors="replace"))
    return Identity(certificate, key, fingerprint(certificate.read_text(encoding="ascii")))


def fingerprint(certificate: str) -> str:
    """SHA-256 of a certificate (PEM) as `AA:BB:...`."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).digest().hex(":").upper()


def loopback_up() -> Request:
    """What the ends of a tunnel reach each other by."""
    return set_up("lo", _LOOPBACK)


def device_up(end: TunnelEnd, index: int, mtu: int) -> Iterator[Request]:
    """Let the device of an end take packets.

    Args:
        end: Of the tunnel.
        index: Of its device.
        mtu: Bytes of the largest packet.
    """
    body = encoded(ifinfmsg, {"index": index}, [("IFLA_MTU", mtu)])
    yield Request(RTM_SETLINK, 0, body, f"give {end.device} an MTU of {mtu}")
    yield set_up(end.device, index)


def into(end: TunnelEnd, index: int, port: str) -> Iterator[Request]:
    """Route all that arrives at a port into an end's device, and nowhere else: not past it when it is gone.

    What comes out of a device did not arrive at a port, and so is routed as usual.

    Args:
        end: Of the tunnel, on the side of the port.
        index: Of the end's device.
        port: The interface where packets arrive.
    """
    every = {"family": AF_INET, "dst_len": 0, "table": end.table, "proto": rt_proto["static"]}
    way = {**every, "type": rt_type["unicast"], "scope": rt_scope["link"]}
    body = encoded(rtmsg, way, [("RTA_OIF", index)])
    yield Request(RTM_NEWROUTE, CREATE_NEW, body, f"route into {end.device}")
    body = encoded(rtmsg, {**every, "type": rt_type["blackhole"]}, [("RTA_PRIORITY", _LAST_RESORT)])
    yield Request(RTM_NEWROUTE, CREATE_NEW, body, f"route nowhere without {end.device}")
    rule = {"family": AF_INET, "table": end.table, "action": _TO_TABLE}
    body = encoded(fibmsg, rule, [("FRA_IIFNAME", port)])
    yield Request(RTM_NEWRULE, CREATE_NEW, body, f"route what arrives at {port} by table {end.table}")


class OpenVpns(Disturbed):
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
        known = {end: make_identity(openssl, companions.folder) for end, companions in self._companions.items()}
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

    def _configured(self, end: TunnelEnd, files: TunnelFiles) -> Path:
        file = self._companions[end].folder / "openvpn.conf"
        file.write_text(configuration(end, files, self._fabric.mtu), encoding="ascii")
        return file

    def _start(self, end: TunnelEnd, argv: Sequence[str]) -> None:
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

    def _not_open(self, name: str, end: TunnelEnd) -> str:
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

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        if target not in self._owners:
            return None
        return process_steps(event, target, lambda: [each.pids()[target] for each in self._companions.values()])

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


_FOR = "for NFs of kind openvpn"
_TUN = Path("/dev/net/tun")
_OLDEST = (2, 6)
"""Earlier ones cannot know each other by a fingerprint alone."""
_WITHIN_S = 15.0


def missing() -> Iterator[PreflightProblem]:
    """What this machine lacks."""
    for program in ("openvpn", "openssl"):
        if path_of(program) is None:
            yield PreflightProblem(f"{program} missing {_FOR}", f"install it: apt-get install {program}")
    if (path := path_of("openvpn")) is not None:
        found = version(path)
        if _numbers(found) < _OLDEST:
            yield PreflightProblem(
                f"{found} is too old {_FOR}", "install 2.6 or later: Debian 12 and Ubuntu 24.04 have it"
            )
    try:
        os.close(os.open(_TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        fix = "load the driver: modprobe tun; in a container: --device /dev/net/tun"
        yield PreflightProblem(f"{_TUN} cannot be opened {_FOR} ({error.strerror})", fix)


def version(path: str) -> str:
    """What openvpn says of itself: `OpenVPN 2.6.14`.

    Raises:
        CsitError: It cannot be run.
    """
    try:
        done = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CsitError(f"{path} cannot be run: {error}") from error
    return " ".join(done.stdout.decode(errors="replace").split()[:2])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def missing_on(_: DutNode, __: NfKind) -> Iterator[PreflightProblem]:
    """What this machine lacks for NFs of a node."""
    return missing()
