"""A node's part in a service that is sized in a lab: its instances, or the generator script, with the user's files."""

import shutil
from pathlib import Path

from resources.libraries.python.drivers.host.cgroups import cgroups
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.services import scripts
from resources.libraries.python.drivers.services.load import Load, LoadNetwork
from resources.libraries.python.drivers.services.orchestrator import LocalOrchestrator
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.plan import Port
from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.model.service.spec import Size
from resources.libraries.python.model.service.workload import needed
from resources.libraries.python.testbed.agent.bundle import ServiceBundle, as_on_node, write
from resources.libraries.python.testbed.roles.service import SizedService, SplitService

FOLDER = Path("/var/lib/csit-density/service")
"""Folder of the user's files on the node. Not below /run, from which programs cannot be started everywhere."""


class NodeService(SplitService):
    """Instances or a load, with the user's files.

    `part`: Its scripts are those of `specifications`.
    """

    def __init__(self, part: SizedService, brought: ServiceBundle, machine: MachineLock) -> None:
        super().__init__(part, part)
        self._brought = brought
        self._machine = machine
        self._claimed = False

    def start(self) -> None:
        """Write the files, bring the part up.

        Raises:
            CsitError: Files cannot be written, or what the part raises.
        """
        self._machine.claim_folder(FOLDER)
        self._claimed = True
        write(self._brought, FOLDER)
        self._load.start()

    def stop(self) -> None:
        """Remove the part, then the files. Safe to call after a failure.

        Raises:
            CsitError: Something could not be removed.
        """
        try:
            self._load.stop()
        finally:
            self._remove_files()

    def _remove_files(self) -> None:
        if not self._claimed:
            return
        try:
            if FOLDER.exists():
                shutil.rmtree(FOLDER)
        except OSError as error:
            raise CsitError(f"{FOLDER} cannot be removed: {error.strerror}") from error
        self._machine.release("folders", [FOLDER])
        self._claimed = False


def specifications(brought: ServiceBundle) -> Specifications:
    """Specifications of a request to a node, with the scripts where they will be."""
    return as_on_node(brought, FOLDER)


def instances_here(
    brought: ServiceBundle, size: Size, cable: Port, orchestrator: LocalOrchestrator, machine: MachineLock
) -> NodeService:
    """This node has the instances.

    Raises:
        PlanError: The machine is too small for them.
    """
    return NodeService(orchestrator.instances(size, cable), brought, machine)


def load_here(brought: ServiceBundle, size: Size, cable: Port, machine: MachineLock) -> NodeService:
    """This node offers the load.

    Raises:
        Unsupported: Programs of the generator script are missing, or there are no control groups.
    """
    asked, controllers = specifications(brought), cgroups.discover()
    scripts.check_programs("the workload", (*asked.workload.needs, *needed(asked.workload.options)))
    load = Load(asked, size, machine, controllers, network=LoadNetwork(cable, machine))
    return NodeService(load, brought, machine)
