"""Namespace and mount system calls that Python 3.11 has no function for, and a sysfs of a certain network namespace.

A sysfs shows the network namespace in which it was mounted. So a thread gets a mount namespace of its own and there
mounts one after the other; no other thread sees these mounts.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from resources.libraries.python.drivers.host.kernel_files import line_of, write
from resources.libraries.python.errors import Unsupported

Result = TypeVar("Result")

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_BIND, MS_REC, MS_SLAVE, MS_SHARED = 0x1000, 0x4000, 0x80000, 0x100000
_MNT_DETACH = 2
_SYS_FSOPEN, _SYS_FSCONFIG, _SYS_FSMOUNT = 430, 431, 432
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_FSOPEN_CLOEXEC, _FSCONFIG_CMD_CREATE, _FSMOUNT_CLOEXEC = 1, 6, 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)


def _checked(status: int, path: str | None = None) -> None:
    if status < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)


def unshare(flags: int) -> None:
    """Give the calling thread namespaces of its own."""
    _checked(_libc.unshare(flags))


def setns(descriptor: int, kind: int) -> None:
    """Move the calling thread into a namespace."""
    _checked(_libc.setns(descriptor, kind))


def mount(source: str, target: Path, kind: str, flags: int) -> None:
    """Mount a file system."""
    _checked(_libc.mount(source.encode(), bytes(target), kind.encode(), flags, None), str(target))


def unmount(target: Path) -> None:
    """Take a mount away, at once for new users and later for present ones."""
    _checked(_libc.umount2(bytes(target), _MNT_DETACH), str(target))


def keep_freed_memory() -> None:
    """Let this process keep what it frees of C's heap: arrays that come and go would be fresh pages each time."""
    for parameter, value in ((_M_MMAP_THRESHOLD, 32 << 20), (_M_TRIM_THRESHOLD, 1 << 30)):
        if hasattr(_libc, "mallopt"):  # the C library of GNU
            _libc.mallopt(parameter, value)


def aside(work: Callable[[], Result]) -> Result:
    """Do work in a thread that ends with it.

    What enters namespaces is done here, so that no other thread can be left behind in a wrong one.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="namespace") as pool:
        return pool.submit(work).result()


def mount_apart(kind: str) -> int:
    """Create a detached mount, reachable by its descriptor only and gone when that is closed.

    Linux 5.2 or later (fsopen and fsmount, which have the same numbers on every processor).

    Returns:
        Descriptor of its root; paths below it are those below /proc/self/fd/<descriptor>.
    """
    context = _libc.syscall(_SYS_FSOPEN, kind.encode(), _FSOPEN_CLOEXEC)
    _checked(context, kind)
    try:
        _checked(_libc.syscall(_SYS_FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0), kind)
        descriptor: int = _libc.syscall(_SYS_FSMOUNT, context, _FSMOUNT_CLOEXEC, 0)
        _checked(descriptor, kind)
    finally:
        os.close(context)
    return descriptor


SYSFS = Path("/sys")


def own_mounts() -> None:
    """Let the calling thread, which ends afterwards, mount in private.

    Raises:
        Unsupported: It may not.
    """
    try:
        unshare(CLONE_NEWNS)
        mount("none", Path("/"), "none", MS_SLAVE | MS_REC)
    except OSError as error:
        raise Unsupported(f"a mount namespace cannot be made here: {error.strerror}") from error


def mount_sysfs(name: str) -> bool:
    """Mount the sysfs of the calling thread's network namespace at the usual place; return whether that was needed.

    To be called after `own_mounts`.

    `name`: Of the namespace, for error messages.

    Raises:
        Unsupported: It cannot be mounted.
    """
    try:
        mount("sysfs", SYSFS, "sysfs", 0)
    except OSError as error:
        if error.errno == errno.EBUSY:  # it is the one that is there
            return False
        raise Unsupported(f"sysfs cannot be mounted for {name}: {error.strerror}") from error
    return True


@contextmanager
def sysfs_of(namespace: int, name: str) -> Iterator[Path]:
    """Enter a network namespace, with its sysfs at the usual place. To be called after `own_mounts`.

    Raises:
        Unsupported: It cannot be mounted.
    """
    setns(namespace, CLONE_NEWNET)
    mounted = mount_sysfs(name)
    try:
        yield SYSFS
    finally:
        if mounted:
            unmount(SYSFS)


def threaded(root: Path, interface: str) -> str | None:
    """How a port's NAPI runs, in the kernel's numbers: `0` is without a thread of its own; None before kernel 5.12."""
    return line_of(root / "class/net" / interface / "threaded")


def set_threaded(root: Path, interface: str, value: str) -> None:
    """Let a port's NAPI run in a thread of its own, or not. The port is up: before that there may be no NAPI.

    Raises:
        OSError: The kernel has no such thing, or refuses.
    """
    write(root / "class/net" / interface / "threaded", value)
