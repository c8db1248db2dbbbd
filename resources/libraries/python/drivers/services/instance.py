"""One instance of a component: limited, addressed, brought up by a script."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup, Controllers, GroupLimits
from resources.libraries.python.drivers.host.links.namespaces import name_of
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.services import scripts


class ServiceInstance:
    """A control group and a folder, inside a namespace that is there already."""

    def __init__(self, name: str, controllers: Controllers, machine: MachineLock, limits: GroupLimits) -> None:
        """Prepare.

        Args:
            name: `<component>-<number>`.
            controllers: Of this machine.
            machine: Its lock, held.
            limits: What it may use.
        """
        self.name = name
        self.group = ControlGroup(controllers, name_of(name))
        self._machine = machine
        self._limits = limits
        self._claimed = False
        self._folder: Path | None = None
        self._busy = False
        """Whether it had processes when its script had ended."""

    def make(self) -> None:
        """Make group and folder.

        Raises:
            Unsupported: The machine cannot limit it.
            CsitError: There is such a group.
        """
        self._machine.claim_groups(self.group.folders)
        self._claimed = True
        self._folder = self._machine.folder(f"instances/{self.name}")
        self.group.make(self._limits)

    def run(self, what: str, script: Path, variables: Mapping[str, str], within_s: float) -> str:
        """Run a script in it; what it wrote on standard output.

        Args:
            what: For a person: `install script of edge-1`.
            script: Absolute path.
            variables: Of its environment; the instance's folder is added.
            within_s: Deadline in seconds.

        Raises:
            CommandFailed: It failed.
            NotReady: It did not end in time.
        """
        assert self._folder is not None  # noqa: S101 - made first
        said = scripts.run(
            what,
            script,
            namespace=name_of(self.name),
            doors=self.group.doors,
            variables={**variables, "CSIT_FOLDER": str(self._folder)},
            folder=self._folder,
            within_s=within_s,
        )
        self._busy = bool(self.group.processes())
        return said

    def problems(self) -> tuple[str, ...]:
        """What is wrong with it, a sentence each."""
        found = []
        if killed := self.group.killed_for_memory():
            limit = f"{self._limits.memory_bytes >> 20} MB" if self._limits.memory_bytes is not None else "memory"
            found.append(f"{self.name} used up its {limit}: the kernel killed {killed} of its processes")
        if self._busy and not self.group.processes():
            found.append(f"all processes of {self.name} have ended")
        return tuple(found)

    def remove(self) -> None:
        """Remove group and folder; its processes must have ended. Safe to call after a failure."""
        if not self._claimed:
            return
        self.group.remove()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        self._machine.release_groups(self.group.folders)
        self._claimed = False

    @property
    def folders(self) -> tuple[Path, ...]:
        """Of its group; none before it is made, when a group of that name is not ours."""
        return self.group.folders if self._claimed else ()
