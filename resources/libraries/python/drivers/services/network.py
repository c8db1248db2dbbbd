"""The network of a service: a bridge in a namespace of its own, and a namespace with one address for other programs.

The load generator is another namespace, or behind a cable that is a member of the bridge: `LoadNetwork` is its end.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from ipaddress import IPv4Address, IPv4Network

from pyroute2.netlink.rtnl import RTM_GETLINK, RTM_GETSTATS

from resources.libraries.python.drivers.host.links import namespaces, rtnetlink_messages
from resources.libraries.python.drivers.host.links.link_devices import settings
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.links.namespaces import Namespace, name_of, run_inside
from resources.libraries.python.drivers.host.links.netlink import GONE, Netlink
from resources.libraries.python.drivers.host.nics.cables import Cables
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.model.plan import Port
from resources.libraries.python.model.service.spec import DeploymentSpec, Size
from resources.libraries.python.planning.edges import SERVICE_BRIDGE, SERVICE_LOAD, SERVICE_PORT
from resources.libraries.python.planning.names import VSWITCH

_NETWORK = IPv4Network("198.18.0.0/16")
"""Set aside for tests of network devices (RFC 2544). These addresses are seen in the service's own namespaces only."""
LOADER_ADDRESS = _NETWORK[256 * 255 + 1]
_FIRST_INDEX = 100
_LOOPBACK_INDEX = 1
_MTU = 1500
"""On cables too."""
_LOAD = name_of(SERVICE_LOAD)
_WITHIN_S = 30.0
"""The two ends of a cable negotiate."""


def addresses(spec: DeploymentSpec, size: Size) -> dict[str, IPv4Address]:
    """Address of every instance by its name, `<component>-<number>`, components and numbers in order."""
    return {
        f"{component.name}-{number}": _NETWORK[256 * place + number]
        for place, component in enumerate(spec.components, 1)
        for number in range(1, size.components[component.name].instances + 1)
    }


class _CabledNamespaces(ABC):
    """Network namespaces on the machine's record, one of which may have a port to another machine.

    `owners`: Of the namespaces.
    `cable`: The port, owned by one of them; None for none.
    """

    def __init__(self, owners: Sequence[str], machine: MachineLock, cable: Port | None) -> None:
        self._owners = owners
        self._names = tuple(map(name_of, owners))
        self._machine = machine
        self._cables = Cables([] if cable is None else [cable], machine, _MTU)
        self._claimed = False

    def start(self) -> None:
        """Make everything and bring it up.

        Raises:
            ConfigError: The port of the cable is not there, or must not be taken.
            CsitError: A namespace is there already, or the kernel refused something.
            Unsupported: Namespaces cannot be made here.
        """
        self._machine.claim_namespaces(self._names)
        self._claimed = True
        self._cables.claim()
        aside(self._make_aside)
        self._machine.confirm_namespaces(self._names)

    def _make_aside(self) -> None:
        with closing(Netlink()) as home:  # before this thread enters namespaces
            self._make(home)

    @abstractmethod
    def _make(self, home: Netlink) -> None:
        """Make the namespaces with their interfaces, and move the cable's port from `home` there."""

    def _let_go(self) -> None:  # noqa: B027 - nothing is open by itself
        """Close what is open in the namespaces."""

    def stop(self) -> None:
        """Give the port back, remove everything. Safe to call after a failure; what uses the network must have ended.

        Raises:
            CsitError: Something could not be removed, or given back: then all stays, on record.
        """
        if not self._claimed:
            return
        self._cables.give_back()  # a port in a namespace that ends is lost
        self._let_go()
        for name in self._names:
            if namespaces.inode(name) is not None:
                namespaces.remove(name)
        self._machine.release_namespaces(self._names)
        self._claimed = False


class ServiceNetwork(_CabledNamespaces):
    """Namespaces of all instances, of the bridge, and of a load generator on this machine.

    `instances`: Address by name.
    `cable`: The port to the machine that offers the load, owned by the bridge; None where this machine does.
    """

    def __init__(self, instances: Mapping[str, IPv4Address], machine: MachineLock, cable: Port | None = None) -> None:
        self.addresses = {**instances, SERVICE_LOAD: LOADER_ADDRESS} if cable is None else dict(instances)
        super().__init__((SERVICE_BRIDGE, *self.addresses), machine, cable)
        self._bridge: Namespace | None = None
        self._index: dict[int, str] = {}
        """Owners by member of the bridge."""

    def _make(self, home: Netlink) -> None:
        wanted = [
            (name_of(owner), settings(VSWITCH if owner == SERVICE_BRIDGE else owner, None)) for owner in self._owners
        ]
        made = dict(zip(self._owners, namespaces.create(wanted), strict=True))
        self._bridge = made.pop(SERVICE_BRIDGE)
        try:
            # Indexes differ also from end to end: the kernel takes two alike for a physical port and waits for it.
            first = _FIRST_INDEX + 1
            self._bridge.netlink.do(
                [rtnetlink_messages.bridge("br0", _FIRST_INDEX), rtnetlink_messages.set_up("br0", _FIRST_INDEX)]
            )
            for near, (owner, namespace) in enumerate(made.items(), first):
                self._index[near] = owner
                self._join(near, near + len(made), owner, namespace)
            self._plug_in(home)
        finally:
            for namespace in made.values():
                namespace.close()

    def _join(self, near: int, far: int, owner: str, namespace: Namespace) -> None:
        assert self._bridge is not None  # noqa: S101 - made by the caller
        member = f"member{near}"
        self._bridge.netlink.do(
            [
                rtnetlink_messages.veth_pair(
                    (member, near, _mac(near)), (SERVICE_PORT, far, _mac(far)), namespace.descriptor, _MTU
                ),
                rtnetlink_messages.enslave(member, near, "br0", _FIRST_INDEX),
                rtnetlink_messages.set_up(member, near),
            ]
        )
        namespace.netlink.do(
            [
                rtnetlink_messages.set_up("lo", _LOOPBACK_INDEX),
                rtnetlink_messages.add_address(SERVICE_PORT, far, f"{self.addresses[owner]}/{_NETWORK.prefixlen}"),
                rtnetlink_messages.set_up(SERVICE_PORT, far),
            ]
        )

    def _plug_in(self, home: Netlink) -> None:
        """Make the cable a member of the bridge, where there is one."""
        assert self._bridge is not None  # noqa: S101 - made by the caller
        bridge = {SERVICE_BRIDGE: self._bridge}
        self._cables.take(home, bridge)
        for name, index in self._cables.index.items():
            self._bridge.netlink.do([rtnetlink_messages.enslave(name, index, "br0", _FIRST_INDEX)])
        self._cables.bring_up(bridge)

    def octets(self) -> dict[str, int]:
        """L2 bytes sent and received by owner; empty before `start`."""
        if self._bridge is None:
            return {}
        rows = self._bridge.netlink.dump(
            RTM_GETSTATS, rtnetlink_messages.GET_COUNTERS, "read the counters of the service"
        )
        read = map(rtnetlink_messages.read_octets, rows)
        return {self._index[index]: count for index, count in read if index in self._index}

    def _let_go(self) -> None:
        if self._bridge is not None:
            self._bridge.netlink.do([rtnetlink_messages.delete_ports()], tolerate=GONE)
            self._bridge.close()
            self._bridge = None


class LoadNetwork(_CabledNamespaces):
    """Has the address that the load comes from in the local world too: the service's network, at the cable's end.

    `cable`: The port to the machine of the instances, owned by the load generator.
    """

    def __init__(self, cable: Port, machine: MachineLock) -> None:
        super().__init__((SERVICE_LOAD,), machine, cable)

    def _make(self, home: Netlink) -> None:
        (inside,) = namespaces.create([(_LOAD, settings(SERVICE_LOAD, None))])
        mine = {SERVICE_LOAD: inside}
        with closing(inside):
            self._cables.take(home, mine)
            inside.netlink.do(
                [
                    rtnetlink_messages.set_up("lo", _LOOPBACK_INDEX),
                    rtnetlink_messages.add_address(
                        SERVICE_PORT, self._cables.index[SERVICE_PORT], f"{LOADER_ADDRESS}/{_NETWORK.prefixlen}"
                    ),
                ]
            )
            self._cables.bring_up(mine)

    def problems(self) -> tuple[str, ...]:
        """Whether the cable passes packets now."""
        index = self._cables.index.get(SERVICE_PORT)
        running = run_inside(_LOAD, _running) if index is not None else {}
        return () if index is not None and running.get(index) else ("the cable to the service has no carrier",)

    def wait_for_cable(self) -> None:
        """Wait until packets pass. To be called when the other machine has brought its end up.

        Raises:
            NotReady: They do not.
        """
        wait_until("cable to the service", lambda: "; ".join(self.problems()), _WITHIN_S, pause_s=0.01)


def _running() -> dict[int, bool]:
    """Whether interfaces pass packets, by index."""
    with closing(Netlink()) as netlink:
        rows = netlink.dump(RTM_GETLINK, rtnetlink_messages.GET_LINKS, "read the links of the load")
        return dict(map(rtnetlink_messages.read_running, rows))


def _mac(index: int) -> str:
    """A locally administered MAC that no other interface of the service has."""
    return ":".join(f"{byte:02x}" for byte in (0x02, 0xC5, *index.to_bytes(4, "big")))
