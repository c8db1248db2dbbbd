"""What the VPPs of a plan on one machine share."""

import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.drivers.host.cpu.memory import discover_memory
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.sockets.socket_paths import folder_of
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.drivers.vpp.startup import HugePageChoice, Waiting, choose_pages, waiting
from resources.libraries.python.model.plan import Plan


@dataclass(frozen=True, slots=True)
class Site:
    """A plan, a machine, and how VPP is run there."""

    plan: Plan
    fabric: Fabric
    machine: MachineLock
    settings: Vpp
    largest_frame_bytes: int

    @property
    def folder(self) -> Path:
        """Has a folder for each VPP, and the sockets where two of them meet."""
        return folder_of(self.machine)

    @property
    def prefix(self) -> Path:
        """Where VPP is installed."""
        return Path(self.settings.prefix)

    def pages(self, instances: int) -> HugePageChoice:
        """Which pages some VPPs get, by what is free now."""
        node = self.plan.cores.numa_node
        here = [each for each in discover_memory() if each.node == node]
        free_2mb, free_1gb = sum(each.hugepages_2mb for each in here), sum(each.hugepages_1gb for each in here)
        return choose_pages(self.settings, instances, free_2mb, free_1gb)

    def waiting(self) -> Waiting:
        """What threads do when nothing comes."""
        return waiting(self.settings, oversubscribed=self.plan.cores.oversubscribed)


def remove_folder(folder: Path, owner: str) -> None:
    """Remove the folder of an owner, and the common one with the last."""
    shutil.rmtree(folder / owner, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()
