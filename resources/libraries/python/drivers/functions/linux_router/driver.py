"""Network functions as Linux routers, a network namespace each."""

from resources.libraries.python.drivers.functions.namespace_functions import NamespaceFunctions
from resources.libraries.python.drivers.host.links.routing import configure_routers, router_steps
from resources.libraries.python.drivers.host.programs.disturbances import Steps
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import NfPlan


class LinuxRouters(NamespaceFunctions[NfPlan]):
    """NFs that route IPv4 in the kernel."""

    def start(self) -> None:
        """Give every NF its addresses, neighbours and routes.

        Raises:
            CommandFailed: The kernel refused.
        """
        configure_routers(self._functions, self._fabric)

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        row = [function for function in self._functions if function.name == target]
        return router_steps(event, row, self._fabric) if row else None
