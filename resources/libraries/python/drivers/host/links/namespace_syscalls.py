"""The namespace and mount system calls that Python 3.11 has no function for."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

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
