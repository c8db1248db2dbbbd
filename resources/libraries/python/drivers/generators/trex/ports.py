"""The generator's ports in the order in which TRex numbers them. Pure."""

from dataclasses import dataclass

from resources.libraries.python.drivers.generators.trex.registration import Trex
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.plan import Plan, Port
from resources.libraries.python.planning.names import GENERATOR

MOST_PORTS = 32


@dataclass(frozen=True, slots=True)
class TrexPort:
    """One port."""

    device: str
    """The kernel's name of it, in the generator's namespace."""
    pci_address: str | None
    source_mac: str
    destination_mac: str
    """Of the first flow that leaves here. Packets carry their own; with this one the server sends no ARP request."""


@dataclass(frozen=True, slots=True)
class TrexPorts:
    """All ports of the generator."""

    ports: tuple[TrexPort, ...]
    number: dict[str, int]
    """By the plan's name of an interface; several have the same where VLANs share a cable."""
    dpdk: bool
    """Whether they are taken by DPDK drivers; else by AF_PACKET sockets."""
    queues: int = 1
    """That each of them can have, to send and to receive."""


def table_of(plan: Plan, settings: Trex) -> TrexPorts:
    """The ports of a plan.

    Raises:
        Unsupported: An odd number of ports, more than TRex has, or DPDK for ports without a PCI address.
    """
    rows: dict[str, Port] = {}
    number: dict[str, int] = {}
    for port in plan.ports(GENERATOR):
        key = port.interface if port.nic is None else port.nic.pci_address or port.nic.port
        rows.setdefault(key, port)
        number[port.interface] = list(rows).index(key)
    if len(rows) % 2 or not rows:
        raise Unsupported(f"TRex takes its ports in pairs, the plan has {len(rows)} for the generator")
    if len(rows) > MOST_PORTS:
        raise Unsupported(f"the plan has {len(rows)} ports for the generator, TRex takes {MOST_PORTS}")
    by_dpdk = [port for port in rows.values() if port.nic is not None and port.nic.attachment.is_dpdk]
    others = [port.interface for port in rows.values() if port not in by_dpdk]
    if others and (by_dpdk or settings.ports == "dpdk"):
        raise Unsupported(
            f"TRex drives all of its ports by DPDK or none, and {others[0]} is a port of the kernel; "
            "set trex: {ports: af_packet}"
        )
    ports = tuple(_port(plan, port, number) for port in rows.values())
    queues = min((port.nic.rx_queues if port.nic else None) or 1 for port in rows.values())
    return TrexPorts(ports, number, dpdk=bool(by_dpdk), queues=queues)


def _port(plan: Plan, port: Port, number: dict[str, int]) -> TrexPort:
    mine = number[port.interface]
    leaving = [flow for flow in plan.flows if number[flow.tx_interface] == mine]
    if not leaving:
        raise Unsupported(f"no flow leaves from the generator's port {port.interface}")
    return TrexPort(
        device=port.interface,
        pci_address=port.nic.pci_address if port.nic else None,
        source_mac=leaving[0].source_mac,
        destination_mac=leaving[0].destination_mac,
    )
