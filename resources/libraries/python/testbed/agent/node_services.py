"""A node's part in a service that is sized in a lab: its instances, or the generator script, with the user's files."""

from pathlib import Path

from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.testbed.agent.bundle import ServiceBundle, write
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
            if self._claimed:
                self._machine.remove_folder(FOLDER)
                self._claimed = False
