"""Services of several components in a lab: instances on the DUT, the load from the TG over the cable between them."""

from collections.abc import Callable, Mapping

from resources.libraries.python.model.plan import Port
from resources.libraries.python.studies.sizing.model.spec import Size
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import Role, Sited
from resources.libraries.python.testbed.remote.combined_nodes import Together
from resources.libraries.python.testbed.remote.link import Link
from resources.libraries.python.testbed.remote.parts import RemotePart
from resources.libraries.python.testbed.roles.service import Answer, InstanceUse
from resources.libraries.python.testbed.services.bundle import Brought


class RemoteInstances(RemotePart):
    """Instances on a node."""

    def use(self) -> Mapping[str, InstanceUse]:
        """By instance."""
        return self._link.call(calls.USE, None)


class RemoteLoad(RemotePart):
    """Who offers the load, on a node."""

    def offer(self, load: float, within_s: float) -> Answer:
        """Run the generator script once.

        Args:
            load: In the workload's unit.
            within_s: How long the script may take.
        """
        return self._link.call(calls.OFFER, load, within_s)


class RemoteOrchestrator:
    """Fulfils `roles.service.Orchestrator` on two nodes of a lab."""

    def __init__(
        self, brought: Brought, cable: tuple[Port, Port], links: Callable[[], tuple[Link, Link]], names: str
    ) -> None:
        """Prepare.

        Args:
            brought: The service, with the user's files.
            cable: Its ends, at who offers the load and at the instances.
            links: Agents of those two nodes; new ones where they were lost.
            names: The cable for a person.
        """
        self._brought = brought
        self._cable = cable
        self._links = links
        self._names = names

    def service(self, size: Size) -> "RemoteService":
        """A service that is not yet started.

        Raises:
            PlanError: The DUT is too small for it.
            Unsupported: A node lacks something.
            CsitError: A node was lost and does not come back.
        """
        loading, serving = self._links()
        near, far = self._cable
        pending = [
            serving.begin(calls.SITE, Sited(self._brought, size, Role.INSTANCES, far)),
            loading.begin(calls.SITE, Sited(self._brought, size, Role.LOAD, near)),
        ]
        for each in pending:
            each.result()
        workload = self._brought.workload
        return RemoteService(
            RemoteInstances(serving, Role.INSTANCES),
            RemoteLoad(loading, Role.LOAD),
            workload.duration_s + workload.within_s,
            self._names,
        )


class RemoteService:
    """Fulfils `roles.service.Service` by calls to agents. While one offers a load, the other says what is used."""

    def __init__(self, instances: RemoteInstances, load: RemoteLoad, within_s: float, cable: str) -> None:
        """Prepare.

        Args:
            instances: Not started.
            load: Not started.
            within_s: How long the generator script may take.
            cable: For a person.
        """
        self._instances = instances
        self._load = load
        self._within_s = within_s
        self._cable = cable
        self._both = Together([load, instances])

    def start(self) -> None:
        """Bring both up, side by side; the cable gets its carrier when both ends are up."""
        self._both.start()

    def offer(self, load: float) -> Answer:
        """Run the generator script once."""
        return self._load.offer(load, self._within_s)

    def use(self) -> Mapping[str, InstanceUse]:
        """See Service."""
        return self._instances.use()

    def facts(self) -> Mapping[str, str]:
        """What the instances turned out to be, and where the load comes from."""
        return {**self._instances.facts(), "load": f"from {self._load.node} over {self._cable}"}

    def problems(self) -> tuple[str, ...]:
        """Instances that have lost processes, a cable without carrier."""
        return self._both.problems()

    def stop(self) -> None:
        """Remove everything, side by side. What is on a node that was lost is removed there by its agent."""
        self._both.stop()
