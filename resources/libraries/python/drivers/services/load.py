"""The load generator: the user's script in its own namespace and control group."""

from collections.abc import Mapping

from resources.libraries.python.drivers.host.cgroups.cgroup_tree import end
from resources.libraries.python.drivers.host.cgroups.cgroups import Controllers, GroupLimits
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.services import scripts
from resources.libraries.python.drivers.services.instance import ServiceInstance
from resources.libraries.python.drivers.services.load_network import LoadNetwork
from resources.libraries.python.drivers.services.network import LOADER_ADDRESS, addresses
from resources.libraries.python.drivers.services.service_environment import of_all
from resources.libraries.python.studies.sizing.model.load import Specifications
from resources.libraries.python.studies.sizing.model.spec import Size
from resources.libraries.python.studies.sizing.planning.service_cable import LOADER
from resources.libraries.python.testbed.roles.service import LoadReport


class Load:
    """Runs in an existing namespace. Its control group ends processes that the script leaves running."""

    def __init__(
        self,
        asked: Specifications,
        size: Size,
        machine: MachineLock,
        controllers: Controllers,
        pinned: frozenset[int] | None = None,
    ) -> None:
        """Prepare; nothing is made before `start`.

        Args:
            asked: What is to be loaded, and how.
            size: Of the service.
            machine: The machine's lock, held.
            controllers: Of this machine.
            pinned: The only CPUs that the script may run on; None for all.
        """
        self._asked = asked
        self._addresses = {name: str(address) for name, address in addresses(asked.deployment, size).items()}
        self._runner = ServiceInstance(LOADER, controllers, machine, GroupLimits(pinned=pinned))

    def start(self) -> None:
        """Make group and folder.

        Raises:
            Unsupported: The machine has no such groups.
            CsitError: There is such a group.
        """
        self._runner.make()

    def offer(self, load: float) -> LoadReport:
        """Run the generator script once; see `roles.service.SizedService`."""
        workload = self._asked.workload
        variables = {
            "CSIT_LOAD": f"{load:g}",
            "CSIT_DURATION_S": f"{workload.duration_s:g}",
            "CSIT_UNIT": workload.unit,
            "CSIT_ADDRESS": str(LOADER_ADDRESS),
            **self._asked.options,
            **of_all(self._addresses),
        }
        within_s = workload.duration_s + workload.within_s
        try:
            said = self._runner.run("generator script", self._asked.generator, variables, within_s)
        finally:
            end(self._runner.folders, 0)
        return scripts.answer(said, self._asked.generator)

    def stop(self) -> None:
        """Remove group and folder. Safe to call after a failure.

        Raises:
            CsitError: They cannot be removed.
        """
        end(self._runner.folders, 0)
        self._runner.remove()


class CabledLoad:
    """A load that comes over a cable from this machine, which has nothing else of the service."""

    def __init__(self, load: Load, network: LoadNetwork) -> None:
        self._load = load
        self._network = network

    def start(self) -> None:
        """Make namespace and group, take the port."""
        self._network.start()
        self._load.start()

    def offer(self, load: float) -> LoadReport:
        """Run the generator script once, when packets pass the cable; see `roles.service.SizedService`."""
        self._network.wait_for_cable()
        return self._load.offer(load)

    def facts(self) -> Mapping[str, str]:
        """None: the source of the load is known to the caller."""
        return {}

    def problems(self) -> tuple[str, ...]:
        """A cable that passes no packets."""
        return self._network.problems()

    def stop(self) -> None:
        """End the script, give the port back, remove everything.

        Raises:
            CsitError: Something could not be removed.
        """
        try:
            self._load.stop()
        finally:
            self._network.stop()
