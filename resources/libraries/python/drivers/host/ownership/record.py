"""What is written down about a run on this machine, so that the next one can tell what a killed one left."""

import json
from pathlib import Path

from pydantic import Field, ValidationError

from resources.libraries.python.drivers.containers.container_cleanup import Contained
from resources.libraries.python.drivers.host.nics.nic_driver import Binding
from resources.libraries.python.drivers.host.nics.nic_state import Adopted
from resources.libraries.python.drivers.host.nics.parent_function import ParentFunction
from resources.libraries.python.drivers.host.ownership.processes import Process
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.base import Frozen


class Record(Frozen):
    """Who holds the machine and what is theirs."""

    owner: Process
    user: str
    since: str
    """UTC, ISO 8601."""
    namespaces: dict[str, int | None] = Field(default_factory=dict)
    """Name to inode; None from the moment of the claim until it is made."""
    workers: tuple[Process, ...] = ()
    groups: tuple[Path, ...] = ()
    """Folders of control groups."""
    containers: tuple[Contained, ...] = ()
    """Containers of a container engine."""
    folders: tuple[Path, ...] = ()
    """Folders of files, each made by that run."""
    traces: tuple[str, ...] = ()
    """Names of tracing instances of the kernel."""
    settings: dict[str, str] = Field(default_factory=dict)
    """Kernel settings that were changed, by path below /proc/sys, with the values they had before."""
    ports: tuple[Adopted, ...] = ()
    """Physical ports that are in use, as they were before."""
    bindings: tuple[Binding, ...] = ()
    """PCI devices that have another driver for now."""
    functions: tuple[ParentFunction, ...] = ()
    """PCI ports whose virtual functions that run has made."""
    huge_files: tuple[str, ...] = ()
    """Prefixes of files in hugetlbfs that programs of DPDK keep their memory in."""

    @property
    def empty(self) -> bool:
        """Whether nothing has to be removed or put back, settings apart."""
        made = (self.namespaces, self.workers, self.groups, self.containers, self.folders, self.traces)
        return not any((*made, self.ports, self.bindings, self.functions, self.huge_files))

    def __str__(self) -> str:
        return f"pid {self.owner.pid} (user {self.user}) since {self.since}: {self.owner.command}"


def read(path: Path) -> Record | None:
    """The record in a file; None when there is none.

    Raises:
        CsitError: The file is something else.
    """
    try:
        return Record.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise CsitError(f"{path} is no record of this program; look at it and remove it") from error


def write(path: Path, record: Record) -> None:
    """Replace the file as a whole: a run that is killed while it writes leaves the old record."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(record.model_dump(mode="json")), encoding="utf-8")
    new.replace(path)
