"""The peer of the benchmark of deployment: the objects of a plan, made by one `ip` command each."""

import subprocess
from collections.abc import Iterator
from functools import partial

from resources.libraries.python.drivers.host.cpu import data_threads, rx_threads
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import CommandFailed
from resources.libraries.python.model.plan import Plan, Port
from resources.libraries.python.planning.names import GENERATOR, VSWITCH

_PREFIX = "peer-"
"""The peer's namespaces have names of their own, so that neither side ever takes the other's for its own."""

Argv = tuple[str, ...]


class Peer:
    """The same objects by commands, one after the other."""

    def __init__(self, plan: Plan, machine: MachineLock) -> None:
        self._plan = plan
        self._machine = machine
        self._owners = (GENERATOR, VSWITCH, *(function.name for function in plan.functions))
        self._names = tuple(map(_named, self._owners))
        self._threads: dict[str, int] = {}

    def deploy(self) -> None:
        """Make everything, until every data thread is pinned."""
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
        """Remove everything, until no data thread is left."""
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
                rx_threads.receive_by_napi(netlink, port.interface)
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


def _run(argv: Argv) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, input="1")
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr)


def _named(owner: str) -> str:
    return f"{_PREFIX}{namespaces.name_of(owner)}"


def _inside(port: Port) -> Argv:
    return ("ip", "-n", _named(port.owner))
