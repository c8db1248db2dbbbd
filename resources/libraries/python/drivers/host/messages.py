"""The route netlink messages of this project's objects."""

import struct
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from resources.libraries.python.drivers.host.netlink import CREATE_NEW, Request, attribute, attributes, number, text
from resources.libraries.python.model.counters import InterfaceCounters

_AF_INET = 2
_RTM_NEWLINK, _RTM_DELLINK, _RTM_SETLINK = 16, 17, 19
_RTM_NEWADDR, _RTM_NEWROUTE, _RTM_NEWNEIGH = 20, 24, 28
RTM_GETLINK, RTM_GETSTATS = 18, 94
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_MASTER, _IFLA_LINKINFO = 1, 3, 4, 10, 18
_IFLA_GROUP, _IFLA_NET_NS_FD, _IFLA_NUM_TX_QUEUES, _IFLA_NUM_RX_QUEUES = 27, 28, 31, 32
_IFLA_EXT_MASK, _RTEXT_FILTER_SKIP_STATS = 29, 8
_IFLA_INFO_KIND, _IFLA_INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_IFLA_BR_AGEING_TIME, _IFLA_BR_STP_STATE, _IFLA_BR_MCAST_SNOOPING = 4, 5, 23
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RT_SCOPE_UNIVERSE = 0
_RT_TABLE_MAIN, _RTPROT_STATIC, _RTN_UNICAST = 254, 4, 1
_RTA_DST, _RTA_OIF, _RTA_GATEWAY = 1, 4, 5
_NDA_DST, _NDA_LLADDR, _NUD_PERMANENT = 1, 2, 0x80
_IFLA_STATS_LINK_64 = 1
_STATS = struct.Struct("=8Q")

PORT_GROUP = 0xC51
"""The link group of every port, so that one request removes all ports of a namespace."""
_CLOCK_TICKS_PER_S = 100
"""USER_HZ: the unit of times in bridge attributes."""
_AGEING_S = 7 * 24 * 3600


def _link(index: int = 0, flags: int = 0) -> bytes:
    return struct.pack("=BxHiII", 0, 0, index, flags, flags)


def _mac(address: str) -> bytes:
    return bytes.fromhex(address.replace(":", ""))


def _port(name: str, index: int, mac: str, mtu: int) -> bytes:
    # One queue, so one NAPI: one data thread per port whatever the number of CPUs.
    return b"".join(
        (
            _link(index),
            text(_IFLA_IFNAME, name),
            attribute(_IFLA_ADDRESS, _mac(mac)),
            number(_IFLA_MTU, mtu),
            number(_IFLA_GROUP, PORT_GROUP),
            number(_IFLA_NUM_TX_QUEUES, 1),
            number(_IFLA_NUM_RX_QUEUES, 1),
        )
    )


def veth_pair(near: tuple[str, int, str], far: tuple[str, int, str], far_namespace: int, mtu: int) -> Request:
    """A pair of ports, one here and one in another namespace.

    Args:
        near: Name, interface index and MAC of the end in the socket's namespace.
        far: The same of the other end.
        far_namespace: File descriptor of the other end's namespace.
        mtu: Of both, in bytes.
    """
    peer = _port(*far, mtu) + number(_IFLA_NET_NS_FD, far_namespace)
    data = attribute(_IFLA_INFO_DATA, attribute(_VETH_INFO_PEER, peer))
    body = _port(*near, mtu) + attribute(_IFLA_LINKINFO, text(_IFLA_INFO_KIND, "veth") + data)
    return Request(_RTM_NEWLINK, CREATE_NEW, body, f"make veth pair {near[0]} - {far[0]}")


def bridge(name: str, index: int) -> Request:
    """A bridge that is up, without STP and multicast snooping."""
    options = b"".join(
        (
            # Longer than any measurement: an entry that ages out in a trial would turn forwarding into flooding.
            number(_IFLA_BR_AGEING_TIME, _AGEING_S * _CLOCK_TICKS_PER_S),
            number(_IFLA_BR_STP_STATE, 0),
            attribute(_IFLA_BR_MCAST_SNOOPING, b"\0"),
        )
    )
    info = text(_IFLA_INFO_KIND, "bridge") + attribute(_IFLA_INFO_DATA, options)
    body = _link(index, _IFF_UP) + text(_IFLA_IFNAME, name) + attribute(_IFLA_LINKINFO, info)
    return Request(_RTM_NEWLINK, CREATE_NEW, body, f"make bridge {name}")


def set_up(name: str, index: int) -> Request:
    """Bring an interface up."""
    return Request(_RTM_SETLINK, 0, _link(index, _IFF_UP), f"bring {name} up")


def enslave(name: str, index: int, bridge_name: str, bridge_index: int) -> Request:
    """Make a port a member of a bridge."""
    body = _link(index) + number(_IFLA_MASTER, bridge_index)
    return Request(_RTM_SETLINK, 0, body, f"make {name} a member of {bridge_name}")


def delete_ports() -> Request:
    """Remove all ports of a namespace together; their other ends go with them."""
    return Request(_RTM_DELLINK, 0, _link() + number(_IFLA_GROUP, PORT_GROUP), "remove all ports")


def add_address(name: str, index: int, address: str) -> Request:
    """Give an interface an IPv4 address.

    Args:
        name: Of the interface.
        index: Of the interface.
        address: With prefix length.
    """
    parsed = IPv4Interface(address)
    header = struct.pack("=BBBBI", _AF_INET, parsed.network.prefixlen, 0, _RT_SCOPE_UNIVERSE, index)
    body = header + attribute(_IFA_LOCAL, parsed.packed) + attribute(_IFA_ADDRESS, parsed.packed)
    return Request(_RTM_NEWADDR, CREATE_NEW, body, f"give {name} the address {address}")


def add_neighbour(name: str, index: int, address: str, mac: str) -> Request:
    """A permanent neighbour: no ARP is ever sent for it."""
    header = struct.pack("=BxxxiHBB", _AF_INET, index, _NUD_PERMANENT, 0, 0)
    body = header + attribute(_NDA_DST, IPv4Address(address).packed) + attribute(_NDA_LLADDR, _mac(mac))
    return Request(_RTM_NEWNEIGH, CREATE_NEW, body, f"make {address} a neighbour on {name}")


def add_route(name: str, index: int, prefix: str, gateway: str) -> Request:
    """A static route through a next hop."""
    network = IPv4Network(prefix)
    kind = (_RT_TABLE_MAIN, _RTPROT_STATIC, _RT_SCOPE_UNIVERSE, _RTN_UNICAST)
    header = struct.pack("=BBBBBBBBI", _AF_INET, network.prefixlen, 0, 0, *kind, 0)
    body = b"".join(
        (
            header,
            attribute(_RTA_DST, network.network_address.packed),
            attribute(_RTA_GATEWAY, IPv4Address(gateway).packed),
            number(_RTA_OIF, index),
        )
    )
    return Request(_RTM_NEWROUTE, CREATE_NEW, body, f"route {prefix} through {gateway} on {name}")


GET_LINKS = _link() + number(_IFLA_EXT_MASK, _RTEXT_FILTER_SKIP_STATS)
"""Body of a RTM_GETLINK dump."""


def read_running(row: bytes) -> tuple[int, bool]:
    """Decode one row of a RTM_GETLINK dump as interface index and whether packets can pass."""
    index, flags = struct.unpack_from("=iI", row, 4)
    return index, bool(flags & _IFF_RUNNING)


GET_COUNTERS = struct.pack("=BxxxII", 0, 0, 1 << (_IFLA_STATS_LINK_64 - 1))
"""Body of a RTM_GETSTATS dump: 64-bit counters only, a tenth of what a link dump carries."""


def read_counters(row: bytes) -> tuple[int, InterfaceCounters]:
    """Decode one row of a RTM_GETSTATS dump as interface index and counters."""
    index = struct.unpack_from("=i", row, 4)[0]
    table = next(data for kind, data in attributes(row, 12) if kind == _IFLA_STATS_LINK_64)
    rx, tx, _, _, _, _, rx_dropped, tx_dropped = _STATS.unpack_from(table)
    return index, InterfaceCounters(rx, tx, rx_dropped, tx_dropped)
