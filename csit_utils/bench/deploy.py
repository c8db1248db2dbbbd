"""Deploying and removing 100 NFs, against one `ip` command per object."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

from resources.libraries.python.drivers.function.linux_router import LinuxRouters
from resources.libraries.python.drivers.host import namespaces, ports, threads
from resources.libraries.python.drivers.host.cpu import discover
from resources.libraries.python.drivers.host.fabric import Fabric
from resources.libraries.python.drivers.host.netlink import Netlink
from resources.libraries.python.drivers.host.ownership import MachineLock
from resources.libraries.python.drivers.host.preflight import check
from resources.libraries.python.drivers.host.syscalls import CLONE_NEWNET, aside, unshare
from resources.libraries.python.drivers.host.waiting import wait_until
from resources.libraries.python.drivers.switch.linux_bridge import LinuxBridge
from resources.libraries.python.errors import CommandFailed, Unsupported
from resources.libraries.python.model.cell import Cell, ServiceType
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan, Port
from resources.libraries.python.planning.names import GENERATOR, VSWITCH
from resources.libraries.python.planning.plan import make_plan

_TOPOLOGY = Path(__file__).parents[2] / "topologies" / "local.yaml"
_ROUNDS = 3
_PREFIX = "peer-"
"""The peer's namespaces have names of their own, so that neither side ever takes the other's for its own."""
_QUICK_S, _QUICK_TIMES = 0.01, 5
"""The kernel is done with a removal when so many new namespaces in a row are made as quickly as that."""

Argv = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """One round of one side, in seconds."""

    deploy_s: float
    """Until every port has its pinned data thread and passes packets."""
    remove_s: float
    """Until no namespace has its name and no data thread is left, so that no port is."""
    freeing_s: float
    """How long the kernel then goes on freeing bridges, 17 ms each, and keeps everybody from making new links."""


def measure(rounds: int = _ROUNDS) -> dict[str, Any]:
    """Deploy and remove a CSC 10R10C, our way and by `ip` commands in turns; medians of all rounds.

    Both sides make the same objects with the same settings. The peer gets the benefit of every doubt: it makes an
    object and brings it up in one command, sets all sysctls of a namespace in one and all its data threads in one, and
    sets offloads, affinity and priority by system calls, not by `ethtool`, `taskset` and `chrt`.

    Returns:
        `ours` and `peer` in seconds, deploying and removing; `ratio`: times faster; `detail` with the parts.

    Raises:
        Unsupported: Not root, no `ip`, or this machine lacks something.
        CsitError: Somebody else uses the machine, or the kernel refused something.
    """
    problems = check()
    if problems or not shutil.which("ip"):
        raise Unsupported("; ".join(map(str, problems)) or "the command ip (iproute2) is not installed")
    cell = Cell(service_type=ServiceType.CSC, nf_chains=10, nf_nodes=10)
    plan = make_plan(load_topology(_TOPOLOGY), cell, discover())
    ours, peer = [], []
    with MachineLock() as machine:
        machine.remove_leftovers()
        for _ in range(rounds):
            ours.append(_timed(_Ours(plan, machine)))
            peer.append(_timed(_Peer(plan, machine)))
    return _figures(ours, peer)


def _figures(ours: list[Times], peer: list[Times]) -> dict[str, Any]:
    def middle(rows: list[Times], of: Callable[[Times], float]) -> float:
        return round(median(map(of, rows)), 4)

    def both(times: Times) -> float:
        return times.deploy_s + times.remove_s

    def all_three(times: Times) -> float:
        return both(times) + times.freeing_s

    sides = {"ours": ours, "peer": peer}
    parts = {
        f"{side}_{part}": middle(rows, attrgetter(part)) for side, rows in sides.items() for part in Times.__slots__
    }
    with_freeing = round(middle(peer, all_three) / middle(ours, all_three), 2)
    return {
        "name": "deploy_10x10",
        "ours": middle(ours, both),
        "peer": middle(peer, both),
        "ratio": round(middle(peer, both) / middle(ours, both), 2),
        "unit": "s",
        "note": (
            f"until names, ports and threads are gone; ours leaves {parts['ours_freeing_s']:.2f} s of freeing "
            f"bridges to the kernel, for which the peer waits: with that counted for both, {with_freeing} x"
        ),
        "detail": {
            **parts,
            "deploy_ratio": round(parts["peer_deploy_s"] / parts["ours_deploy_s"], 2),
            "ratio_with_freeing": with_freeing,
            "rounds": len(ours),
        },
    }


class _Ours:
    def __init__(self, plan: Plan, machine: MachineLock) -> None:
        self._fabric = Fabric(plan, machine)
        self._parts = (self._fabric, LinuxBridge(plan, self._fabric), LinuxRouters(plan.functions, self._fabric))

    def deploy(self) -> None:
        for part in self._parts:
            part.start()

    def remove(self) -> None:
        for part in reversed(self._parts):
            part.stop()


class _Peer:
    """The same objects by commands, one after the other."""

    def __init__(self, plan: Plan, machine: MachineLock) -> None:
        self._plan = plan
        self._machine = machine
        self._owners = (GENERATOR, VSWITCH, *(function.name for function in plan.functions))
        self._names = tuple(map(_named, self._owners))
        self._threads: dict[str, int] = {}

    def deploy(self) -> None:
        self._machine.claim_namespaces(self._names)
        for argv in (*self._spaces(), *self._links(), *self._switch(), *self._routers()):
            _run(argv)
        for owner in self._owners:
            namespaces.run_inside(_named(owner), partial(self._set_offloads, owner))
        for argv in self._data_threads():
            _run(argv)
        ends = [port for link in self._plan.links for port in (link.a, link.b)]
        self._threads = threads.find(port.interface for port in ends)
        for port in ends:
            threads.pin(self._threads[port.interface], self._plan.cores.cpus(port.owner)[port.data_thread])
            threads.make_realtime(self._threads[port.interface])

    def remove(self) -> None:
        for name in self._names:
            if namespaces.inode(name) is not None:
                _run(("ip", "netns", "del", name))
        threads.wait_gone(self._threads)
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
                ports.receive_by_napi(netlink, port.interface)
        finally:
            netlink.close()

    def _data_threads(self) -> Iterator[Argv]:
        for owner in self._owners:
            files = [f"/sys/class/net/{port.interface}/threaded" for port in self._plan.ports(owner)]
            # tee writes them all in one command; `ip netns exec` shows it the namespace's own /sys.
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


def _timed(side: _Ours | _Peer) -> Times:
    _settle()
    with ExitStack() as cleanup:
        cleanup.callback(side.remove)
        begin = time.monotonic()
        side.deploy()
        deployed = time.monotonic()
        cleanup.pop_all()
        side.remove()
        removed = time.monotonic()
    return Times(deployed - begin, removed - deployed, _settle())


def _settle() -> float:
    """Wait until the kernel has freed what was removed before; return how long it took in seconds."""
    begin = time.monotonic()
    row: list[bool] = []

    def missing() -> str:
        before = time.monotonic()
        aside(lambda: unshare(CLONE_NEWNET))
        took = time.monotonic() - before
        row.append(took < _QUICK_S)
        return "" if all(row[-_QUICK_TIMES:]) and len(row) >= _QUICK_TIMES else f"a new namespace took {took:.3f} s"

    wait_until("end of the kernel's work on what was removed", missing, 60.0, pause_s=0.02)
    return time.monotonic() - begin


def _run(argv: Argv) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, input="1")
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr)


def _named(owner: str) -> str:
    return f"{_PREFIX}{namespaces.name_of(owner)}"


def _inside(port: Port) -> Argv:
    return ("ip", "-n", _named(port.owner))
