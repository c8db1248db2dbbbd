"""MAC and PCI addresses of ports: their forms, and addresses that two ports or nodes cannot both have."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator

from resources.libraries.python.model.base import Inconsistency, Location, of_form

if TYPE_CHECKING:
    from resources.libraries.python.model.testbed.nodes import DutNode, TgNode


def _normalized(value: object) -> object:
    return value.strip().lower().replace("-", ":") if isinstance(value, str) else value


MacAddress = Annotated[
    str,
    BeforeValidator(_normalized),
    of_form(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", 'a MAC address such as "02:00:5e:00:53:01"'),
]
PciAddress = Annotated[
    str,
    BeforeValidator(_normalized),
    of_form(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", 'a PCI address such as "0000:3b:00.0"'),
]
"""Domains behind a volume management device (VMD) have more than four digits, such as `10000:e1:00.0`."""


def address_problems(nodes: Mapping[str, "TgNode | DutNode"], *, one_machine: bool) -> Iterator[Inconsistency]:
    """Yield addresses that cannot be right, with their place in the topology.

    Args:
        nodes: By name, with all ports of the file.
        one_machine: All nodes are on one machine.
    """
    seen: dict[object, str] = {}

    def also(key: object, owner: str) -> str | None:
        return None if (first := seen.setdefault(key, owner)) == owner else first

    for name, node in nodes.items():
        if node.access is not None:
            access = node.access
            if other := also((access.host.lower(), access.port, access.jump), name):
                text = f"{access.host} port {access.port} is {other} too; each node of a lab is a machine of its own"
                yield Inconsistency(("nodes", name, "access", "host"), text)
        for port, interface in node.interfaces.items():
            owner, place = f"{name}.{port}", ("nodes", name, "interfaces", port)
            if (mac := interface.mac_address) is not None:
                yield from _mac_problems((*place, "mac_address"), mac, also(mac, owner))
            pci = interface.pci_address
            if pci is not None and (other := also((None if one_machine else name, pci), owner)):
                text = (
                    f"{pci} is the PCI address of {other} too; correct one of them (`lspci -D` lists those there are)"
                )
                yield Inconsistency((*place, "pci_address"), text)


def _mac_problems(place: Location, mac: str, other: str | None) -> Iterator[Inconsistency]:
    if not mac.strip("0:"):
        yield Inconsistency(place, f"{mac} is no address of a port; leave the key out where it is not known")
    elif int(mac[:2], 16) & 1:
        yield Inconsistency(place, f"{mac} is a multicast address, which no port has; correct it (`ip link` shows it)")
    elif other is not None:
        text = f"{mac} is the MAC address of {other} too; correct one of them, or leave out the one that is not known"
        yield Inconsistency(place, text)
