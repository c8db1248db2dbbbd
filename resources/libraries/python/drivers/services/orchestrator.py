"""Services on this machine: each instance is a network namespace and a control group with the user's script."""

import shutil
from collections.abc import Iterator

from resources.libraries.python.drivers.host.cgroups import cgroups
from resources.libraries.python.drivers.host.cgroups.cgroup_tree import end
from resources.libraries.python.drivers.host.cgroups.cgroups import Controllers, GroupLimits
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.services import scripts
from resources.libraries.python.drivers.services.instances import Instances, ServiceInstance
from resources.libraries.python.drivers.services.network import LOADER_ADDRESS, LoadNetwork, addresses
from resources.libraries.python.drivers.services.scripts import environment, of_all
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.plan import Port
from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.model.service.spec import Size
from resources.libraries.python.model.service.workload import needed
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.planning.edges import SERVICE_LOAD
from resources.libraries.python.planning.placement.instance_cpus import InstancePlacement, place
from resources.libraries.python.testbed.roles.service import LoadReport, SizedService, SplitService


class Load(SizedService):
    """Runs in its own namespace. Its control group ends processes that the script leaves running.

    `machine`: the machine's lock, held.
    `pinned`: the only CPUs that the script may run on; None for all.
    `network`: where it comes over a cable from this machine, which has nothing else of the service; None where the
      namespace exists.
    """

    def __init__(
        self,
        asked: Specifications,
        size: Size,
        machine: MachineLock,
        controllers: Controllers,
        pinned: frozenset[int] | None = None,
        *,
        network: LoadNetwork | None = None,
    ) -> None:
        self._network = network
        self._asked = asked
        self._addresses = {name: str(address) for name, address in addresses(asked.deployment, size).items()}
        self._runner = ServiceInstance(SERVICE_LOAD, controllers, machine, GroupLimits(pinned=pinned))

    def start(self) -> None:
        """Make namespace, group and folder, take the port.

        Raises:
            Unsupported: The machine has no such groups.
            CsitError: There is such a group.
        """
        if self._network is not None:
            self._network.start()
        self._runner.make()

    def offer(self, load: float) -> LoadReport:
        """Run the generator script once, when packets pass the cable."""
        if self._network is not None:
            self._network.wait_for_cable()
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
            output = self._runner.run("generator script", self._asked.generator, variables, within_s)
        finally:
            end(self._runner.folders, 0)
        return scripts.answer(output, self._asked.generator)

    def problems(self) -> tuple[str, ...]:
        """A cable that passes no packets."""
        return () if self._network is None else self._network.problems()

    def stop(self) -> None:
        """Remove group and folder, give the port back. Safe to call after a failure.

        Raises:
            CsitError: They cannot be removed.
        """
        try:
            end(self._runner.folders, 0)
            self._runner.remove()
        finally:
            if self._network is not None:
                self._network.stop()


class LocalOrchestrator:
    """Fulfils `roles.service.Orchestrator` on this machine.

    `memory_mb`: Its memory; None where it is not known.
    `oversubscribe`: Whether instances may together have more CPUs than there are.

    Raises:
        Unsupported: This machine cannot limit instances, or has not the programs of their scripts.
    """

    def __init__(
        self,
        asked: Specifications,
        machine: MachineLock,
        layout: CpuLayout,
        memory_mb: int | None = None,
        *,
        oversubscribe: bool = False,
    ) -> None:
        self._asked = asked
        self._machine = machine
        self._controllers = cgroups.discover()
        self._layout, self._memory_mb, self._oversubscribe = layout, memory_mb, oversubscribe
        scripts.check_programs("the service", (*asked.deployment.needs, *needed(asked.deployment.options)))

    def service(self, size: Size) -> "LocalService":
        """A service that is not yet started, loaded from this machine.

        Raises:
            PlanError: The machine is too small for it.
            Unsupported: It has not the programs of the generator script.
        """
        workload = self._asked.workload
        scripts.check_programs("the workload", (*workload.needs, *needed(workload.options)))
        placement = self._place(size)
        # It keeps off CPUs that instances are pinned to.
        apart = placement.left if placement.cpus and placement.left else None
        return LocalService(
            Instances(self._asked, size, placement, self._machine, self._controllers),
            Load(self._asked, size, self._machine, self._controllers, apart),
        )

    def instances(self, size: Size, cable: Port) -> Instances:
        """A service that is not yet started, loaded over a cable.

        Raises:
            PlanError: The machine is too small for it.
        """
        return Instances(self._asked, size, self._place(size), self._machine, self._controllers, cable=cable)

    def _place(self, size: Size) -> InstancePlacement:
        return place(self._asked.deployment, size, self._layout, self._memory_mb, oversubscribe=self._oversubscribe)


class LocalService(SplitService):
    """Instances and their load generator on one machine."""

    def start(self) -> None:
        """Bring the instances up, then make what the load is offered from."""
        self._instances.start()
        self._load.start()

    def stop(self) -> None:
        """See Service; what is loaded from goes first."""
        try:
            self._load.stop()
        finally:
            self._instances.stop()


PROGRAMS = {
    "SIP service": ("kamailio", "redis-server", "redis-cli", "sipp"),
    "HTTP proxy": ("haproxy", "nginx", "httperf"),
}
"""That the scripts of the services in tests/characterization/specs start. Other services have needs of their own."""


def missing() -> Iterator[PreflightProblem]:
    """Everything; touches nothing."""
    try:
        cgroups.discover()
    except Unsupported as error:
        yield PreflightProblem(str(error), "without it services cannot be sized")
    path = environment({})["PATH"]
    for service, names in PROGRAMS.items():
        absent = [program for program in names if shutil.which(program, path=path) is None]
        if absent:
            yield PreflightProblem(
                f"{', '.join(absent)} missing for the {service} of tests/characterization",
                "as root on Debian or Ubuntu: resources/tools/packages.sh characterization",
            )
