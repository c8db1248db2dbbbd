"""Threaded NAPI: a kernel thread per receiving port."""

import errno
from collections.abc import Iterable

from resources.libraries.python.drivers.host.links import sysfs
from resources.libraries.python.drivers.host.links.namespaces import Namespace
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.nics import ethtool
from resources.libraries.python.errors import CommandFailed, Unsupported


def receive_by_napi(netlink: Netlink, interface: str) -> None:
    """Let a port receive through NAPI, which can have a thread, and not in the context of the sender.

    Two switches are needed: generic receive offload on at the receiver, and segmentation offload off at the sender,
    for veth passes NAPI by when the sender could have segmented (veth_skb_is_eligible_for_gro). A thread is there
    either way; it just never runs. Both are set at each port, as each sends and receives.

    Args:
        netlink: Opened in the port's namespace.
        interface: The port.

    Raises:
        CommandFailed: The kernel refused.
    """
    ethtool.set_offload(netlink.socket, interface, "gro", on=True)
    ethtool.set_offload(netlink.socket, interface, "tso", on=False)


def enable_threads(ports: Iterable[tuple[Namespace, Iterable[str]]]) -> None:
    """Give every port's NAPI a kernel thread. To be called by a thread that ends afterwards.

    Args:
        ports: Interfaces by namespace, up and received by NAPI (before that there is none).

    Raises:
        Unsupported: The kernel has no threaded NAPI (before 5.12), or mounts are not allowed here.
        CommandFailed: The kernel refused for an interface.
    """
    sysfs.own_mounts()
    for namespace, interfaces in ports:
        with sysfs.sysfs_of(namespace.descriptor, namespace.name) as root:
            for interface in interfaces:
                try:
                    sysfs.set_threaded(root, interface, "1")
                except OSError as error:
                    raise _refused(interface, error) from error


def _refused(interface: str, error: OSError) -> Unsupported | CommandFailed:
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.EACCES):
        return Unsupported(f"{interface} cannot have a data thread (threaded NAPI): {error.strerror}")
    return CommandFailed(("write", str(error.filename or interface)), error.errno or 1, str(error.strerror))
