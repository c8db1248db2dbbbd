"""A sysfs that shows the ports of a certain network namespace.

A sysfs shows the network namespace in which it was mounted. So a thread gets a mount namespace of its own and there
mounts one after the other; no other thread sees these mounts.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resources.libraries.python.drivers.host.links.namespace_syscalls import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    MS_REC,
    MS_SLAVE,
    mount,
    setns,
    unmount,
    unshare,
)
from resources.libraries.python.errors import Unsupported

ROOT = Path("/sys")


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


@contextmanager
def sysfs_of(namespace: int, name: str) -> Iterator[Path]:
    """Enter a network namespace, with its sysfs at the usual place. To be called after `own_mounts`.

    Args:
        namespace: File descriptor of the namespace.
        name: For error messages.

    Raises:
        Unsupported: It cannot be mounted.
    """
    setns(namespace, CLONE_NEWNET)
    try:
        mount("sysfs", ROOT, "sysfs", 0)
    except OSError as error:
        if error.errno == errno.EBUSY:  # it is the one that is there
            yield ROOT
            return
        raise Unsupported(f"sysfs cannot be mounted for {name}: {error.strerror}") from error
    try:
        yield ROOT
    finally:
        unmount(ROOT)


def threaded(root: Path, interface: str) -> str | None:
    """How a port's NAPI runs, in the kernel's numbers: `0` is without a thread of its own; None before kernel 5.12."""
    try:
        return (root / "class/net" / interface / "threaded").read_text(encoding="ascii").strip()
    except OSError:
        return None


def set_threaded(root: Path, interface: str, value: str) -> None:
    """Let a port's NAPI run in a thread of its own, or not. The port is up: before that there may be no NAPI.

    Raises:
        OSError: The kernel has no such thing, or refuses.
    """
    descriptor = os.open(root / "class/net" / interface / "threaded", os.O_WRONLY)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
