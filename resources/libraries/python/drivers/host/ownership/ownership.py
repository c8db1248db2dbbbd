"""One run at a time on a machine, and nothing left behind by a run that was killed.

The lock is a `flock`: the kernel releases it with the process that holds it, however that ended. Beside it lies
a record of who holds the lock and of what that run made; every name is written there before the thing is made. So
leftovers of a killed run are distinguished from objects of other programs.
"""

import fcntl
import logging
import os
import shutil
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.host.cgroups.cgroup_tree import end_and_remove
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.links.netlink import GONE, Netlink
from resources.libraries.python.drivers.host.links.rtnetlink_messages import delete_ports
from resources.libraries.python.drivers.host.nics.nic_adoption import AdoptedPort, give_back
from resources.libraries.python.drivers.host.nics.nic_driver import Binding, ParentFunction
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.ownership.ownership_record import Claims, OwnershipRecord, read_record
from resources.libraries.python.drivers.host.ownership.processes import Process, process, user
from resources.libraries.python.errors import CsitError, InUse
from resources.libraries.python.model.driver import Leftover
from resources.libraries.python.supervisor import Supervisor

DIRECTORY = Path("/run/csit-density")
_log = logging.getLogger(__name__)


class MachineLock(Claims):
    """The right to change this machine's network, and the record of what was made by it.

    A context manager; one holder per machine.

    `directory`: Where lock and record are; another one for tests.
    `settings_root`: Where kernel settings are; another one for tests.
    """

    def __init__(self, directory: Path = DIRECTORY, settings_root: Path = Path("/proc/sys")) -> None:
        super().__init__(directory / "owner.json")
        self._directory = directory
        self._settings_root = settings_root
        self._descriptor = -1
        self._inherited: OwnershipRecord | None = None
        self._supervisor: Supervisor | None = None

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            InUse: Another run holds it; the text says which.
            CsitError: The lock cannot be had.
        """
        try:
            with suppress(FileExistsError):
                self._directory.mkdir(parents=True)
                self._directory.chmod(0o755)  # whatever the umask
            descriptor = os.open(self._directory / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            os.fchmod(descriptor, 0o600)  # what can open it can hold it
        except OSError as error:
            raise CsitError(f"{self._directory} cannot be used ({error.strerror}); run as root") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            holder = read_record(self._path) or "an unknown run"
            raise InUse(f"this machine is in use by {holder}") from error
        self._descriptor = descriptor
        # A forked worker must not hold the lock of a parent that was killed.
        os.register_at_fork(after_in_child=self._forget_lock)
        self._inherited = read_record(self._path)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        own = {"owner": process(os.getpid()), "user": user(), "since": since}
        earlier = self._inherited
        self._record = earlier.model_copy(update=own) if earlier else OwnershipRecord.model_validate(own)
        self._write()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put settings back and release the lock. What is still claimed stays on record for the next run.

        Raises:
            CsitError: A setting could not be put back, and stays on record.
        """
        try:
            self._restore_settings()
        finally:
            if self._supervisor is not None:
                self._supervisor.close()
                self._supervisor = None
            record = self._held()
            if record.empty and not record.settings:
                self._path.unlink(missing_ok=True)
            self._record = None
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self._forget_lock()

    def supervise(self, *places: Path) -> None:
        """Have all processes in network namespaces and control groups ended with this one, should it be killed.

        Raises:
            CsitError: One of them is not there, or the supervisor has ended.
        """
        self._held()
        try:
            if self._supervisor is None:
                self._supervisor = Supervisor()
            for place in places:
                self._supervisor.add(place)
        except OSError as error:
            raise CsitError(f"processes in {' and '.join(map(str, places))} cannot be supervised: {error}") from error

    def folder(self, name: str) -> Path:
        """A private folder for what a part keeps while it runs. Its maker removes it; of a killed run the next one."""
        self._held()
        path = self._directory / "run" / name
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def set_for_run(self, setting: str, value: str) -> str | None:
        """Change a kernel setting until the lock is released.

        `setting`: path below /proc/sys, such as `kernel/sched_rt_runtime_us`.

        Returns:
            The value it had before; None where the kernel has no such setting or does not let us change it.
        """
        path = self._settings_root / setting
        earlier = self._held().settings
        try:
            before = path.read_text(encoding="ascii").strip()
            self._change(settings={setting: before, **earlier})
            path.write_text(value, encoding="ascii")
        except OSError as error:
            self._change(settings=earlier)  # what refused this value may refuse to be put back as well
            _log.warning("%s stays as it is: %s", path, error.strerror)
            return None
        return before

    def _restore_settings(self) -> list[str]:
        return take_all([partial(self._restore_setting, *row) for row in self._held().settings.items()])

    def _restore_setting(self, setting: str, before: str) -> list[str]:
        path = self._settings_root / setting
        try:
            path.write_text(before, encoding="ascii")
        except OSError as error:
            raise CsitError(f"{path} could not be set back to {before}: {error.strerror}") from error
        self._change(settings={name: value for name, value in self._held().settings.items() if name != setting})
        return [f"set {setting} back to {before}"]

    def remove_leftovers(self) -> list[str]:
        """Remove what an earlier run left. To be called before anything is made.

        Returns:
            One sentence for each thing that was removed.

        Raises:
            CsitError: Something could not be removed.
        """
        self._held()
        earlier, self._inherited = self._inherited, None
        if earlier is None:
            return []
        removed = [f"{sentence} of {earlier}" for sentence in self._remove(earlier)]
        removed += [f"{sentence}, changed by {earlier}" for sentence in self._restore_settings()]
        for sentence in removed:
            _log.info(sentence)
        return removed

    def leftovers(self) -> list[str]:
        """Objects that this run has claimed, has not released, and that exist."""
        record = self._held()
        return [
            *(f"network namespace {name}" for name, inode in record.namespaces.items() if _is_ours(name, inode)),
            *(f"process {worker.pid} ({worker.command_now()})" for worker in record.workers if worker.alive),
            *(f"control group {folder}" for folder in record.groups if folder.exists()),
            *(f"{each.label} {entry}".strip() for each, entries in _declared(record) for entry in entries),
            *(f"folder {folder}" for folder in record.folders if folder.exists()),
            *(f"{port} in use as {port.interface}" for port in record.ports),
            *map(str, (*record.bindings, *record.functions)),
        ]

    def remove_claimed(self) -> list[str]:
        """Remove by force all that this run has claimed and not released.

        Returns:
            One sentence for each thing that was removed.

        Raises:
            CsitError: Something could not be removed.
        """
        removed = self._remove(self._held())
        for sentence in removed:
            _log.info(sentence)
        return removed

    def _remove(self, record: OwnershipRecord) -> list[str]:
        """Kill the workers of a record, put ports back, remove namespaces, take all off the record; say what it was.

        Raises:
            CsitError: Something could not be removed, and stays on the record; all else was.
        """
        commands = {each: each.command_now() for each in record.workers}  # of all: with one another may end
        return take_all(
            (
                *(partial(self._kill, each, text) for each, text in commands.items()),
                partial(self._remove_groups, record.groups),
                # Before folders, which containers have mounted.
                *(partial(self._remove_declared, declared, entries) for declared, entries in _declared(record)),
                self._empty_run_folder,
                *(partial(self.remove_folder, folder) for folder in record.folders),
                *(partial(self._restore, "bindings", binding) for binding in record.bindings),
                *(partial(self._restore, "functions", function) for function in record.functions),
                # Before their namespaces: a physical port that is in one then ends up in the machine's first one.
                partial(self._give_back, record.ports),
                *(partial(self._remove_namespace, name, inode) for name, inode in record.namespaces.items()),
            )
        )

    def _kill(self, worker: Process, command: str) -> list[str]:
        killed = worker.kill()
        self._change(workers=tuple(each for each in self._held().workers if each != worker))
        return [f"killed worker process {worker.pid} ({command})"] if killed else []

    def _remove_groups(self, folders: Sequence[Path]) -> list[str]:
        try:
            return end_and_remove(folders)
        finally:
            self.release("groups", [folder for folder in folders if not folder.exists()])

    def _remove_declared(self, declared: Leftover, entries: tuple[Any, ...]) -> list[str]:
        removed: list[str] = driver_registry.load(declared.remove)(entries)
        self.release(declared.key, entries)
        return removed

    def _empty_run_folder(self) -> list[str]:
        shutil.rmtree(self._directory / "run", ignore_errors=True)
        return []

    def _restore(self, key: str, taken: Binding | ParentFunction) -> list[str]:
        restored = taken.restore()
        self.release(key, [taken])
        return restored

    def _give_back(self, ports: Sequence[AdoptedPort]) -> list[str]:
        returned = give_back(ports)
        self.release("ports", ports)
        return returned

    def _remove_namespace(self, name: str, inode: int | None) -> list[str]:
        if any(port.inside == name for port in self._held().ports):
            return []  # a port could not be given back: its state is restored from there
        ours = _is_ours(name, inode)
        if ours:
            # The name of a namespace that was not finished, or that was removed since, cannot be entered.
            with suppress(CsitError):
                namespaces.run_inside(name, _delete_ports)
            namespaces.remove(name)
        self.release_namespaces([name])
        return [f"removed network namespace {name}"] if ours else []

    def remove_folder(self, folder: Path) -> list[str]:
        """Remove a claimed folder with its contents, and take it off the record; say so where it was there.

        Raises:
            CsitError: It cannot be removed.
        """
        there = folder.exists()
        try:
            if there:
                shutil.rmtree(folder)
        except OSError as error:
            raise CsitError(f"folder {folder} cannot be removed: {error.strerror}") from error
        self.release("folders", [folder])
        return [f"removed folder {folder}"] if there else []

    def _forget_lock(self) -> None:
        if self._supervisor is not None:
            self._supervisor.let_go()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _declared(record: OwnershipRecord) -> list[tuple[Leftover, tuple[Any, ...]]]:
    return [(driver_registry.leftovers()[key], entries) for key, entries in record.declared.items()]


def _is_ours(name: str, inode: int | None) -> bool:
    """Whether a namespace is that of the record, not a later one of the same name."""
    return namespaces.inode(name) is not None and inode in (None, namespaces.inode(name))


def _delete_ports() -> None:
    with closing(Netlink()) as netlink:
        netlink.do([delete_ports()], tolerate=GONE)
