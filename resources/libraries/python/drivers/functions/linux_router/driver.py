"""Network functions as Linux routers, a network namespace each."""

from collections.abc import Mapping, Sequence

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.routing import configure_routers, router_steps
from resources.libraries.python.drivers.host.programs.disturbances import Steps
from resources.libraries.python.drivers.host.programs.namespace_programs import NamespaceFunctions
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.testbed.nodes import DutNode


class LinuxRouters(NamespaceFunctions):
    """Fulfils `roles.part.NetworkFunctions`: NFs that route IPv4 in the kernel."""

    def __init__(self, functions: Sequence[NfPlan], fabric: Fabric) -> None:
        """Prepare.

        Args:
            functions: Have the addresses, routes and neighbours.
            fabric: Has the namespaces, which forward already; started before `start`.
        """
        self._functions = functions
        self._fabric = fabric
        self._owners = tuple(dict.fromkeys(function.name for function in functions))

    def start(self) -> None:
        """Give every NF its addresses, neighbours and routes.

        Raises:
            CommandFailed: The kernel refused.
        """
        configure_routers(self._functions, self._fabric)

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        row = [function for function in self._functions if function.name == target]
        return router_steps(event, row, self._fabric) if row else None

    def facts(self) -> Mapping[str, str]:
        """The environment's fingerprint has the kernel, and with it the routers."""
        return {}

    def stop(self) -> None:
        """Call off an event: addresses, neighbours and routes end with the namespace, which `Fabric.stop` removes."""
        self.call_off()


def make(_: DutNode, context: DriverContext, row: Sequence[NfPlan]) -> LinuxRouters:
    """Make the driver of NFs on a node."""
    return LinuxRouters(row, context.fabric)
