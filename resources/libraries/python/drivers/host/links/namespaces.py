"""Network namespaces with names that `ip netns` knows."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from resources.libraries.python.drivers.host.kernel_files import opened, write
from resources.libraries.python.drivers.host.links.namespace_syscalls import (
    CLONE_NEWNET,
    MS_BIND,
    MS_REC,
    MS_SHARED,
    aside,
    mount,
    mount_sysfs,
    own_mounts,
    setns,
    unmount,
    unshare,
)
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.errors import CsitError, Unsupported

PREFIX = "csit-"
DIRECTORY = Path("/run/netns")
_SYSCTLS = Path("/proc/sys/net")
_CURRENT = "/proc/thread-self/ns/net"
Result = TypeVar("Result")
Settings = Mapping[str, str]
"""Sysctl path below `net` to value. A sysctl that the kernel lacks is skipped."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """A network namespace of this run, held open."""

    name: str
    descriptor: int
    netlink: Netlink

    def close(self) -> None:
        """Release it, so that it can end."""
        self.netlink.close()
        os.close(self.descriptor)


def name_of(owner: str) -> str:
    """The namespace of an owner of ports."""
    return f"{PREFIX}{owner}"


def path_of(name: str) -> Path:
    """Where a namespace is mounted."""
    return DIRECTORY / name


def create(wanted: Iterable[tuple[str, Settings]]) -> Iterator[Namespace]:
    """Make namespaces with their settings, one after the other. To be called by a thread that ends afterwards.

    Raises:
        CsitError: There is one of that name.
        Unsupported: This system does not allow it.
    """
    _share_directory()
    for name, settings in wanted:
        path = path_of(name)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY, 0o444))
        except FileExistsError as error:
            raise CsitError(f"there is a network namespace {name} already") from error
        try:
            unshare(CLONE_NEWNET)
            mount(_CURRENT, path, "none", MS_BIND)
        except OSError as error:
            path.unlink()
            raise Unsupported(f"network namespaces cannot be made here: {error.strerror}") from error
        _apply(settings)
        yield Namespace(name, os.open(path, os.O_RDONLY | os.O_CLOEXEC), Netlink())


def _share_directory() -> None:
    """As iproute2 does it: a namespace that is removed here ends in every mount namespace."""
    DIRECTORY.mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        mount("", DIRECTORY, "none", MS_SHARED | MS_REC)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise Unsupported(f"{DIRECTORY} cannot be shared: {error.strerror}") from error
        mount(str(DIRECTORY), DIRECTORY, "none", MS_BIND | MS_REC)
        mount("", DIRECTORY, "none", MS_SHARED | MS_REC)


def _apply(settings: Settings) -> None:
    for key, value in settings.items():
        with suppress(FileNotFoundError):
            write(_SYSCTLS / key, value)


def remove(name: str) -> None:
    """Take a namespace's name away; the kernel ends it when nothing is left that holds it."""
    path = path_of(name)
    try:
        unmount(path)
    except OSError as error:
        # EINVAL: no mount, only the file of a creation that was cut short.
        if error.errno not in (errno.EINVAL, errno.ENOENT):
            raise CsitError(f"network namespace {name} cannot be removed: {error.strerror}") from error
    path.unlink(missing_ok=True)


def inode(name: str) -> int | None:
    """Return the inode of a namespace, which identifies it; None without one."""
    try:
        return path_of(name).stat().st_ino
    except FileNotFoundError:
        return None


def run_inside(name: str, work: Callable[[], Result], *, sysfs: bool = False) -> Result:
    """Do work inside a namespace, in a thread that ends with it. Sockets opened there stay in the namespace.

    `sysfs`: whether programs that it starts see the namespace's ports in /sys, as `ip netns exec` has it, and not those
    of this process. What is mounted below /sys is not there then, such as control groups.

    Raises:
        CsitError: There is no such namespace, or it cannot be entered.
        Unsupported: Nothing can be mounted here.
    """

    def with_sysfs() -> Result:
        own_mounts()  # gone with the last of those programs
        mount_sysfs(name)
        return work()

    return run_inside_each([name], with_sysfs if sysfs else work)[0]


def run_inside_each(names: Sequence[str], work: Callable[[], Result]) -> list[Result]:
    """As `run_inside`, in several namespaces one after the other, by one thread.

    Raises:
        CsitError: There is no such namespace, or it cannot be entered.
    """

    def enter_and_work(name: str) -> Result:
        enter(name)
        return work()

    return aside(lambda: [enter_and_work(name) for name in names])


def enter(name: str) -> None:
    """Move the calling thread into a namespace for good: for the first lines of a process or a thread of its own.

    Raises:
        CsitError: There is no such namespace, or it cannot be entered.
    """
    try:
        with opened(path_of(name)) as descriptor:
            setns(descriptor, CLONE_NEWNET)
    except OSError as error:
        raise CsitError(f"network namespace {name} cannot be entered: {error.strerror}") from error
