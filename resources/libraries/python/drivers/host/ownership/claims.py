"""Ownership record of a run on a machine: what it made or took, written to disk before it is made or taken."""

import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field, ValidationError

from resources.libraries.python.drivers.containers.container_cleanup import Contained
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.nics.nic_adoption import AdoptedPort
from resources.libraries.python.drivers.host.nics.nic_driver import Binding, ParentFunction
from resources.libraries.python.drivers.host.ownership.processes import Process, process
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.base import Frozen


class OwnershipRecord(Frozen):
    """Holder of the machine lock and everything that its run made or took."""

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
    ports: tuple[AdoptedPort, ...] = ()
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


def read_record(path: Path) -> OwnershipRecord | None:
    """The record in a file; None when there is none.

    Raises:
        CsitError: The file is something else.
    """
    try:
        return OwnershipRecord.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise CsitError(f"{path} is no record of this program; look at it and remove it") from error


def write_record(path: Path, record: OwnershipRecord) -> None:
    """Replace the file as a whole: a run that is killed while it writes leaves the old record."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(record.model_dump(mode="json")), encoding="utf-8")
    new.replace(path)


class Claims:
    """The record of the run that holds the machine's lock, kept on disk with every change."""

    def __init__(self, path: Path) -> None:
        """Start without a record; there is none before the lock is held."""
        self._path = path
        self._record: OwnershipRecord | None = None

    def claim_namespaces(self, names: Iterable[str]) -> None:
        """Record namespaces before they are made.

        Raises:
            CsitError: One is there already.
        """
        record, names = self._held(), tuple(names)
        for name in names:
            if name in record.namespaces or namespaces.inode(name) is not None:
                whose = "left by an earlier run" if name in record.namespaces else f"not ours; `ip netns del {name}`"
                raise CsitError(f"there is a network namespace {name} already, {whose}")
        self._change(namespaces={**record.namespaces, **dict.fromkeys(names)})

    def confirm_namespaces(self, names: Iterable[str]) -> None:
        """Record the inodes of namespaces after they are made."""
        self._change(namespaces={**self._held().namespaces, **{name: namespaces.inode(name) for name in names}})

    def release_namespaces(self, names: Iterable[str]) -> None:
        """Remove namespaces from the record after their removal."""
        gone = set(names)
        self._change(namespaces={name: inode for name, inode in self._held().namespaces.items() if name not in gone})

    def claim_process(self, pid: int) -> None:
        """Record a worker process, so that it is killed if it outlives this run."""
        self._change(workers=(*self._held().workers, process(pid)))

    def release_process(self, pid: int) -> None:
        """Remove a worker process that has exited from the record."""
        self._change(workers=tuple(worker for worker in self._held().workers if worker.pid != pid))

    def claim_groups(self, folders: Iterable[Path]) -> None:
        """Record control groups by their folders before they are made.

        Raises:
            CsitError: One is there already.
        """
        record, folders = self._held(), tuple(folders)
        for folder in folders:
            if folder in record.groups or folder.exists():
                whose = "left by an earlier run" if folder in record.groups else f"not ours; `rmdir {folder}`"
                raise CsitError(f"there is a control group {folder} already, {whose}")
        self._change(groups=(*record.groups, *folders))

    def claim_made_groups(self, folders: Iterable[Path]) -> None:
        """Record control groups that a container engine made for this run."""
        record = self._held()
        self._change(groups=tuple(dict.fromkeys((*record.groups, *folders))))

    def release_groups(self, folders: Iterable[Path]) -> None:
        """Remove control groups from the record."""
        gone = set(folders)
        self._change(groups=tuple(folder for folder in self._held().groups if folder not in gone))

    def claim_container(self, container: Contained) -> None:
        """Record a container before it is created."""
        self._change(containers=(*self._held().containers, container))

    def release_containers(self, containers: Iterable[Contained]) -> None:
        """Remove containers from the record."""
        gone = tuple(containers)
        self._change(containers=tuple(each for each in self._held().containers if each not in gone))

    def claim_folder(self, folder: Path) -> None:
        """Record a folder before it is made; its contents are removed with it.

        Raises:
            CsitError: It is there already.
        """
        record = self._held()
        if folder in record.folders or folder.exists():
            whose = "left by an earlier run" if folder in record.folders else "not ours; look at it and remove it"
            raise CsitError(f"there is a folder {folder} already, {whose}")
        self._change(folders=(*record.folders, folder))

    def release_folder(self, folder: Path) -> None:
        """Remove a folder from the record."""
        self._change(folders=tuple(each for each in self._held().folders if each != folder))

    def claim_trace(self, name: str) -> None:
        """Record a tracing instance of the kernel before it is made."""
        self._change(traces=(*self._held().traces, name))

    def release_trace(self, name: str) -> None:
        """Remove a tracing instance from the record."""
        self._change(traces=tuple(each for each in self._held().traces if each != name))

    def claim_ports(self, ports: Iterable[AdoptedPort]) -> None:
        """Record physical ports and their state before they are moved.

        Raises:
            CsitError: One is in use.
        """
        ports, known = tuple(ports), {(port.home, port.device) for port in self._held().ports}
        for port in ports:
            if (port.home, port.device) in known:
                raise CsitError(f"{port} is in use, or left by an earlier run")
        self._change(ports=(*self._held().ports, *ports))

    def release_ports(self, ports: Iterable[AdoptedPort]) -> None:
        """Remove restored ports from the record."""
        home = tuple(ports)
        self._change(ports=tuple(port for port in self._held().ports if port not in home))

    def claim_binding(self, binding: Binding) -> None:
        """Record the driver of a PCI device before another one is bound."""
        self._change(bindings=(*self._held().bindings, binding))

    def release_binding(self, binding: Binding) -> None:
        """Remove a PCI device that has its original driver again from the record."""
        self._change(bindings=tuple(each for each in self._held().bindings if each != binding))

    def claim_functions(self, port: ParentFunction) -> None:
        """Record a physical function before its virtual functions are created."""
        self._change(functions=(*self._held().functions, port))

    def release_functions(self, port: ParentFunction) -> None:
        """Remove a physical function from the record after its virtual functions are removed."""
        self._change(functions=tuple(each for each in self._held().functions if each != port))

    def claim_huge_files(self, prefix: str) -> None:
        """Record the prefix of a program's hugetlbfs files before the program starts."""
        self._change(huge_files=(*self._held().huge_files, prefix))

    def release_huge_files(self, prefix: str) -> None:
        """Remove the prefix of hugetlbfs files from the record."""
        self._change(huge_files=tuple(each for each in self._held().huge_files if each != prefix))

    def _held(self) -> OwnershipRecord:
        if self._record is None:
            raise CsitError("the machine lock is not held")
        return self._record

    def _change(self, **changes: object) -> None:
        self._record = self._held().model_copy(update=changes)
        self._write()

    def _write(self) -> None:
        write_record(self._path, self._held())
