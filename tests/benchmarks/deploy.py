"""Deployment and removal of 100 NFs, against one `ip` command per object.

The peer makes the same objects with the same settings, and gets every advantage: one command makes an object and brings
it up, one sets all sysctls of a namespace, one enables all its data threads; offloads, affinity and priority are set by
system calls instead of `ethtool`, `taskset` and `chrt`.
"""

import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from resources.libraries.python.drivers.host.cpu.data_threads import DataThreads, receive_by_napi
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, unshare
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CommandFailed, Unsupported
from resources.libraries.python.model.plan import Plan, Port
from resources.libraries.python.planning.names import GENERATOR, VSWITCH
from resources.libraries.python.testbed.deployment.cell import Deployment
from resources.libraries.python.testbed.deployment.parts import ABSENT
from tests.benchmarks.local_cell import local_cell
from tests.benchmarks.sides import figures, in_turns

_SYSCTLS = (
    "net.ipv6.conf.all.disable_ipv6=1",
    "net.ipv6.conf.default.disable_ipv6=1",
    "net.ipv4.conf.all.rp_filter=0",
    "net.ipv4.conf.default.rp_filter=0",
    "net.ipv4.conf.all.send_redirects=0",
    "net.ipv4.conf.default.send_redirects=0",
)


@contextmanager
def _by_commands(plan: Plan, lock: MachineLock) -> Iterator[None]:
    """Deploy a plan until every data thread is pinned, and remove it until no data thread is left."""
    ports = {owner: plan.ports(owner) for owner in (GENERATOR, VSWITCH, *(each.name for each in plan.functions))}
    names = tuple(map(_named, ports))
    threads = DataThreads()
    lock.claim_namespaces(names)
    try:
        for argv in _commands(plan, ports):
            _run(argv)
        for owner, row in ports.items():
            namespaces.run_inside(_named(owner), partial(_set_offloads, row))
        for owner, row in ports.items():
            files = [f"/sys/class/net/{port.interface}/threaded" for port in row]
            # One tee writes to all files; `ip netns exec` mounts the namespace's own /sys.
            _run(("ip", "netns", "exec", _named(owner), "tee", *files))
        threads.place(ports, plan.cores, {})
        yield
    finally:
        for name in names:
            if namespaces.inode(name) is not None:
                _run(("ip", "netns", "del", name))
        threads.wait_gone()
        lock.release_namespaces(names)


def _commands(plan: Plan, owners: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Make namespaces, links, bridges, and the addresses and routes of NFs."""
    for owner in owners:
        forward = () if owner in (GENERATOR, VSWITCH) else ("net.ipv4.ip_forward=1",)
        yield ("ip", "netns", "add", _named(owner))
        yield ("ip", "netns", "exec", _named(owner), "sysctl", "-qwe", *forward, *_SYSCTLS)
    for link in plan.links:
        near = ("name", link.a.interface, "address", link.a.mac, "mtu", "1500")
        far = ("name", link.b.interface, "address", link.b.mac, "mtu", "1500", "netns", _named(link.b.owner))
        yield ("ip", "-n", _named(link.a.owner), "link", "add", *near, "type", "veth", "peer", *far)
        for port in (link.a, link.b):
            if port.owner != VSWITCH:
                yield ("ip", "-n", _named(port.owner), "link", "set", port.interface, "up")
    for segment in plan.segments:
        here = ("ip", "-n", _named(VSWITCH), "link")
        options = ("stp_state", "0", "mcast_snooping", "0", "ageing_time", "60480000")
        yield (*here, "add", segment.name, "up", "type", "bridge", *options)
        for member in segment.members:
            yield (*here, "set", member, "up", "master", segment.name)
    for function in plan.functions:
        here = ("ip", "-n", _named(function.name))
        for interface in (function.left, function.right):
            hop, name = interface.route, interface.name
            yield (*here, "address", "add", interface.address, "dev", name)
            yield (*here, "neighbour", "add", hop.address, "lladdr", hop.mac, "dev", name, "nud", "permanent")
            yield (*here, "route", "add", hop.prefix, "via", hop.address, "dev", name)


def _set_offloads(ports: Sequence[Port]) -> None:
    with closing(Netlink()) as netlink:
        for port in ports:
            receive_by_napi(netlink, port.interface)


def _run(argv: tuple[str, ...]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, input="1")
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr)


def _named(owner: str) -> str:
    """Name of the peer's namespace, to keep the two sides apart."""
    return f"peer-{namespaces.name_of(owner)}"


_QUICK_S, _QUICK_TIMES = 0.01, 5
"""The kernel has finished a removal when `_QUICK_TIMES` new namespaces in a row take less than `_QUICK_S` each."""


class _Times(NamedTuple):
    """Times of one round of one side, in seconds."""

    whole_s: float
    """Until every port has its pinned data thread and passes packets, and again until no namespace has its name and no
    data thread is left, so that no port is."""
    freeing_s: float
    """Time after that in which the kernel frees bridges, 17 ms each, and blocks the creation of links."""


def measure(rounds: int = 3, side: int = 10) -> dict[str, Any]:
    """Deploy and remove a CSC 10R10C by this project and by `ip` commands, in turns; return medians in seconds."""
    if not shutil.which("ip"):
        raise Unsupported("the command ip (iproute2) is not installed")
    with local_cell(side) as (plan, lock, parts):
        sides = {
            "ours": lambda: _timed(Deployment(plan, replace(parts(), generator=ABSENT[2]))),
            "peer": lambda: _timed(_by_commands(plan, lock)),
        }
        ours, peer = in_turns(rounds, sides).values()
    ours_s, peer_s = (median(each.whole_s for each in rows) for rows in (ours, peer))
    with_freeing = median(map(sum, peer)) / median(map(sum, ours))
    note = (
        "peer is ip (iproute2); until names, ports and threads are gone; the kernel frees bridges for "
        f"{median(each.freeing_s for each in ours):.2f} s after ours, the peer waits for that: {with_freeing:.2f} x "
        "with that for both"
    )
    return figures(ours_s, peer_s, "s", note, ratio=peer_s / ours_s)


def _timed(side: AbstractContextManager[object]) -> _Times:
    _settle()
    begin = time.monotonic()
    with side:
        pass
    return _Times(time.monotonic() - begin, _settle())


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
