"""Network functions as a tunnel with both ends in one network namespace, whatever encrypts.

Each port has a routing table of its own, which sends packets into the tunnel.
"""

import errno
import os
import socket
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import AF_INET

from pyroute2.netlink.rtnl import RTM_NEWLINK, RTM_NEWROUTE, RTM_NEWRULE, RTM_SETLINK, rt_proto, rt_scope, rt_type
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.namespace_functions import NamespaceFunctions, passed_by
from resources.libraries.python.drivers.generators.builtin.counters import interface_numbers
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, unshare
from resources.libraries.python.drivers.host.links.netlink import CREATE_NEW, Netlink, Request
from resources.libraries.python.drivers.host.links.routing import configure_routers
from resources.libraries.python.drivers.host.links.rtnetlink_messages import encoded, set_up
from resources.libraries.python.drivers.host.programs.disturbances import Steps, process_steps
from resources.libraries.python.drivers.host.programs.namespace_programs import problems_at_an_end
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.host.sockets.socket_tables import udp_ports
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.testbed.nodes import DutNode

READY_S = 30.0
_FEW = 2000
"""Packets that may be the system's own, or wait in the queues of both devices, 500 each, where they do not count."""
TUN = Path("/dev/net/tun")
_NOWHERE = ("192.0.2.1", 9)
"""An address for documentation (RFC 5737), and the port of discard."""
WITHIN_S = 15.0
"""For a program that sets a tunnel up."""
_RX_PACKETS, _TX_PACKETS, _TX_DROPPED = 1, 9, 11
"""Columns of /proc/net/dev."""
_LOOPBACK = 1
_LAST_RESORT = 4096
"""A metric: of two routes the one with the lower is taken."""
_TO_TABLE = 1
"""FR_ACT_TO_TBL."""


@dataclass(frozen=True, slots=True)
class TunnelEnd:
    """One of the two ends of a tunnel."""

    device: str
    role: str
    """In the handshake, where the ends have different ones."""
    port: int
    """UDP, of loopback."""
    table: int
    """Table of the routes of packets that arrive on its side."""


@dataclass(frozen=True, slots=True)
class TunnelCounters:
    """Packets of a tunnel, both ways together, since it was made."""

    came: int
    """Into its devices, those included that found no room there."""
    left: int
    """Out of its devices: encrypted and decrypted."""

    def __sub__(self, earlier: "TunnelCounters") -> "TunnelCounters":
        """Counts since `earlier`."""
        return TunnelCounters(self.came - earlier.came, self.left - earlier.left)


def passed(numbers: Mapping[str, Sequence[str]], devices: Iterable[str]) -> TunnelCounters:
    """Packets of a tunnel.

    `numbers`: the columns of /proc/net/dev by interface.

    Raises:
        KeyError: A device of it is gone.
    """
    rows = [list(map(int, numbers[device])) for device in devices]
    came = sum(row[_TX_PACKETS] + row[_TX_DROPPED] for row in rows)
    return TunnelCounters(came, sum(row[_RX_PACKETS] for row in rows))


def tunnel_device(device: str, kind: str, data: Sequence[tuple[str, int]] = ()) -> Request:
    """Make a device of a kind that encrypts in the kernel."""
    info: list[tuple[str, object]] = [("IFLA_INFO_KIND", kind), ("IFLA_INFO_DATA", {"attrs": list(data)})]
    attrs = [("IFLA_IFNAME", device), ("IFLA_LINKINFO", {"attrs": info if data else info[:1]})]
    return Request(RTM_NEWLINK, CREATE_NEW, encoded(ifinfmsg, {}, attrs), f"make {device}")


def kernel_makes(*requests: Request, work: Callable[[], object] = lambda: None) -> bool:
    """Whether this kernel takes some requests, tried in a network namespace that is gone afterwards.

    `requests`: such as for a device of a kind that may be a module, which is then loaded.
    """

    def attempt() -> None:
        unshare(CLONE_NEWNET)
        netlink = Netlink()
        try:
            netlink.do(requests)
            work()
        finally:
            netlink.close()

    try:
        aside(attempt)
    except (CsitError, OSError):
        return False
    return True


def into(end: TunnelEnd, index: int, port: str) -> Iterator[Request]:
    """Route all that arrives at a port into an end's device, and nowhere else: not past it when it is gone.

    What comes out of a device did not arrive at a port, and so is routed as usual.

    `port`: the interface where packets arrive.
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


class Tunnels(NamespaceFunctions[NfPlan]):
    """NFs that encrypt packets and decrypt them again.

    What arrives at the left port is routed into the left end, crosses loopback encrypted, and leaves from the right end
    by the routes that any NF has; the other way round alike. Subclasses make the ends.

    `node, context, functions`: See `NamespaceFunctions`.
    `program`: Kind of NF whose ends are programs; empty where the kernel has both.
    """

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan], program: str = "") -> None:
        super().__init__(node, context, functions)
        self._in_kernel = not program
        self._companions = tuple(context.companions(f"{program}-{side}") for side in ("left", "right") if program)
        """Run the left and the right ends."""
        self._before: dict[str, TunnelCounters] = {}

    @abstractmethod
    def ends(self, name: str) -> tuple[TunnelEnd, TunnelEnd]:
        """The left and the right end of the tunnel of an NF."""

    @abstractmethod
    def make(self) -> str:
        """Make both ends of all tunnels and route into them; return name and version of what encrypts.

        Raises:
            CsitError: An end does not take its configuration or has ended, or the kernel refused something.
        """

    def start(self) -> None:
        """Make all tunnels, and wait until packets come through each; then give NFs their routes.

        Raises:
            Unsupported: Something is missing.
            CsitError: As `make`; of an end that has ended the text has its last words.
            NotReady: A tunnel does not carry packets in time.
        """
        self._check_requirements()
        for name in self._owners:
            self._fabric.change(name, [set_up("lo", _LOOPBACK)])  # over which the ends reach each other
        self._version = self.make()
        for name in self._owners:
            self._wait_for(name, -1, "a tunnel that carries", partial(self._not_carrying, name))
        configure_routers(self._functions, self._fabric)

    def not_open(self, name: str, end: TunnelEnd) -> str:
        """Missing part of an end that is not reachable yet: its device, or its port."""
        if end.device not in self._fabric.run_inside(name, devices_here):
            return "there is no such device"
        return "" if end.port in self._fabric.run_inside(name, udp_ports) else f"UDP port {end.port} is not open"

    def _route_into(self, function: NfPlan, side: int) -> None:
        """Bring the device of an end up, and route into it what arrives at the port of its side.

        `side`: 0 for the left end, 1 for the right one.
        """
        end = self.ends(function.name)[side]
        index = self._fabric.run_inside(function.name, partial(socket.if_nametoindex, end.device))
        port = (function.left, function.right)[side]
        body = encoded(ifinfmsg, {"index": index}, [("IFLA_MTU", self._fabric.mtu)])
        larger = Request(RTM_SETLINK, 0, body, f"give {end.device} an MTU of {self._fabric.mtu}")
        self._fabric.change(function.name, [larger, set_up(end.device, index), *into(end, index, port.name)])

    def _wait_for(self, name: str, side: int, what: str, missing: Callable[[], str]) -> None:
        """Wait for a fact that an end of an NF's tunnel brings about: a program, or the kernel."""
        if self._in_kernel:
            wait_until(f"{what} of {name}", missing, READY_S)
        else:
            self._companions[side].wait_for(name, what, missing, READY_S)

    def _not_carrying(self, name: str) -> str:
        """A packet goes into each end at every look, until all those of one look have come out before the next."""
        for companions in self._companions:
            if problem := next(companions.problems(), ""):
                raise CsitError(problem)
        now, before = self._counted(name), self._before.get(name, TunnelCounters(0, 0))
        self._before[name] = now
        if now - before == TunnelCounters(2, 2):
            return ""
        self._fabric.run_inside(name, partial(_send_one_each, self._devices_of(name)))
        return f"of {now.came} packets {now.left} came through"

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        if target not in self._owners:
            return None
        if self._in_kernel:
            raise Unsupported(f"{target} cannot be hit by '{event}': its tunnel is in the kernel, not in a process")
        return process_steps(event, target, lambda: [each.pids()[target] for each in self._companions])

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """Packets that each encrypted and decrypted, and that went into its tunnel and did not come out.

        Raises:
            CsitError: An end has ended.
        """
        return {name: ProcessedPackets(row.left, max(0, row.came - row.left)) for name, row in self._passed().items()}

    def _passed(self) -> dict[str, TunnelCounters]:
        return {name: self._counted(name) - before for name, before in self._before.items()}

    def _devices_of(self, name: str) -> tuple[str, ...]:
        return tuple(end.device for end in self.ends(name))

    def _counted(self, name: str) -> TunnelCounters:
        try:
            return passed(self._fabric.run_inside(name, devices_here), self._devices_of(name))
        except KeyError as error:
            raise CsitError(f"{name} has no device {error.args[0]}: that end of its tunnel has ended") from error

    def problems(self) -> tuple[str, ...]:
        """Ends that have ended or moved, ports without thread or carrier, packets that passed a tunnel by."""
        ended = (problem for companions in self._companions for problem in companions.problems())
        found = (*ended, *super().problems())
        try:
            return found or tuple(self._passed_by())
        except CsitError as error:  # one has just lost its device
            return problems_at_an_end(self._companions) or (str(error),)

    def _passed_by(self) -> Iterator[str]:
        for name, row in self._passed().items():
            ports = self._fabric.counters([name]).values()
            received, sent = self._received(name), sum(port.tx_packets for port in ports)
            # The kernel does not count packets that its queues have no room for.
            if self._in_kernel and passed_by(row.left, sent, few=_FEW):
                yield f"{name} sent {sent:,} packets, and only {row.left:,} came out of its tunnel"
            if not self._in_kernel and passed_by(row.came, received, few=_FEW):
                yield f"{name} received {received:,} packets, and only {row.came:,} went into its tunnel"

    def stop(self) -> None:
        """End all of them; their devices and keys go with them."""
        super().stop()
        self._before = {}
        with ExitStack() as stack:
            for companions in self._companions:
                stack.callback(companions.stop)


def no_tun(needed_for: str) -> Iterator[PreflightProblem]:
    """Requirements of devices whose packets a program reads, as far as this machine lacks them.

    `needed_for`: Ends the sentence: `for NFs of kind openvpn`.
    """
    try:
        os.close(os.open(TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        fix = "load the driver: modprobe tun; in a container: --device /dev/net/tun"
        yield PreflightProblem(f"{TUN} cannot be opened {needed_for} ({error.strerror})", fix)


def version(path: str) -> str:
    """Name and version that a program reports: `OpenVPN 2.6.14`.

    Raises:
        CsitError: It cannot be run.
    """
    return " ".join(completed([path, "--version"], WITHIN_S, check=False).stdout.split()[:2])


def devices_here() -> dict[str, list[str]]:
    """The columns of /proc/net/dev by interface, of the calling thread's namespace."""
    return interface_numbers(Path("/proc/thread-self/net/dev").read_text(encoding="ascii"))


def _send_one_each(devices: Iterable[str]) -> None:
    """A packet into each of some devices of the calling thread's namespace, whose routes end there so far."""
    for device in devices:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            try:
                sender.sendto(b"", _NOWHERE)
            except OSError as error:
                if error.errno != errno.EDESTADDRREQ:  # the kernel's end learns its peer's address by the handshake
                    raise
