"""The route netlink messages of this project's objects: encoded by pyroute2, decoded here where much is read."""

import struct
from ipaddress import ip_interface, ip_network
from socket import AF_BRIDGE, AF_INET, AF_INET6
from typing import Any

from pyroute2.netlink import NLA_F_NESTED, nlmsg
from pyroute2.netlink.rtnl import (
    RTM_DELLINK,
    RTM_NEWADDR,
    RTM_NEWLINK,
    RTM_NEWNEIGH,
    RTM_NEWROUTE,
    RTM_SETLINK,
    rt_proto,
    rt_type,
)
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import IFF_MULTICAST, IFF_NOARP, IFF_PROMISC, IFF_RUNNING, IFF_UP, ifinfmsg
from pyroute2.netlink.rtnl.ifstatsmsg import ifstatsmsg
from pyroute2.netlink.rtnl.ndmsg import NTF_MASTER, NUD_NOARP, NUD_PERMANENT, ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from resources.libraries.python.drivers.host.links.netlink import CREATE_NEW, HEADER_BYTES, Request, attributes
from resources.libraries.python.model.measurements.counters import InterfaceCounters

_RT_TABLE_MAIN = 254
_RTEXT_FILTER_SKIP_STATS = 8
_IFLA_STATS_LINK_64 = 1
_IFLA_MASTER = 10
_IFLA_PROTINFO = 12
_NOTHING_UNASKED = (8, 9, 27, 30)
"""IFLA_BRPORT_LEARNING and those for flooding of unicast, multicast and broadcast frames."""
_PORT_OF_BRIDGE, _TABLE, _FLAG_OF_MEMBER = struct.Struct("=BxHiII"), struct.Struct("=HH"), struct.Struct("=HHB3x")
_STATS = struct.Struct("=8Q")

PORT_GROUP = 0xC51
"""The link group of every port, so that one request removes all ports of a namespace."""
VLAN_GROUP = PORT_GROUP + 1
"""That of VLAN devices, which have to be removed before the physical port under them is given back."""
_CLOCK_TICKS_PER_S = 100
"""USER_HZ: the unit of times in bridge attributes."""
_NO_DAD = 2
"""IFA_F_NODAD."""
_AGEING_S = 7 * 24 * 3600

Attributes = list[tuple[str, Any]]
_UP = {"flags": IFF_UP, "change": IFF_UP}


def encoded(message: type[nlmsg], fields: dict[str, int], attrs: Attributes) -> bytes:
    """Encode the body of a message: all but the netlink header, which its batch writes."""
    built = message()
    built.update(fields)
    built["attrs"] = attrs
    built.encode()
    return bytes(built.data[HEADER_BYTES:])


def _port(name: str, mac: str, mtu: int, group: int = PORT_GROUP) -> Attributes:
    return [
        ("IFLA_IFNAME", name),
        ("IFLA_ADDRESS", mac),
        ("IFLA_MTU", mtu),
        ("IFLA_GROUP", group),
        # One queue, so one NAPI: one data thread per port whatever the number of CPUs.
        ("IFLA_NUM_TX_QUEUES", 1),
        ("IFLA_NUM_RX_QUEUES", 1),
    ]


def _link_info(kind: str, data: Attributes) -> tuple[str, Any]:
    return "IFLA_LINKINFO", {"attrs": [("IFLA_INFO_KIND", kind), ("IFLA_INFO_DATA", {"attrs": data})]}


def veth_pair(near: tuple[str, int, str], far: tuple[str, int, str], far_namespace: int, mtu: int) -> Request:
    """A pair of ports, one here and one in another namespace.

    `near`: Name, interface index and MAC of the end in the socket's namespace.
    `far`: The same of the other end.
    `far_namespace`: File descriptor of the other end's namespace.
    `mtu`: Of both, in bytes.
    """
    name, index, mac = near
    far_name, far_index, far_mac = far
    peer = {"index": far_index, "attrs": [*_port(far_name, far_mac, mtu), ("IFLA_NET_NS_FD", far_namespace)]}
    attrs = [*_port(name, mac, mtu), _link_info("veth", [("VETH_INFO_PEER", peer)])]
    return Request(
        RTM_NEWLINK, CREATE_NEW, encoded(ifinfmsg, {"index": index}, attrs), f"make veth pair {name} - {far_name}"
    )


def vlan_device(name: str, trunk: int, vlan: int, mac: str, mtu: int) -> Request:
    """A VLAN of a port as a device of its own, which tags what it sends.

    `trunk`: interface index of the port, in the same namespace.
    `mtu`: in bytes, at most the port's: Linux counts no tag.
    """
    attrs = [
        *_port(name, mac, mtu, VLAN_GROUP),
        ("IFLA_LINK", trunk),
        _link_info("vlan", [("IFLA_VLAN_ID", vlan)]),
    ]
    return Request(RTM_NEWLINK, CREATE_NEW, encoded(ifinfmsg, {}, attrs), f"make {name} for VLAN {vlan}")


def bridge(name: str, index: int) -> Request:
    """A bridge that is up, without STP and multicast snooping."""
    options: Attributes = [
        # Longer than any measurement: an entry that ages out in a trial would turn forwarding into flooding.
        ("IFLA_BR_AGEING_TIME", _AGEING_S * _CLOCK_TICKS_PER_S),
        ("IFLA_BR_STP_STATE", 0),
        ("IFLA_BR_MCAST_SNOOPING", 0),
    ]
    body = encoded(ifinfmsg, {"index": index, **_UP}, [("IFLA_IFNAME", name), _link_info("bridge", options)])
    return Request(RTM_NEWLINK, CREATE_NEW, body, f"make bridge {name}")


def _set(what: str, index: int, *attrs: tuple[str, Any], **fields: int) -> Request:
    return Request(RTM_SETLINK, 0, encoded(ifinfmsg, {"index": index, **fields}, [*attrs]), what)


def set_up(name: str, index: int) -> Request:
    """Bring an interface up."""
    return _set(f"bring {name} up", index, **_UP)


def keep_silent(name: str, index: int) -> Request:
    """Make the kernel send nothing of its own through an interface: no MLD reports, no neighbour discovery."""
    return _set(f"make {name} silent", index, flags=IFF_NOARP, change=IFF_NOARP | IFF_MULTICAST)


def set_mac(name: str, index: int, mac: str) -> Request:
    """Give an interface another MAC."""
    return _set(f"give {name} the MAC {mac}", index, ("IFLA_ADDRESS", mac))


def set_ports_up(group: int = PORT_GROUP) -> Request:
    """Bring all ports of a group up together."""
    # Not in the message that makes a pair: the far end cannot go up before the near one is made (ENOTCONN).
    return Request(RTM_NEWLINK, 0, encoded(ifinfmsg, _UP, [("IFLA_GROUP", group)]), "bring all ports up")


def enslave(name: str, index: int, bridge_name: str, bridge_index: int) -> Request:
    """Make a port a member of a bridge."""
    return _set(f"make {name} a member of {bridge_name}", index, ("IFLA_MASTER", bridge_index))


def forward_known_only(name: str, index: int) -> Request:
    """Let a bridge learn nothing from a member, and send it only what is known to be behind it."""
    # Packed by hand: pyroute2 leaves out the flag that distinguishes this table from its older form.
    table = b"".join(_FLAG_OF_MEMBER.pack(5, kind, 0) for kind in _NOTHING_UNASKED)
    head = _PORT_OF_BRIDGE.pack(AF_BRIDGE, 0, index, 0, 0)
    body = head + _TABLE.pack(_TABLE.size + len(table), NLA_F_NESTED | _IFLA_PROTINFO) + table
    return Request(RTM_SETLINK, 0, body, f"let {name} have known frames only")


def add_station(name: str, index: int, mac: str) -> Request:
    """Add a permanent entry for a MAC behind a member of a bridge."""
    fields = {"family": AF_BRIDGE, "ifindex": index, "state": NUD_NOARP, "flags": NTF_MASTER}
    body = encoded(ndmsg, fields, [("NDA_LLADDR", mac)])
    return Request(RTM_NEWNEIGH, CREATE_NEW, body, f"put {mac} behind {name}")


def delete_ports(group: int = PORT_GROUP) -> Request:
    """Remove all ports of a group in a namespace together; their other ends go with them."""
    return Request(RTM_DELLINK, 0, encoded(ifinfmsg, {}, [("IFLA_GROUP", group)]), "remove all ports")


def _family(address: str) -> int:
    return AF_INET6 if ":" in address else AF_INET


def add_address(name: str, index: int, address: str) -> Request:
    """Give an interface an address, of IPv6 without looking for duplicates.

    `address`: with prefix length.
    """
    parsed = ip_interface(address)
    fields = {"family": _family(address), "prefixlen": parsed.network.prefixlen, "index": index}
    if parsed.version == 6:
        fields["flags"] = _NO_DAD
    body = encoded(ifaddrmsg, fields, [("IFA_LOCAL", str(parsed.ip)), ("IFA_ADDRESS", str(parsed.ip))])
    return Request(RTM_NEWADDR, CREATE_NEW, body, f"give {name} the address {address}")


def add_neighbour(name: str, index: int, address: str, mac: str) -> Request:
    """A permanent neighbour: neither ARP nor neighbour discovery is ever sent for it."""
    fields = {"family": _family(address), "ifindex": index, "state": NUD_PERMANENT}
    body = encoded(ndmsg, fields, [("NDA_DST", address), ("NDA_LLADDR", mac)])
    return Request(RTM_NEWNEIGH, CREATE_NEW, body, f"make {address} a neighbour on {name}")


def add_route(name: str, index: int, prefix: str, gateway: str) -> Request:
    """A static route through a next hop."""
    network = ip_network(prefix)
    fields = {
        "family": _family(prefix),
        "dst_len": network.prefixlen,
        "table": _RT_TABLE_MAIN,
        "proto": rt_proto["static"],
        "type": rt_type["unicast"],
    }
    attrs: Attributes = [("RTA_DST", str(network.network_address)), ("RTA_GATEWAY", gateway), ("RTA_OIF", index)]
    return Request(
        RTM_NEWROUTE, CREATE_NEW, encoded(rtmsg, fields, attrs), f"route {prefix} through {gateway} on {name}"
    )


GET_LINKS = encoded(ifinfmsg, {}, [("IFLA_EXT_MASK", _RTEXT_FILTER_SKIP_STATS)])
"""Body of a RTM_GETLINK dump."""
GET_COUNTERS = encoded(ifstatsmsg, {"filter_mask": 1 << (_IFLA_STATS_LINK_64 - 1)}, [])
"""Body of a RTM_GETSTATS dump: 64-bit counters only, a tenth of what a link dump carries."""

# These two read by hand: counters are read around every trial. At 100 NFs, 650 rows, pyroute2 takes 95 ms to decode the
# links, this 0.3 ms, and 16 ms to decode the counters, this 1.4 ms.


def read_running(row: bytes) -> tuple[int, bool]:
    """Decode one row of a RTM_GETLINK dump as interface index and whether packets can pass."""
    index, flags = struct.unpack_from("=iI", row, 4)
    return index, bool(flags & IFF_RUNNING)


def read_master(row: bytes) -> tuple[int, int | None]:
    """Decode one row of a RTM_GETLINK dump as interface index and that of the bridge it is a member of."""
    index = struct.unpack_from("=i", row, 4)[0]
    master = next((data for kind, data in attributes(row, 16) if kind == _IFLA_MASTER), None)
    return index, None if master is None else struct.unpack("=I", master)[0]


def read_counters(row: bytes) -> tuple[int, InterfaceCounters]:
    """Decode one row of a RTM_GETSTATS dump as interface index and counters."""
    index, (rx, tx, _, _, _, _, rx_dropped, tx_dropped) = _statistics(row)
    return index, InterfaceCounters(rx, tx, rx_dropped, tx_dropped)


def read_octets(row: bytes) -> tuple[int, int]:
    """Decode one row of a RTM_GETSTATS dump as interface index and bytes received and sent together, L2."""
    index, (_, _, received, sent, *_) = _statistics(row)
    return index, received + sent


def _statistics(row: bytes) -> tuple[int, tuple[int, ...]]:
    index = struct.unpack_from("=i", row, 4)[0]
    table = next(data for kind, data in attributes(row, 12) if kind == _IFLA_STATS_LINK_64)
    return index, _STATS.unpack_from(table)


def set_down(name: str, index: int) -> Request:
    """Bring a port down."""
    return _set(f"bring {name} down", index, change=IFF_UP)


def set_mtu(name: str, index: int, mtu: int) -> Request:
    """Change a port's MTU, in bytes."""
    return _set(f"give {name} an MTU of {mtu}", index, ("IFLA_MTU", mtu))


def set_promiscuous(name: str, index: int, on: bool) -> Request:
    """Let a port take frames for any MAC, or not."""
    what = f"make {name} promiscuous{'' if on else ' no more'}"
    return _set(what, index, flags=IFF_PROMISC if on else 0, change=IFF_PROMISC)


def move(name: str, index: int, namespace: int, new_name: str) -> Request:
    """Move a port to another namespace, under another name.

    `index`: Its present interface index; the kernel keeps it where it is free over there.
    `namespace`: File descriptor of the other namespace.
    """
    what = f"move {name} to another namespace as {new_name}"
    return _set(what, index, ("IFLA_NET_NS_FD", namespace), ("IFLA_IFNAME", new_name))


def rename(name: str, index: int, new_name: str) -> Request:
    """Give a port another name."""
    return _set(f"call {name} {new_name}", index, ("IFLA_IFNAME", new_name))
