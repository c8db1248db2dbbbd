"""Making a port's receive side a kernel thread of its own."""

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from resources.libraries.python.drivers.host.namespaces import Namespace
from resources.libraries.python.drivers.host.netlink import Netlink
from resources.libraries.python.drivers.host.syscalls import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    MS_REC,
    MS_SLAVE,
    mount,
    setns,
    unmount,
    unshare,
)
from resources.libraries.python.errors import CommandFailed, Unsupported

_SIOCETHTOOL = 0x8946
_ETHTOOL_SGRO, _ETHTOOL_STSO = 0x2C, 0x1F
_SYSFS = Path("/sys")


def receive_by_napi(netlink: Netlink, interface: str) -> None:
    """Let a port receive through NAPI, which can have a thread, and not in the context of whoever sends to it.

    Two switches are needed: generic receive offload on at the receiver, and segmentation offload off at the sender,
    for veth passes NAPI by when the sender could have segmented (veth_skb_is_eligible_for_gro). A thread is there
    either way; it just never runs. Both are set at each port, as each sends and receives.

    Args:
        netlink: Opened in the port's namespace.
        interface: The port.

    Raises:
        CommandFailed: The kernel refused.
    """
    for command, value, option in ((_ETHTOOL_SGRO, 1, "gro"), (_ETHTOOL_STSO, 0, "tso")):
        data = ctypes.create_string_buffer(struct.pack("=II", command, value))
        request = struct.pack("16sQ16x", interface.encode(), ctypes.addressof(data))
        try:
            fcntl.ioctl(netlink.socket, _SIOCETHTOOL, request)
        except OSError as error:
            argv = ("ethtool", "-K", interface, option, "on" if value else "off")
            raise CommandFailed(argv, error.errno or 1, str(error.strerror)) from error


def enable_threads(ports: Iterable[tuple[Namespace, Iterable[str]]]) -> None:
    """Give every port's NAPI a kernel thread. To be called by a thread that ends afterwards.

    The switch is a file in sysfs, and a sysfs shows the network namespace in which it was mounted. So the thread gets
    a mount namespace of its own and there mounts one after the other; nobody else sees these mounts.

    Args:
        ports: Interfaces by namespace, up and received by NAPI (before that there is none).

    Raises:
        Unsupported: The kernel has no threaded NAPI (before 5.12), or mounts are not allowed here.
        CommandFailed: The kernel refused for an interface.
    """
    try:
        unshare(CLONE_NEWNS)
        mount("none", Path("/"), "none", MS_SLAVE | MS_REC)
    except OSError as error:
        raise Unsupported(f"a mount namespace cannot be made here: {error.strerror}") from error
    for namespace, interfaces in ports:
        setns(namespace.descriptor, CLONE_NEWNET)
        try:
            mount("sysfs", _SYSFS, "sysfs", 0)
        except OSError as error:
            raise Unsupported(f"sysfs cannot be mounted for {namespace.name}: {error.strerror}") from error
        try:
            for interface in interfaces:
                _set_threaded(interface)
        finally:
            unmount(_SYSFS)


def _set_threaded(interface: str) -> None:
    path = f"{_SYSFS}/class/net/{interface}/threaded"
    try:
        descriptor = os.open(path, os.O_WRONLY)
        try:
            os.write(descriptor, b"1")
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.EACCES):
            raise Unsupported(f"{interface} cannot have a data thread (threaded NAPI): {error.strerror}") from error
        raise CommandFailed(("write", path), error.errno or 1, str(error.strerror)) from error
