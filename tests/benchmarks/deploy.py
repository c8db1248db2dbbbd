"""Deployment and removal of 100 NFs, against one `ip` command per object.

The peer makes the same objects with the same settings, and gets every advantage: one command makes an object and brings
it up, one sets all sysctls of a namespace, one enables all its data threads; offloads, affinity and priority are set by
system calls instead of `ethtool`, `taskset` and `chrt`.
"""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.linux_router.driver import LinuxRouters
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, unshare
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.preflight import check
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vswitches.linux_bridge.driver import LinuxBridge
from resources.libraries.python.errors import CommandFailed, Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan, Port
from resources.libraries.python.model.request.cell import Cell, Dimensions, ServiceType
from resources.libraries.python.paths import LOCAL_TOPOLOGY
from resources.libraries.python.planning.names import GENERATOR, VSWITCH
from resources.libraries.python.planning.plan import make_plan

_PREFIX = "peer-"
"""Of the peer's namespaces, to keep the two sides apart."""

Argv = tuple[str, ...]


class Peer:
    """Deployment of a plan by `ip` commands, one after the other."""

    def __init__(self, plan: Plan, machine: MachineLock) -> None:
        self._plan = plan
        self._machine = machine
        self._owners = (GENERATOR, VSWITCH, *(function.name for function in plan.functions))
        self._names = tuple(map(_named, self._owners))
        self._threads: dict[str, int] = {}

    def deploy(self) -> None:
        """Make all objects; return when every data thread is pinned."""
        self._machine.claim_namespaces(self._names)
        for argv in (*self._spaces(), *self._links(), *self._switch(), *self._routers()):
            _run(argv)
        for owner in self._owners:
            namespaces.run_inside(_named(owner), partial(self._set_offloads, owner))
        for argv in self._data_threads():
            _run(argv)
        ends = [port for link in self._plan.links for port in (link.a, link.b)]
        self._threads = data_threads.find(port.interface for port in ends)
        for port in ends:
            data_threads.pin(self._threads[port.interface], self._plan.cores.cpus(port.owner)[port.data_thread])
            data_threads.make_realtime(self._threads[port.interface])

    def remove(self) -> None:
        """Remove all namespaces; return when no data thread is left."""
        for name in self._names:
            if namespaces.inode(name) is not None:
                _run(("ip", "netns", "del", name))
        data_threads.wait_gone(self._threads)
        self._machine.release_namespaces(self._names)

    def _spaces(self) -> Iterator[Argv]:
        for owner in self._owners:
            settings = [f"{key.replace('/', '.')}={value}" for key, value in _sysctls(owner).items()]
            yield ("ip", "netns", "add", _named(owner))
            yield ("ip", "netns", "exec", _named(owner), "sysctl", "-qwe", *(f"net.{each}" for each in settings))

    def _links(self) -> Iterator[Argv]:
        for link in self._plan.links:
            here = _inside(link.a)
            near = ("name", link.a.interface, "address", link.a.mac, "mtu", "1500")
            far = ("name", link.b.interface, "address", link.b.mac, "mtu", "1500", "netns", _named(link.b.owner))
            yield (*here, "link", "add", *near, "type", "veth", "peer", *far)
            for port in (link.a, link.b):
                if port.owner != VSWITCH:
                    yield (*_inside(port), "link", "set", port.interface, "up")

    def _switch(self) -> Iterator[Argv]:
        here = ("ip", "-n", _named(VSWITCH))
        for segment in self._plan.segments:
            options = ("stp_state", "0", "mcast_snooping", "0", "ageing_time", "60480000")
            yield (*here, "link", "add", segment.name, "up", "type", "bridge", *options)
            for member in segment.members:
                yield (*here, "link", "set", member, "up", "master", segment.name)

    def _routers(self) -> Iterator[Argv]:
        for function in self._plan.functions:
            here = ("ip", "-n", _named(function.name))
            for interface in (function.left, function.right):
                hop, name = interface.route, interface.name
                yield (*here, "address", "add", interface.address, "dev", name)
                yield (*here, "neighbour", "add", hop.address, "lladdr", hop.mac, "dev", name, "nud", "permanent")
                yield (*here, "route", "add", hop.prefix, "via", hop.address, "dev", name)

    def _set_offloads(self, owner: str) -> None:
        netlink = Netlink()
        try:
            for port in self._plan.ports(owner):
                data_threads.receive_by_napi(netlink, port.interface)
        finally:
            netlink.close()

    def _data_threads(self) -> Iterator[Argv]:
        for owner in self._owners:
            files = [f"/sys/class/net/{port.interface}/threaded" for port in self._plan.ports(owner)]
            # One tee writes to all files; `ip netns exec` mounts the namespace's own /sys.
            yield ("ip", "netns", "exec", _named(owner), "tee", *files)


def _sysctls(owner: str) -> dict[str, str]:
    settings = {
        "ipv6/conf/all/disable_ipv6": "1",
        "ipv6/conf/default/disable_ipv6": "1",
        "ipv4/conf/all/rp_filter": "0",
        "ipv4/conf/default/rp_filter": "0",
        "ipv4/conf/all/send_redirects": "0",
        "ipv4/conf/default/send_redirects": "0",
    }
    return settings if owner in (GENERATOR, VSWITCH) else {"ipv4/ip_forward": "1", **settings}


def _run(argv: Argv) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, input="1")
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr)


def _named(owner: str) -> str:
    return f"{_PREFIX}{namespaces.name_of(owner)}"


def _inside(port: Port) -> Argv:
    return ("ip", "-n", _named(port.owner))


_ROUNDS = 3
_QUICK_S, _QUICK_TIMES = 0.01, 5
"""The kernel has finished a removal when `_QUICK_TIMES` new namespaces in a row take less than `_QUICK_S` each."""


@dataclass(frozen=True, slots=True)
class RoundTimes:
    """Times of one round of one side, in seconds."""

    deploy_s: float
    """Until every port has its pinned data thread and passes packets."""
    remove_s: float
    """Until no namespace has its name and no data thread is left, so that no port is."""
    freeing_s: float
    """Time after that in which the kernel frees bridges, 17 ms each, and blocks the creation of links."""


def measure(rounds: int = _ROUNDS, side: int = 10) -> dict[str, Any]:
    """Deploy and remove a CSC 10R10C by this project and by `ip` commands, in turns; return medians in seconds."""
    problems = check()
    if problems or not shutil.which("ip"):
        raise Unsupported("; ".join(map(str, problems)) or "the command ip (iproute2) is not installed")
    cell = Cell(service_type=ServiceType.CSC, **Dimensions(side, side).columns)
    plan = make_plan(load_topology(LOCAL_TOPOLOGY), cell, discover())
    ours, peer = [], []
    with MachineLock() as machine:
        machine.remove_leftovers()
        for _ in range(rounds):
            ours.append(_timed(_Ours(plan, machine)))
            peer.append(_timed(Peer(plan, machine)))
    return _figures(ours, peer)


def _figures(ours: list[RoundTimes], peer: list[RoundTimes]) -> dict[str, Any]:
    def middle(rows: list[RoundTimes], *parts: str) -> float:
        return median(sum(getattr(row, part) for part in parts) for row in rows)

    whole, freeing = ("deploy_s", "remove_s"), "freeing_s"
    with_freeing = middle(peer, *whole, freeing) / middle(ours, *whole, freeing)
    return {
        "ours": middle(ours, *whole),
        "peer": middle(peer, *whole),
        "ratio": middle(peer, *whole) / middle(ours, *whole),
        "unit": "s",
        "note": f"peer is ip (iproute2); until names, ports and threads are gone; the kernel frees bridges for "
        f"{middle(ours, freeing):.2f} s after ours, the peer waits for that: {with_freeing:.2f} x with that for both",
    }


class _Ours:
    def __init__(self, plan: Plan, machine: MachineLock) -> None:
        self._fabric = Fabric(plan, machine)
        context = DriverContext(plan, self._fabric, machine, largest_frame_bytes=1518)
        routers = LinuxRouters(load_topology(LOCAL_TOPOLOGY).dut, context, plan.functions)
        self._parts = (self._fabric, LinuxBridge(plan, self._fabric), routers)

    def deploy(self) -> None:
        for part in self._parts:
            part.start()

    def remove(self) -> None:
        for part in reversed(self._parts):
            part.stop()


def _timed(side: _Ours | Peer) -> RoundTimes:
    _settle()
    with ExitStack() as cleanup:
        cleanup.callback(side.remove)
        begin = time.monotonic()
        side.deploy()
        deployed = time.monotonic()
        cleanup.pop_all()
        side.remove()
        removed = time.monotonic()
    return RoundTimes(deployed - begin, removed - deployed, _settle())


def _settle() -> float:
    """Wait until the kernel has freed all removed objects; return the waiting time in seconds."""
    begin = time.monotonic()
    row: list[bool] = []

    def missing() -> str:
        before = time.monotonic()
        aside(lambda: unshare(CLONE_NEWNET))
        took = time.monotonic() - before
        row.append(took < _QUICK_S)
        return "" if all(row[-_QUICK_TIMES:]) and len(row) >= _QUICK_TIMES else f"a new namespace took {took:.3f} s"

    wait_until("the kernel to free removed objects", missing, 60.0, pause_s=0.02)
    return time.monotonic() - begin
