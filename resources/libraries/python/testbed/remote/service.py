"""Services of several components in a lab: instances on the DUT, the load from the TG over the cable between them."""

from collections.abc import Callable, Mapping

from resources.libraries.python.model.plan import Port
from resources.libraries.python.model.service.spec import Size
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import INSTANCES, LOAD, Role, ServiceRequest
from resources.libraries.python.testbed.remote.node import TestbedNode
from resources.libraries.python.testbed.remote.proxies import combined
from resources.libraries.python.testbed.roles.service import InstanceUse, LoadReport, SizedService
from resources.libraries.python.testbed.services.bundle import ServiceBundle


class RemoteOrchestrator:
    """Fulfils `roles.service.Orchestrator` on two nodes of a lab."""

    def __init__(
        self,
        brought: ServiceBundle,
        cable: tuple[Port, Port],
        nodes: Callable[[], tuple[TestbedNode, TestbedNode]],
        names: str,
    ) -> None:
        self._brought = brought
        self._cable = cable
        self._nodes = nodes
        self._names = names

    def service(self, size: Size) -> "RemoteService":
        """A service that is not yet started.

        Raises:
            PlanError: The DUT is too small for it.
            Unsupported: A node lacks something.
            CsitError: A node was lost and does not come back.
        """
        loading, serving = self._nodes()
        near, far = self._cable
        pending = [
            serving.begin(calls.SITE, ServiceRequest(self._brought, size, Role.INSTANCES, far)),
            loading.begin(calls.SITE, ServiceRequest(self._brought, size, Role.LOAD, near)),
        ]
        for each in pending:
            each.result()
        workload = self._brought.workload
        return RemoteService(
            serving.role(INSTANCES),
            loading.role(LOAD, workload.duration_s + workload.within_s),
            f"from {loading.name} over {self._names}",
        )


class RemoteService(SizedService):
    """A service by calls to agents. While one offers a load, the other says what is used."""

    def __init__(self, instances: SizedService, load: SizedService, origin: str) -> None:
        self._instances = instances
        self._load = load
        self._origin = origin
        self._both = combined(LOAD, [load, instances])

    def start(self) -> None:
        """Bring both up, side by side; the cable gets its carrier when both ends are up."""
        self._both.start()

    def offer(self, load: float) -> LoadReport:
        return self._load.offer(load)

    def use(self) -> Mapping[str, InstanceUse]:
        return self._instances.use()

    def facts(self) -> Mapping[str, str]:
        """Facts of the instances, and origin of the load."""
        return {**self._instances.facts(), "load": self._origin}

    def problems(self) -> tuple[str, ...]:
        """Instances that have lost processes, a cable without carrier."""
        return self._both.problems()

    def stop(self) -> None:
        """Remove everything, side by side. What is on a node that was lost is removed there by its agent."""
        self._both.stop()
