"""The edges of a service: cables between the generator and the vSwitches, its own or shared with other instances.

Where all parts are on one machine an edge is a virtual link for each instance. In a lab it is a cable, and the
discriminator says what keeps instances apart on it:

- link: every instance has cables of its own;
- vlan: instances share cables, and each has a VLAN: ports of its own on both ends, with the same NIC behind them.
  Some drivers tag frames themselves; elsewhere these ports are VLAN devices of the kernel on a trunk;
- mac: instances share cables and the ports at their ends; frames are separated by destination MAC address.
"""

from dataclasses import dataclass
from typing import Literal

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.plan import Nic, Port
from resources.libraries.python.model.testbed.attachment import attachment_of, polled_queues, uio_driver
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode
from resources.libraries.python.model.testbed.topology import Socket, Topology, World
from resources.libraries.python.planning.names import GENERATOR, VSWITCH, edge_interface

FIRST_VLAN = 101
"""VLAN of instance 1. Low ones are often in use in labs, 0 and 4095 are reserved."""
SHARED = 0
"""Instance of what all instances share."""

Ends = tuple[Nic, Nic]
"""A cable in the direction of forward traffic."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Ports and cables from instances to the vSwitches."""

    duts: int = 1
    discriminator: Literal["link", "vlan", "mac"] = "link"
    ways: tuple[tuple[Ends, ...], ...] = ()
    """Cables of each path from the generator and back; none on a single machine."""
    vlan_devices: frozenset[str] = frozenset()
    """Owners (`generator`, `vswitch`) whose VLANs are devices of the kernel; others tag frames themselves."""

    @property
    def shared(self) -> bool:
        """Whether all instances have the same ports at the edges."""
        return bool(self.ways) and self.discriminator == "mac"

    @property
    def one_cable(self) -> bool:
        """Whether all instances have the same cables, and with them one receive queue at each end."""
        return bool(self.ways) and self.discriminator != "link"

    def instance(self, instance: int) -> int:
        """The instance by which ports at the edges are named."""
        return SHARED if self.shared else instance

    def nic(self, instance: int, cable: int, end: int) -> Nic | None:
        """The NIC at an end (0 or 1) of a cable (counting from 0 along the path); None for a virtual link."""
        if not self.ways:
            return None
        way = self.ways[instance - 1] if self.discriminator == "link" else self.ways[0]
        return way[cable][end]

    def vlan(self, instance: int) -> int | None:
        """The tag of an instance's frames on cables."""
        return FIRST_VLAN - 1 + instance if self.ways and self.discriminator == "vlan" else None

    def trunk(self, owner: str, number: int) -> str | None:
        """Name in use of the physical port under the VLAN devices at an edge; None where there are no such devices.

        `owner`: `generator`, or `vswitch` for that of any DUT.
        `number`: 1 or 2 of the generator, 1 to 4 of the vSwitches along the service.
        """
        return edge_interface(owner, SHARED, number) if self.ways and owner in self.vlan_devices else None


def edges_of(topology: Topology) -> Edges:
    """The edges of a testbed.

    Raises:
        ConfigError: The cables of a lab cannot carry a service.
    """
    if topology.world is not World.LAB:
        return Edges()
    return Edges(
        duts=len(topology.duts),
        discriminator=topology.discriminator,
        ways=tuple(
            tuple((nic_of(topology, cable.a), nic_of(topology, cable.b)) for cable in way) for way in topology.ways
        ),
        vlan_devices=frozenset(
            owner
            for owner, node in ((GENERATOR, topology.tg), (VSWITCH, topology.dut))
            if has_vlan_devices(topology, node)
        ),
    )


def has_vlan_devices(topology: Topology, node: TgNode | DutNode) -> bool:
    """Whether a node's kernel separates the VLANs of a cable, each a device; some drivers do that themselves."""
    if topology.world is not World.LAB or topology.discriminator != "vlan":
        return False
    if isinstance(node, TgNode):
        return not driver_registry.generators()[node.generator.driver].tags_frames
    return not driver_registry.vswitches()[node.vswitch].tags_frames


def nic_of(topology: Topology, socket: Socket) -> Nic:
    """Return the NIC of a port; with a virtual function that has the place of it, the function's MAC."""
    node = topology.nodes[socket.node]
    interface = node.interfaces[socket.port]
    attachment = attachment_of(interface, node, ("nodes", socket.node, "interfaces", socket.port))
    return Nic(
        port=socket.port,
        device=interface.device,
        pci_address=interface.pci_address,
        mac_address=_function_mac(interface.mac_address) if interface.nic_vfs else interface.mac_address,
        driver=interface.driver,
        model=interface.model,
        numa_node=interface.numa_node,
        rate_bps=interface.rate_bps,
        attachment=attachment,
        vfs=interface.nic_vfs,
        uio_driver=uio_driver(interface, node) if attachment.unbinds else None,
        rx_queues=polled_queues(node, interface),
    )


def _function_mac(mac: str | None) -> str | None:
    """A locally administered MAC for the function of a port with that MAC; None where that is not known.

    It differs from the port's: the NIC gives frames for that to the port, not to the function.
    """
    if mac is None:
        return None
    first = int(mac[:2], 16)
    return f"{first ^ 0x04 if first & 0x02 else first | 0x02:02x}{mac[2:]}"


def too_few_cables(topology: Topology, instances: int) -> tuple[str, int] | None:
    """Return the reason why instances would have to share cables; None if there are enough paths."""
    there = len(topology.ways)
    if topology.world is not World.LAB or topology.discriminator != "link" or instances <= there:
        return None
    what = "cable pairs" if len(topology.duts) == 1 else "cables around"
    return f"needs {instances} {what}, one for each instance (discriminator: link), {there} available", there


def cannot_discriminate(topology: Topology) -> str | None:
    """Return why the drivers of a lab do not support its discriminator; None where they can."""
    if topology.world is not World.LAB or topology.discriminator == "link":
        return None
    if topology.discriminator == "vlan":
        return _no_vlans(topology)
    generator = driver_registry.generators()[topology.tg.generator.driver]
    if generator.counts_by_port:
        others = (each.name for each in driver_registry.generators().values() if each.ports is not None)
        return (
            f"discriminator mac: the {generator.label} counts instances by port; use link or vlan, or generator driver "
            f"{' or '.join(others)}"
        )
    return None


def _no_vlans(topology: Topology) -> str | None:
    generators = driver_registry.generators()
    if reason := driver_registry.vswitches()[topology.dut.vswitch].vlan_problem(topology.dut):
        return f"discriminator vlan: {reason}"
    if reason := generators[topology.tg.generator.driver].vlan_problem:
        others = [each.name for each in generators.values() if each.factory is not None and each.vlan_problem is None]
        return f"discriminator vlan: {reason}; use link, or generator driver {', '.join(others[:-1])} or {others[-1]}"
    return None


def check(topology: Topology, instances: int) -> None:
    """Refuse a cell whose instances cables or drivers cannot distinguish.

    Raises:
        PlanError: With the numbers.
    """
    lack = too_few_cables(topology, instances)
    reason = lack[0] if lack else cannot_discriminate(topology)
    if reason:
        raise PlanError(f"testbed {topology.metadata.name}: {reason}")


SERVICE_BRIDGE = "service-bridge"
SERVICE_LOAD = "service-load"
"""Name of the traffic generator. No instance has such a name: those end with a number."""
SERVICE_PORT = "eth0"
"""Port of each end with an address."""
SERVICE_UPLINK = "uplink"
"""The bridge's end of the cable."""
_MAC = "02:c5:ff:00:00:{:02x}"
"""For a port whose own MAC the file does not have. No instance has such a one."""


def service_cable(topology: Topology) -> tuple[Port, Port]:
    """Both ends of the first cable of a lab: at the traffic generator, and at the (first) DUT.

    Frames on it have no VLAN, also where instances of density tests are kept apart by one.

    Raises:
        ConfigError: The cables of the lab cannot carry a service.
    """
    near, far = edges_of(topology).ways[0][0]
    return _port(SERVICE_LOAD, SERVICE_PORT, near, 1), _port(SERVICE_BRIDGE, SERVICE_UPLINK, far, 2)


def _port(owner: str, interface: str, nic: Nic, number: int) -> Port:
    return Port(owner=owner, interface=interface, mac=nic.mac_address or _MAC.format(number), data_thread=0, nic=nic)
