"""Route netlink messages that change a port that was not made here."""

from pyroute2.netlink.rtnl import RTM_SETLINK
from pyroute2.netlink.rtnl.ifinfmsg import IFF_PROMISC, IFF_UP, ifinfmsg

from resources.libraries.python.drivers.host.links.netlink import Request
from resources.libraries.python.drivers.host.links.rtnetlink_messages import encoded


def set_down(name: str, index: int) -> Request:
    """Bring a port down."""
    return Request(RTM_SETLINK, 0, encoded(ifinfmsg, {"index": index, "change": IFF_UP}, []), f"bring {name} down")


def set_mtu(name: str, index: int, mtu: int) -> Request:
    """Change a port's MTU, in bytes."""
    body = encoded(ifinfmsg, {"index": index}, [("IFLA_MTU", mtu)])
    return Request(RTM_SETLINK, 0, body, f"give {name} an MTU of {mtu}")


def set_promiscuous(name: str, index: int, on: bool) -> Request:
    """Let a port take frames for any MAC, or not."""
    fields = {"index": index, "flags": IFF_PROMISC if on else 0, "change": IFF_PROMISC}
    return Request(RTM_SETLINK, 0, encoded(ifinfmsg, fields, []), f"make {name} promiscuous{'' if on else ' no more'}")


def move(name: str, index: int, namespace: int, new_name: str) -> Request:
    """Move a port to another namespace, under another name.

    Args:
        name: Its present name.
        index: Its present interface index; the kernel keeps it where it is free over there.
        namespace: File descriptor of the other namespace.
        new_name: Its name over there.
    """
    body = encoded(ifinfmsg, {"index": index}, [("IFLA_NET_NS_FD", namespace), ("IFLA_IFNAME", new_name)])
    return Request(RTM_SETLINK, 0, body, f"move {name} to another namespace as {new_name}")


def rename(name: str, index: int, new_name: str) -> Request:
    """Give a port another name."""
    body = encoded(ifinfmsg, {"index": index}, [("IFLA_IFNAME", new_name)])
    return Request(RTM_SETLINK, 0, body, f"call {name} {new_name}")
