"""Services on this machine: each instance is a network namespace and a control group with the user's script."""

import shutil
from collections.abc import Iterator

from resources.libraries.python.drivers.host.cgroups import cgroups
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.services import scripts
from resources.libraries.python.drivers.services.instances import Instances
from resources.libraries.python.drivers.services.load import Load
from resources.libraries.python.drivers.services.scripts import environment
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.plan import Port
from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.model.service.spec import Size
from resources.libraries.python.model.service.workload import needed
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.planning.placement.instance_cpus import InstancePlacement, place
from resources.libraries.python.testbed.roles.service import SplitService


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
