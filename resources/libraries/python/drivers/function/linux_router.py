"""Network functions as Linux routers, a network namespace each."""

from collections.abc import Iterator, Mapping, Sequence

from resources.libraries.python.drivers.host.fabric import Fabric
from resources.libraries.python.drivers.host.messages import add_address, add_neighbour, add_route
from resources.libraries.python.drivers.host.netlink import Request
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.plan import NfPlan


class LinuxRouters:
    """Fulfils `roles.function.NetworkFunctions`: NFs that route IPv4 in the kernel."""

    def __init__(self, functions: Sequence[NfPlan], fabric: Fabric) -> None:
        """Prepare.

        Args:
            functions: Have the addresses, routes and neighbours.
            fabric: Has the namespaces, which forward already; started before `start`.
        """
        self._functions = functions
        self._fabric = fabric
        self._owners = tuple(function.name for function in functions)

    def start(self) -> None:
        """Give every NF its addresses, neighbours and routes.

        Raises:
            CommandFailed: The kernel refused.
        """
        for function in self._functions:
            self._fabric.change(function.name, self._requests(function))

    def _requests(self, function: NfPlan) -> Iterator[Request]:
        for interface in (function.left, function.right):
            name, index, hop = interface.name, self._fabric.index(interface.name), interface.route
            yield add_address(name, index, interface.address)
            # Known before any packet needs it, and for ever: no ARP in a measurement.
            yield add_neighbour(name, index, hop.address, hop.mac)
            yield add_route(name, index, hop.prefix, hop.address)

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which each interface's data thread may really run."""
        return self._fabric.affinity(self._owners)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters by interface."""
        return self._fabric.counters(self._owners)

    def facts(self) -> Mapping[str, str]:
        """The environment's fingerprint has the kernel, and with it the routers."""
        return {}

    def problems(self) -> tuple[str, ...]:
        """Ports that have lost their data thread or their carrier."""
        return self._fabric.problems(self._owners)

    def stop(self) -> None:
        """Nothing to do: addresses, neighbours and routes end with their namespaces, which `Fabric.stop` removes."""
