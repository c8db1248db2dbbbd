"""What makes a network namespace the router that an NF is: addresses, static neighbours and routes."""

from collections.abc import Iterable, Iterator

from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.netlink import Request
from resources.libraries.python.drivers.host.links.rtnetlink_messages import add_address, add_neighbour, add_route
from resources.libraries.python.model.plan import NfPlan


def route(functions: Iterable[NfPlan], fabric: Fabric) -> None:
    """Give every NF its addresses, neighbours and routes. They end with their namespaces.

    Args:
        functions: Those that are namespaces which forward.
        fabric: Has the namespaces; started.

    Raises:
        CommandFailed: The kernel refused.
    """
    for function in functions:
        fabric.change(function.name, _requests(function, fabric))


def _requests(function: NfPlan, fabric: Fabric) -> Iterator[Request]:
    for interface in (function.left, function.right):
        name, index, hop = interface.name, fabric.index(interface.name), interface.route
        yield add_address(name, index, interface.address)
        # Known before any packet needs it, and for ever: no ARP in a measurement.
        yield add_neighbour(name, index, hop.address, hop.mac)
        for prefix in (hop.prefix, *hop.also):
            yield add_route(name, index, prefix, hop.address)
