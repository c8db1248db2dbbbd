"""Copies of frames by traffic control: everything that one port receives goes out of others as well."""

import errno
import socket
from collections.abc import Callable, Sequence
from typing import Any

from pyroute2.netlink.rtnl import RTM_NEWQDISC, RTM_NEWTFILTER
from pyroute2.netlink.rtnl.tcmsg import cls_u32, tcmsg

from resources.libraries.python.drivers.host.links.netlink import CREATE_NEW, Request
from resources.libraries.python.drivers.host.links.rtnetlink_messages import encoded
from resources.libraries.python.errors import CommandFailed, Unsupported

_INGRESS_PARENT, _INGRESS = 0xFFFFFFF1, 0xFFFF0000
_ALL_PROTOCOLS = 3  # ETH_P_ALL
_FIRST = 1 << 16
"""Priority 1, in the place where the kernel has it."""
_EVERYTHING = ["0x0/0x0+0"]
"""The filter u32 rather than matchall, which not every kernel has."""


def copy_received(name: str, index: int, others: Sequence[tuple[str, int]]) -> list[Request]:
    """Requests that make a port's received frames go out of other ports of its namespace too, before it forwards them.

    A copy that finds no room is lost and counted at the port that it should leave; the frame itself goes on.

    Args:
        name: Of the port.
        index: Of the port.
        others: Names and indexes of those that get the copies.
    """
    head = {"family": socket.AF_UNSPEC, "index": index, "parent": _INGRESS_PARENT, "handle": _INGRESS}
    to = ", ".join(other for other, _ in others)
    actions = [{"kind": "mirred", "direction": "egress", "action": "mirror", "ifindex": each} for _, each in others]
    options: Any = cls_u32.get_parameters({"target": 0, "keys": _EVERYTHING, "action": actions})
    rule = {
        "family": socket.AF_UNSPEC,
        "index": index,
        "parent": _INGRESS,
        "info": _FIRST | socket.htons(_ALL_PROTOCOLS),
    }
    return [
        Request(
            RTM_NEWQDISC, CREATE_NEW, encoded(tcmsg, head, [("TCA_KIND", "ingress")]), f"watch what {name} receives"
        ),
        Request(
            RTM_NEWTFILTER,
            CREATE_NEW,
            encoded(tcmsg, rule, [("TCA_KIND", "u32"), ("TCA_OPTIONS", options)]),
            f"copy what {name} receives to {to}",
        ),
    ]


def make_copies(change: Callable[[Sequence[Request]], None], requests: Sequence[Request]) -> None:
    """Make changes that need traffic control.

    Raises:
        Unsupported: This kernel cannot copy frames.
        CommandFailed: It refused otherwise.
    """
    try:
        change(requests)
    except CommandFailed as error:
        if error.status in {errno.ENOENT, errno.EOPNOTSUPP}:
            raise Unsupported(
                "this kernel cannot copy frames for passive NFs: it lacks sch_ingress, cls_u32 or act_mirred "
                f"({error.stderr})"
            ) from error
        raise
