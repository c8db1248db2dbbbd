"""The local world: a network namespace per owner, a veth pair per link, a pinned kernel thread per port."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from pyroute2.netlink.rtnl import RTM_GETLINK, RTM_GETSTATS

from resources.libraries.python.drivers.host import messages, namespaces, ports, threads
from resources.libraries.python.drivers.host.namespaces import Namespace, Settings, name_of
from resources.libraries.python.drivers.host.netlink import GONE, Request
from resources.libraries.python.drivers.host.ownership import MachineLock
from resources.libraries.python.drivers.host.syscalls import aside
from resources.libraries.python.drivers.host.waiting import wait_until
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.cell import NfKind
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.plan import Link, Medium, Plan, Port
from resources.libraries.python.planning.names import GENERATOR, VSWITCH

_FIRST_INDEX = 100
"""Interface indexes are chosen here, so that none need be read back. Below are those that the kernel makes by itself in
a new namespace (lo, and tunl0 and others where their modules are loaded). They are unique on the machine: where both
ends of a veth pair have the same index, the kernel takes them for a physical port and lets its carrier wait, up to 1 s.
"""
_ETHERNET_BYTES = 18
"""Header and FCS: what a frame has and an MTU has not."""
_SMALLEST_MTU = 1500
_LINKS_WITHIN_S = 10.0

_QUIET: Settings = {
    # Neighbour discovery and MLD packets would be counted as test traffic.
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    "ipv4/conf/all/send_redirects": "0",
    "ipv4/conf/default/send_redirects": "0",
}
_ROUTER: Settings = {"ipv4/ip_forward": "1", **_QUIET}
# With these on every bridged packet walks through the IP tables too, and one with a wrong checksum is dropped there.
_BRIDGE: Settings = {
    **_QUIET,
    "bridge/bridge-nf-call-iptables": "0",
    "bridge/bridge-nf-call-ip6tables": "0",
    "bridge/bridge-nf-call-arptables": "0",
}
Result = TypeVar("Result")
_log = logging.getLogger(__name__)


class Fabric:
    """All namespaces and links of a plan. No link is ever in the root namespace."""

    def __init__(self, plan: Plan, machine: MachineLock, largest_frame_bytes: int = 1518) -> None:
        """Prepare. Nothing is made before `start`.

        Args:
            plan: What to make.
            machine: The machine's lock, held.
            largest_frame_bytes: The largest L2 frame that will be sent, FCS included.
        """
        self._plan = plan
        self._machine = machine
        self._mtu = max(_SMALLEST_MTU, largest_frame_bytes - _ETHERNET_BYTES)
        self._owners = tuple(dict.fromkeys((GENERATOR, VSWITCH, *(function.name for function in plan.functions))))
        self._ports: dict[str, list[Port]] = {owner: [] for owner in self._owners}
        self._links = tuple(link for link in plan.links if link.medium is Medium.VETH)
        for link in self._links:
            for port in (link.a, link.b):
                self._ports[port.owner].append(port)
        row = (port.interface for ports in self._ports.values() for port in ports)
        self._index = {interface: index for index, interface in enumerate(row, _FIRST_INDEX)}
        self._interface = {index: interface for interface, index in self._index.items()}
        self._claimed = False
        self._namespaces: dict[str, Namespace] = {}
        self._threads: dict[str, int] = {}

    def start(self) -> None:
        """Make everything, bring it up, give every port its data thread on its planned CPU.

        Raises:
            CsitError: A namespace is there already, or the kernel refused something.
            Unsupported: This machine cannot do it, or data threads cannot be pinned.
        """
        self._machine.claim_namespaces(name_of(owner) for owner in self._owners)
        self._claimed = True
        aside(self._make)
        self._machine.confirm_namespaces(name_of(owner) for owner in self._owners)
        self._threads = threads.find(self._index)
        self._place_threads()
        wait_until("links", self._not_running, _LINKS_WITHIN_S)
        _log.info("made %d namespaces with %d links", len(self._owners), len(self._links))

    def _make(self) -> None:
        kinds = {function.name: function.kind for function in self._plan.functions}
        wanted = [(name_of(owner), _settings(owner, kinds.get(owner))) for owner in self._owners]
        for owner, namespace in zip(self._owners, namespaces.create(wanted), strict=True):
            self._namespaces[owner] = namespace
        for owner, requests in self._link_requests().items():
            self._namespaces[owner].netlink.do(requests)
        up = messages.set_ports_up()
        for owner, row in self._ports.items():
            for port in row:
                ports.receive_by_napi(self._namespaces[owner].netlink, port.interface)
        # Only then: when a port comes up, the kernel looks once whether its peer will take XDP frames, by NAPI.
        for owner in self._ports:
            self.change(owner, [up])
        ports.enable_threads(
            (self._namespaces[owner], [port.interface for port in row]) for owner, row in self._ports.items()
        )

    def _link_requests(self) -> dict[str, list[Request]]:
        """Requests by the owner in whose namespace they are made; the vSwitch where it has an end."""
        requests: dict[str, list[Request]] = {}
        for link in self._links:
            near, far = _ends(link)
            requests.setdefault(near.owner, []).append(
                messages.veth_pair(
                    (near.interface, self._index[near.interface], _device_mac(near)),
                    (far.interface, self._index[far.interface], _device_mac(far)),
                    self._namespaces[far.owner].descriptor,
                    self._mtu,
                )
            )
        return requests

    def _not_running(self) -> str:
        """Names of ports that do not pass packets yet: the kernel brings their carrier up in the background."""
        left = self._down(self._owners)
        return f"{len(left)} without carrier, {left[0]} among them" if left else ""

    def _down(self, owners: Sequence[str]) -> list[str]:
        """Ports of these owners that have no carrier."""
        return [
            self._interface[index]
            for owner in owners
            for index, running in self._dump(owner, RTM_GETLINK, messages.GET_LINKS, messages.read_running)
            if index in self._interface and not running
        ]

    def _place_threads(self) -> None:
        for owner, row in self._ports.items():
            cpus = self._plan.cores.cpus(owner)
            for port in row:
                threads.pin(self._threads[port.interface], cpus[port.data_thread])
                # The generator's share its core with its sending loop, which does not sleep in a trial: as ordinary
                # threads they would get their turns late, and their rings would overflow. Those of the system under
                # test share cores with each other where it is oversubscribed, and ordinary threads then preempt each
                # other with work left to do. Measured side by side on 2 CPUs, 64 B, 0.5 s trials with a loss of 1e-4
                # at most: CSC 1x3 74 kpps ordinary and 188 kpps in real time, CSC 2x4 66 and 261 kpps; at overload
                # CSC 1x8 gave back 85 and 159 kpps.
                threads.make_realtime(self._threads[port.interface])

    def stop(self) -> None:
        """Remove everything that `start` made. Safe to call after a failure.

        Raises:
            CsitError: Something could not be removed; the rest was.
        """
        failures: list[CsitError] = []

        def attempt(step: Callable[[], None]) -> None:
            try:
                step()
            except CsitError as error:
                failures.append(error)

        made, self._namespaces = self._namespaces, {}
        vswitch = made.pop(VSWITCH, None)
        if vswitch:
            # One request for most ports there are: every request waits for the kernel's RCU, some 20 ms.
            attempt(partial(vswitch.netlink.do, [messages.delete_ports()], tolerate=GONE))
        for namespace in made.values():
            namespace.close()
            attempt(partial(namespaces.remove, namespace.name))
        # Ports between NFs end with their namespaces, all together; but not if they had to queue behind the bridges,
        # each of which takes the kernel 17 ms (an rcu_barrier in br_multicast_dev_del). So these come last.
        attempt(partial(threads.wait_gone, self._threads))
        if vswitch:
            vswitch.close()
            attempt(partial(namespaces.remove, vswitch.name))
        if failures:
            raise failures[0]
        if self._claimed:
            self._machine.release_namespaces(name_of(owner) for owner in self._owners)
        self._claimed = False
        self._threads = {}

    def change(self, owner: str, requests: Iterable[Request]) -> None:
        """Make changes in an owner's namespace.

        Raises:
            CommandFailed: The kernel refused one.
        """
        self._namespace(owner).netlink.do(requests)

    def run_inside(self, owner: str, work: Callable[[], Result]) -> Result:
        """Do work inside an owner's namespace, in a thread that ends with it. Sockets opened there stay there."""
        return namespaces.run_inside(self._namespace(owner).name, work)

    def index(self, interface: str) -> int:
        """Interface index of a port, in its namespace."""
        return self._index[interface]

    @property
    def mtu(self) -> int:
        """Of every port, in bytes."""
        return self._mtu

    @property
    def free_index(self) -> int:
        """The first of the interface indexes that no port has."""
        return _FIRST_INDEX + len(self._index)

    def threads(self) -> dict[str, int]:
        """Ids of the data threads by the port that they receive from."""
        return dict(self._threads)

    def affinity(self, owners: Iterable[str]) -> dict[str, frozenset[int]]:
        """CPUs on which the data threads of these owners' ports may really run; empty for one that is gone."""
        return threads.affinity(
            {
                port.interface: self._threads[port.interface]
                for owner in owners
                for port in self._ports[owner]
                if port.interface in self._threads
            }
        )

    def counters(self, owners: Iterable[str]) -> dict[str, InterfaceCounters]:
        """Counters of these owners' ports by interface name.

        Raises:
            CommandFailed: The kernel refused.
        """
        return {
            self._interface[index]: counters
            for owner in owners
            for index, counters in self._dump(owner, RTM_GETSTATS, messages.GET_COUNTERS, messages.read_counters)
            if index in self._interface
        }

    def bridges(self, owner: str) -> dict[str, int | None]:
        """Index of the bridge that each port of an owner is a member of; None for one that is of none.

        Raises:
            CommandFailed: The kernel refused.
        """
        rows = self._dump(owner, RTM_GETLINK, messages.GET_LINKS, messages.read_master)
        return {self._interface[index]: bridge for index, bridge in rows if index in self._interface}

    def problems(self, owners: Sequence[str]) -> tuple[str, ...]:
        """What is wrong with the ports of these owners: no data thread any more, no carrier, no namespace."""
        found = [f"the data thread of {name} is gone" for name, cpus in self.affinity(owners).items() if not cpus]
        try:
            down = self._down(owners)
        except CsitError as error:
            return (*found, str(error))
        return (*found, *(f"{name} has no carrier" for name in down))

    def _dump(self, owner: str, kind: int, body: bytes, read: Callable[[bytes], Result]) -> Iterator[Result]:
        return map(read, self._namespace(owner).netlink.dump(kind, body, f"read the links of {owner}"))

    def _namespace(self, owner: str) -> Namespace:
        if owner not in self._namespaces:
            raise CsitError(f"{owner} has no network namespace: the fabric is not started")
        return self._namespaces[owner]


def _ends(link: Link) -> tuple[Port, Port]:
    """A link's ends, first the one in whose namespace it is made and removed: the vSwitch's where it has one."""
    return (link.b, link.a) if link.b.owner == VSWITCH else (link.a, link.b)


def _settings(owner: str, kind: NfKind | None) -> Settings:
    """Settings of an owner's namespace; only where the NF is the namespace itself does the namespace route."""
    return _BRIDGE if owner == VSWITCH else _ROUTER if kind is NfKind.LINUX_ROUTER else _QUIET


def _device_mac(port: Port) -> str:
    """The MAC of the port's device.

    The generator's devices do not have the MAC that frames are sent to: the kernel then takes arriving frames for
    somebody else's (PACKET_OTHERHOST) and drops them as the first thing IPv4 does, after the interface has counted
    them. That is the cheapest sink there is, and needs no filter.
    """
    if port.owner != GENERATOR:
        return port.mac
    return f"{int(port.mac[:2], 16) ^ 0x04:02x}{port.mac[2:]}"
