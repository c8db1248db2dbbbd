"""Ownership record of a run on a machine: what it made or took, written to disk before it is made or taken."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.nics.nic_adoption import AdoptedPort
from resources.libraries.python.drivers.host.nics.nic_driver import Binding, ParentFunction
from resources.libraries.python.drivers.host.ownership.processes import Process, process
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.redaction import command_text


class OwnershipRecord(Frozen):
    """Holder of the machine lock and everything that its run made or took.

    It also has what packages of drivers declare as their leftovers, under the keys of these.
    """

    model_config = ConfigDict(extra="allow")

    owner: Process
    user: str
    since: str
    """UTC, ISO 8601."""
    namespaces: dict[str, int | None] = Field(default_factory=dict)
    """Name to inode; None from the moment of the claim until it is made."""
    workers: tuple[Process, ...] = ()
    groups: tuple[Path, ...] = ()
    """Folders of control groups."""
    folders: tuple[Path, ...] = ()
    """Folders of files, each made by that run."""
    settings: dict[str, str] = Field(default_factory=dict)
    """Kernel settings that were changed, by path below /proc/sys, with the values they had before."""
    ports: tuple[AdoptedPort, ...] = ()
    """Physical ports that are in use, as they were before."""
    bindings: tuple[Binding, ...] = ()
    """PCI devices that have another driver for now."""
    functions: tuple[ParentFunction, ...] = ()
    """PCI ports whose virtual functions that run has made."""

    @property
    def empty(self) -> bool:
        """Whether nothing has to be removed or put back, settings apart."""
        made = (self.namespaces, self.workers, self.groups, self.folders, self.ports, self.bindings, self.functions)
        return not any((*made, *self.declared.values()))

    @property
    def declared(self) -> dict[str, tuple[Any, ...]]:
        """Leftovers that packages of drivers declare, by their keys."""
        return self.__pydantic_extra__ or {}

    @model_validator(mode="before")
    @classmethod
    def _declared_fit(cls, data: object) -> object:
        """Read what is under keys that packages declare, and refuse all others that are not fields."""
        if not isinstance(data, dict):
            return data
        rest = {key: value for key, value in data.items() if key not in cls.model_fields}
        read = {}
        for key, entries in rest.items():
            if key not in driver_registry.leftovers():
                raise ValueError(f"no driver declares leftovers under {key}")
            entry = driver_registry.leftovers()[key].entry
            model: TypeAdapter[Any] = TypeAdapter(str if entry is None else cast(Any, driver_registry.load(entry)))
            read[key] = tuple(model.validate_python(each) for each in TypeAdapter(list[Any]).validate_python(entries))
        return {**data, **read}

    def __str__(self) -> str:
        return f"pid {self.owner.pid} (user {self.user}) since {self.since}: {self.owner.command}"


def read_record(path: Path) -> OwnershipRecord | None:
    """The record in a file; None when there is none.

    Raises:
        CsitError: The file is something else.
    """
    try:
        return OwnershipRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise CsitError(f"{path} is no record of this program; look at it and remove it") from error


def write_record(path: Path, record: OwnershipRecord) -> None:
    """Replace the file as a whole: a run that is killed while it writes leaves the old record."""
    new = path.with_suffix(".new")
    with new.open("w", encoding="utf-8") as file:
        # Whatever the umask: all users may read what holds a machine, and root acts on it.
        os.fchmod(file.fileno(), 0o644)
        json.dump(record.model_dump(mode="json"), file)
    new.replace(path)


def _there(what: str, on_record: bool, remedy: Sequence[object] = ()) -> CsitError:
    """The error of something that is there before it was made."""
    fix = f"`{command_text(*remedy)}`" if remedy else "look at it and remove it"
    return CsitError(f"there is a {what} already, {'left by an earlier run' if on_record else f'not ours; {fix}'}")


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
                raise _there(f"network namespace {name}", name in record.namespaces, ("ip", "netns", "del", name))
        self._change(namespaces={**record.namespaces, **dict.fromkeys(names)})

    def confirm_namespaces(self, names: Iterable[str]) -> None:
        """Record the inodes of namespaces after they are made."""
        self._change(namespaces={**self._held().namespaces, **{name: namespaces.inode(name) for name in names}})

    def release_namespaces(self, names: Iterable[str]) -> None:
        """Remove namespaces from the record after their removal."""
        gone = set(names)
        self._change(namespaces={name: inode for name, inode in self._held().namespaces.items() if name not in gone})

    def claim_process(self, pid: int) -> None:
        """Record a worker process, so that it is killed if it outlives this run; one that has ended needs no record."""
        try:
            worker = process(pid)
        except ProcessLookupError:  # its parent reports why
            return
        self._change(workers=(*self._held().workers, worker))

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
                raise _there(f"control group {folder}", folder in record.groups, ("rmdir", folder))
        self.claim("groups", *folders)

    def claim_made_groups(self, folders: Iterable[Path]) -> None:
        """Record control groups that a container engine made for this run."""
        record = self._held()
        self._change(groups=tuple(dict.fromkeys((*record.groups, *folders))))

    def claim(self, key: str, *entries: object) -> None:
        """Record things before they are made or taken.

        `key`: Of a list of the record, or of the leftovers that a package of drivers declares.
        """
        self._change(**{key: (*self._entries(key), *entries)})

    def release(self, key: str, entries: Iterable[object]) -> None:
        """Remove entries from a list of the record, after their removal."""
        gone = tuple(entries)
        self._change(**{key: tuple(each for each in self._entries(key) if each not in gone)})

    def _entries(self, key: str) -> tuple[object, ...]:
        return getattr(self._held(), key, ())

    def claim_folder(self, folder: Path) -> None:
        """Record a folder before it is made; its contents are removed with it.

        Raises:
            CsitError: It is there already.
        """
        record = self._held()
        if folder in record.folders or folder.exists():
            raise _there(f"folder {folder}", folder in record.folders)
        self.claim("folders", folder)

    def claim_ports(self, ports: Iterable[AdoptedPort]) -> None:
        """Record physical ports and their state before they are moved.

        Raises:
            CsitError: One is in use.
        """
        ports, known = tuple(ports), {(port.home, port.device) for port in self._held().ports}
        for port in ports:
            if (port.home, port.device) in known:
                raise CsitError(f"{port} is in use, or left by an earlier run")
        self.claim("ports", *ports)

    def _held(self) -> OwnershipRecord:
        if self._record is None:
            raise CsitError("the machine lock is not held")
        return self._record

    def _change(self, **changes: object) -> None:
        self._record = self._held().model_copy(update=changes)
        self._write()

    def _write(self) -> None:
        write_record(self._path, self._held())
