"""Our netlink bytes against pyroute2's, and the decoding."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from resources.libraries.python.drivers.host import messages
from resources.libraries.python.drivers.host.netlink import Request, attribute, attributes

Attributes = list[tuple[str, Any]]
UP = {"flags": 1, "change": 1}


def encoded(kind: Callable[[], Any], fields: dict[str, int], attrs: Attributes) -> bytes:
    """The body of a message as pyroute2 writes it."""
    message = kind()
    message.update(fields)
    message["attrs"] = attrs
    message.encode()
    return bytes(message.data)[16:]


def port(name: str, mac: str) -> Attributes:
    return [
        ("IFLA_IFNAME", name), ("IFLA_ADDRESS", mac), ("IFLA_MTU", 1500), ("IFLA_GROUP", messages.PORT_GROUP),
        ("IFLA_NUM_TX_QUEUES", 1), ("IFLA_NUM_RX_QUEUES", 1),
    ]  # fmt: skip


def test_veth_pair() -> None:
    near, far = ("csv1p1", 100, "02:01:00:00:01:01"), ("csg1p1", 101, "06:00:00:00:01:01")
    peer = {"index": 101, "attrs": [*port(far[0], far[2]), ("IFLA_NET_NS_FD", 7)]}
    info = [("IFLA_INFO_KIND", "veth"), ("IFLA_INFO_DATA", {"attrs": [("VETH_INFO_PEER", peer)]})]
    wanted = encoded(ifinfmsg, {"index": 100}, [*port(near[0], near[2]), ("IFLA_LINKINFO", {"attrs": info})])
    assert plain(messages.veth_pair(near, far, 7, 1500)) == unnested(wanted)


def test_bridge() -> None:
    data = [("IFLA_BR_AGEING_TIME", 60480000), ("IFLA_BR_STP_STATE", 0), ("IFLA_BR_MCAST_SNOOPING", 0)]
    info = [("IFLA_INFO_KIND", "bridge"), ("IFLA_INFO_DATA", {"attrs": data})]
    attrs: Attributes = [("IFLA_IFNAME", "csb1x1"), ("IFLA_LINKINFO", {"attrs": info})]
    assert plain(messages.bridge("csb1x1", 5)) == unnested(encoded(ifinfmsg, {"index": 5, **UP}, attrs))


@pytest.mark.parametrize(
    ("ours", "kind", "fields", "attrs"),
    [
        (messages.set_up("csv1p1", 9), ifinfmsg, {"index": 9, **UP}, []),
        (messages.enslave("csv1p1", 9, "csb1x1", 5), ifinfmsg, {"index": 9}, [("IFLA_MASTER", 5)]),
        (messages.delete_ports(), ifinfmsg, {}, [("IFLA_GROUP", messages.PORT_GROUP)]),
        (
            messages.add_address("if", 9, "100.64.0.2/30"),
            ifaddrmsg, {"family": 2, "prefixlen": 30, "index": 9},
            [("IFA_LOCAL", "100.64.0.2"), ("IFA_ADDRESS", "100.64.0.2")],
        ),
        (
            messages.add_neighbour("if", 9, "100.64.0.1", "02:00:00:00:01:01"),
            ndmsg, {"family": 2, "ifindex": 9, "state": 0x80},
            [("NDA_DST", "100.64.0.1"), ("NDA_LLADDR", "02:00:00:00:01:01")],
        ),
        (
            messages.add_route("if", 9, "10.1.0.0/16", "100.64.0.1"),
            rtmsg, {"family": 2, "dst_len": 16, "table": 254, "proto": 4, "type": 1},
            [("RTA_DST", "10.1.0.0"), ("RTA_GATEWAY", "100.64.0.1"), ("RTA_OIF", 9)],
        ),
    ],
)  # fmt: skip
def test_flat_messages(ours: Request, kind: Callable[[], Any], fields: dict[str, int], attrs: Attributes) -> None:
    assert ours.body == encoded(kind, fields, attrs)


def plain(request: Request) -> bytes:
    return unnested(request.body)


def unnested(body: bytes) -> bytes:
    """With link information free of what may differ: the flag NLA_F_NESTED, and the zero that ends a string."""
    rows = (attribute(kind, _info(value) if kind == 18 else value) for kind, value in attributes(body, 16))
    return body[:16] + b"".join(rows)


def _info(data: bytes) -> bytes:
    return b"".join(
        attribute(kind, b"".join(attribute(*row) for row in attributes(value)) if kind == 2 else value.rstrip(b"\0"))
        for kind, value in attributes(data)
    )


def test_counters_are_read_past_padding() -> None:
    table = struct.pack("=24Q", *range(10, 34))
    row = struct.pack("=BxxxII", 0, 42, 1) + attribute(0, b"") + attribute(1, table)
    index, counters = messages.read_counters(row)
    assert index == 42
    assert (counters.rx_packets, counters.tx_packets, counters.rx_dropped, counters.tx_dropped) == (10, 11, 16, 17)


def test_running_is_read_from_the_flags() -> None:
    assert messages.read_running(struct.pack("=BxHiII", 0, 1, 7, 0x1043, 0)) == (7, True)
    assert messages.read_running(struct.pack("=BxHiII", 0, 1, 7, 0x1003, 0)) == (7, False)
