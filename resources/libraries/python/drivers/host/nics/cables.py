"""A machine's ends of cables to other machines: physical ports that the kernel drives, and VLAN devices on them."""

from collections.abc import Mapping, Sequence

from resources.libraries.python.drivers.host.links import link_devices, rtnetlink_messages
from resources.libraries.python.drivers.host.links.link_devices import device_mac
from resources.libraries.python.drivers.host.links.namespaces import Namespace, name_of
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.nics import nic_adoption
from resources.libraries.python.drivers.host.nics.nic_adoption import AdoptedPort, give_back
from resources.libraries.python.drivers.host.nics.port_inventory import devices
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.plan import Nic, Port
from resources.libraries.python.planning.names import GENERATOR


class Cables:
    """The physical ports of one machine's share of a plan.

    `ports`: Ends of cables.

    Raises:
        PlanError: The plan does not say which physical port it is, or has one twice.
    """

    def __init__(self, ports: Sequence[Port], lock: MachineLock, mtu: int) -> None:
        rows: dict[tuple[str, str], list[Port]] = {}
        for port in ports:
            rows.setdefault((port.owner, _nic(port).port), []).append(port)
        for (_, name), row in rows.items():
            if len({port.vlan for port in row}) < len(row):
                raise PlanError(f"{name} is the end of {len(row)} cables: {', '.join(each.interface for each in row)}")
        # Where a program separates VLANs itself, the physical port has the name of the first of them.
        self._ports = tuple(row[0] for row in rows.values())
        self._nics = tuple(map(_nic, self._ports))
        self._vlans = {port.trunk: row for port, row in zip(self._ports, rows.values(), strict=True) if port.trunk}
        self._lock = lock
        self._mtu = mtu
        self._adopted: tuple[AdoptedPort, ...] = ()
        self._trunks: dict[str, int] = {}
        self.index: dict[str, int] = {}
        """Interface index of each port of the plan, after `take`."""

    @property
    def names(self) -> frozenset[str]:
        """Ports of the plan: physical ones, and VLAN devices on them."""
        whole = (port.interface for port in self._ports if not port.trunk)
        return frozenset((*whole, *(port.interface for row in self._vlans.values() for port in row)))

    @property
    def physical(self) -> frozenset[str]:
        """Names of the physical ports in use."""
        return frozenset(port.receiver for port in self._ports)

    @property
    def at_home(self) -> dict[str, str]:
        """Original interface names by the names in use; known after `claim`."""
        return {adopted.interface: adopted.device for adopted in self._adopted}

    def claim(self) -> None:
        """Find all of them, and put on record what they are like. Nothing is changed.

        Raises:
            ConfigError: One is not there, or must not be taken.
            CsitError: One is in use already.
        """
        rows = zip(self._ports, self._nics, strict=True)
        found = nic_adoption.look([(nic, port.receiver, name_of(port.owner)) for port, nic in rows])
        self._lock.claim_ports(found)
        self._adopted = tuple(found)

    def start_threads(self) -> None:
        """Enable threaded NAPI before the ports are renamed, see `adoption.start_threads`."""
        nic_adoption.start_threads(self._adopted)

    def take(self, home: Netlink, namespaces: Mapping[str, Namespace]) -> None:
        """Move them into their owners' namespaces, make VLAN devices; all stay down.

        Raises:
            CommandFailed: The kernel refused something.
        """
        for port, adopted in zip(self._ports, self._adopted, strict=True):
            # The generator's device has another MAC than its frames are sent to, see device_mac.
            mac, promiscuous = device_mac(port), port.owner == GENERATOR or port.trunk is not None
            inside = namespaces[port.owner]
            index = nic_adoption.take(adopted, home, inside, mac, self._mtu, promiscuous=promiscuous)
            if port.trunk is None:
                self.index[port.interface] = index
                continue
            row = self._vlans[port.trunk]
            link_devices.make(inside.netlink, index, row, self._mtu)
            if port.owner == GENERATOR:
                inside.netlink.do([link_devices.drop_tail(port.trunk, index)])
            known = devices(inside.netlink)
            self.index |= {each.interface: known[each.interface].index for each in row}
            self._trunks[port.trunk] = index

    def bring_up(self, namespaces: Mapping[str, Namespace]) -> None:
        """Bring them up. The carrier comes when the other end is up too."""
        for port in self._ports:
            index = self._trunks[port.trunk] if port.trunk else self.index[port.interface]
            namespaces[port.owner].netlink.do([rtnetlink_messages.set_up(port.receiver, index)])
        for owner in dict.fromkeys(port.owner for port in self._ports if port.trunk):
            namespaces[owner].netlink.do([rtnetlink_messages.set_ports_up(rtnetlink_messages.VLAN_GROUP)])

    def give_back(self) -> None:
        """Bring all of them home as they were. Safe to call at any time.

        Raises:
            CsitError: One could not be given back; all of them stay on record.
        """
        if self._adopted:
            give_back(self._adopted)
            self._lock.release("ports", self._adopted)
        self._adopted = ()
        self.index.clear()
        self._trunks.clear()


def _nic(port: Port) -> Nic:
    if port.nic is None:
        raise PlanError(f"{port.interface} is the end of a cable, but the plan does not say of which physical port")
    return port.nic
