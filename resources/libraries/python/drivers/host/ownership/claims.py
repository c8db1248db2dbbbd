"""What a run has made or taken on a machine, on record: every name is written there before the thing is made."""

from collections.abc import Iterable
from pathlib import Path

from resources.libraries.python.drivers.containers.container_cleanup import Contained
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.nics.nic_driver import Binding
from resources.libraries.python.drivers.host.nics.nic_state import Adopted
from resources.libraries.python.drivers.host.nics.parent_function import ParentFunction
from resources.libraries.python.drivers.host.ownership import record as records
from resources.libraries.python.drivers.host.ownership.processes import process
from resources.libraries.python.drivers.host.ownership.record import Record
from resources.libraries.python.errors import CsitError


class Claims:
    """The record of the run that holds the machine's lock, kept on disk with every change."""

    def __init__(self, path: Path) -> None:
        """Nothing is on record before the lock is held."""
        self._path = path
        self._record: Record | None = None

    def claim_namespaces(self, names: Iterable[str]) -> None:
        """Say before making them that these are ours.

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
        """Say after making them which ones exactly they are."""
        self._change(namespaces={**self._held().namespaces, **{name: namespaces.inode(name) for name in names}})

    def release_namespaces(self, names: Iterable[str]) -> None:
        """Say after removing them that they are gone."""
        gone = set(names)
        self._change(namespaces={name: inode for name, inode in self._held().namespaces.items() if name not in gone})

    def claim_process(self, pid: int) -> None:
        """Say that a worker process is ours, so that it is killed if it outlives this run."""
        self._change(workers=(*self._held().workers, process(pid)))

    def release_process(self, pid: int) -> None:
        """Say that a worker process has ended."""
        self._change(workers=tuple(worker for worker in self._held().workers if worker.pid != pid))

    def claim_groups(self, folders: Iterable[Path]) -> None:
        """Say before making them that these control groups are ours, by their folders.

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
        """Say that control groups which a container engine has made for us are ours."""
        record = self._held()
        self._change(groups=tuple(dict.fromkeys((*record.groups, *folders))))

    def release_groups(self, folders: Iterable[Path]) -> None:
        """Say that control groups are gone."""
        gone = set(folders)
        self._change(groups=tuple(folder for folder in self._held().groups if folder not in gone))

    def claim_container(self, container: Contained) -> None:
        """Say before making it that a container is ours."""
        self._change(containers=(*self._held().containers, container))

    def release_containers(self, containers: Iterable[Contained]) -> None:
        """Say that containers are gone."""
        gone = tuple(containers)
        self._change(containers=tuple(each for each in self._held().containers if each not in gone))

    def claim_folder(self, folder: Path) -> None:
        """Say before making it that a folder of files is ours, with all that will be in it.

        Raises:
            CsitError: It is there already.
        """
        record = self._held()
        if folder in record.folders or folder.exists():
            whose = "left by an earlier run" if folder in record.folders else "not ours; look at it and remove it"
            raise CsitError(f"there is a folder {folder} already, {whose}")
        self._change(folders=(*record.folders, folder))

    def release_folder(self, folder: Path) -> None:
        """Say that a folder is gone."""
        self._change(folders=tuple(each for each in self._held().folders if each != folder))

    def claim_trace(self, name: str) -> None:
        """Say before making it that a tracing instance of the kernel is ours."""
        self._change(traces=(*self._held().traces, name))

    def release_trace(self, name: str) -> None:
        """Say that a tracing instance is gone."""
        self._change(traces=tuple(each for each in self._held().traces if each != name))

    def claim_ports(self, ports: Iterable[Adopted]) -> None:
        """Say before they are moved which physical ports are taken into use, and what they are like.

        Raises:
            CsitError: One is in use.
        """
        ports, known = tuple(ports), {(port.home, port.device) for port in self._held().ports}
        for port in ports:
            if (port.home, port.device) in known:
                raise CsitError(f"{port} is in use, or left by an earlier run")
        self._change(ports=(*self._held().ports, *ports))

    def release_ports(self, ports: Iterable[Adopted]) -> None:
        """Say that ports are at home again."""
        home = tuple(ports)
        self._change(ports=tuple(port for port in self._held().ports if port not in home))

    def claim_binding(self, binding: Binding) -> None:
        """Say before it is done that a PCI device gets another driver."""
        self._change(bindings=(*self._held().bindings, binding))

    def release_binding(self, binding: Binding) -> None:
        """Say that a PCI device has its own driver again."""
        self._change(bindings=tuple(each for each in self._held().bindings if each != binding))

    def claim_functions(self, port: ParentFunction) -> None:
        """Say before they are made that a port's virtual functions are ours."""
        self._change(functions=(*self._held().functions, port))

    def release_functions(self, port: ParentFunction) -> None:
        """Say that a port's virtual functions are gone."""
        self._change(functions=tuple(each for each in self._held().functions if each != port))

    def claim_huge_files(self, prefix: str) -> None:
        """Say before it starts that a program keeps memory in files of hugetlbfs that begin with this."""
        self._change(huge_files=(*self._held().huge_files, prefix))

    def release_huge_files(self, prefix: str) -> None:
        """Say that those files are gone."""
        self._change(huge_files=tuple(each for each in self._held().huge_files if each != prefix))

    def _held(self) -> Record:
        if self._record is None:
            raise CsitError("the machine lock is not held")
        return self._record

    def _change(self, **changes: object) -> None:
        self._record = self._held().model_copy(update=changes)
        self._write()

    def _write(self) -> None:
        records.write(self._path, self._held())
