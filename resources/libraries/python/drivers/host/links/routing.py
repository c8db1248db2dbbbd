"""Routing in network namespaces: NFs that are routers, sockets of the generator, and traffic taken in by a proxy.

The generator's namespace has both addresses of a flow. The kernel would deliver a packet from one to the other over the
loopback; rules for locally generated packets come before the table of local addresses, which applies to what arrives.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from socket import AF_INET, IPPROTO_TCP, IPPROTO_UDP

from pyroute2.netlink.rtnl import RTM_DELRULE, RTM_NEWROUTE, RTM_NEWRULE, rt_proto, rt_scope, rt_type
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.netlink import CREATE_NEW, Request
from resources.libraries.python.drivers.host.links.rtnetlink_messages import (
    add_address,
    add_neighbour,
    add_route,
    encoded,
    keep_silent,
    set_mac,
    set_up,
)
from resources.libraries.python.drivers.host.programs.disturbances import MOVED, Steps, refused
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import Flow, NfPlan, Plan, Port
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.planning.names import GENERATOR


def configure_routers(functions: Iterable[NfPlan], fabric: Fabric, *, addresses: bool = True) -> None:
    """Give every NF its addresses, neighbours and routes. They end with their namespaces.

    `functions`: Those that are namespaces which forward.
    `fabric`: Has the namespaces; started.
    `addresses`: Whether they have no addresses yet. These outlive that a port goes down, all else does not.

    Raises:
        CommandFailed: The kernel refused.
    """
    for function in functions:
        if addresses and ":" in function.left.address:
            ports = (function.left.name, function.right.name)
            fabric.change(function.name, [keep_silent(name, fabric.index(name)) for name in ports])
            fabric.run_inside(function.name, partial(_enable_ipv6, ports))
        fabric.change(function.name, _router_requests(function, fabric, addresses=addresses))


def _enable_ipv6(interfaces: Iterable[str]) -> None:
    Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("1", encoding="ascii")
    for interface in interfaces:
        for key, value in _IPV6.items():
            Path("/proc/sys/net/ipv6/conf", interface, key).write_text(value, encoding="ascii")


def _router_requests(function: NfPlan, fabric: Fabric, *, addresses: bool) -> Iterator[Request]:
    for interface in (function.left, function.right):
        name, index, hop = interface.name, fabric.index(interface.name), interface.route
        if addresses:
            yield add_address(name, index, interface.address)
        # Known before any packet needs it, and for ever: no ARP in a measurement.
        yield add_neighbour(name, index, hop.address, hop.mac)
        for prefix in (hop.prefix, *hop.also):
            yield add_route(name, index, prefix, hop.address)


_IPV6 = {
    "accept_dad": "0",
    "accept_ra": "0",
    "addr_gen_mode": "1",  # no link-local address
    "keep_addr_on_down": "1",
    "forwarding": "1",
    "disable_ipv6": "0",
}
_TABLE, _LOCAL = 100, 255
_LOOPBACK = 1
_TO_TABLE = 1
"""FR_ACT_TO_TBL."""
_ACCEPT_LOCAL = Path("/proc/sys/net/ipv4/conf/all/accept_local")
"""Packets arrive whose source is an address of this namespace."""


def route_between_ports(plan: Plan, fabric: Fabric) -> None:
    """Make the generator's ports usable by sockets, which then have the addresses of the plan's flows.

    Raises:
        CommandFailed: The kernel refused something.
    """
    ports = {port.interface: port for port in plan.ports(GENERATOR)}
    fabric.run_inside(GENERATOR, partial(_ACCEPT_LOCAL.write_text, "1", encoding="ascii"))
    fabric.change(GENERATOR, _policy_rules())
    for flow in plan.flows:
        port = ports[flow.tx_interface]
        fabric.change(GENERATOR, _endpoint_requests(flow, port, fabric.index(port.interface)))


def _endpoint_requests(flow: Flow, tx: Port, index: int) -> Iterator[Request]:
    """Make the sending end of a flow one that sockets can use.

    `flow`: in either direction.
    """
    name = tx.interface
    # The device has another one, see link_devices.device_mac, for which the kernel drops what arrives here.
    yield set_mac(name, index, tx.mac)
    yield add_address(name, index, f"{flow.source_ip}/32")
    for address in filter(None, (flow.destination_ip, flow.answers_to)):
        yield add_neighbour(name, index, address, flow.destination_mac)
        yield _host_route(name, index, address, flow.source_ip)


def _policy_rules() -> Iterator[Request]:
    """Send what is made here by the flows' own routes, before anything is taken for local."""
    yield set_up("lo", _LOOPBACK)
    # To all networks: a NAT writes addresses of others than those that flows have. The table has hosts only.
    fields = {"family": AF_INET, "dst_len": 0, "table": _TABLE, "action": _TO_TABLE}
    attrs = [("FRA_DST", "0.0.0.0"), ("FRA_IIFNAME", "lo"), ("FRA_PRIORITY", 10)]  # noqa: S104 - of packets
    yield Request(RTM_NEWRULE, CREATE_NEW, encoded(fibmsg, fields, attrs), "route own packets to 0.0.0.0/0")
    local = {"family": AF_INET, "table": _LOCAL, "action": _TO_TABLE}
    yield Request(
        RTM_NEWRULE, CREATE_NEW, encoded(fibmsg, local, [("FRA_PRIORITY", 20)]), "take in what is for this namespace"
    )
    yield Request(RTM_DELRULE, 0, encoded(fibmsg, local, [("FRA_PRIORITY", 0)]), "put that after the flows' routes")


def _host_route(name: str, index: int, address: str, source_ip: str) -> Request:
    fields = {
        "family": AF_INET,
        "dst_len": 32,
        "table": _TABLE,
        "proto": rt_proto["static"],
        "type": rt_type["unicast"],
        "scope": rt_scope["link"],
    }
    attrs = [("RTA_DST", address), ("RTA_OIF", index), ("RTA_PREFSRC", source_ip)]
    body = encoded(rtmsg, fields, attrs)
    return Request(RTM_NEWROUTE, CREATE_NEW, body, f"route {address} by {name}")


def deliver_locally(interfaces: Iterable[str], protocol: Protocol, ports: Iterable[int]) -> Iterator[Request]:
    """Requests that take in what arrives at interfaces for ports; what the namespace sends itself is routed.

    Of TCP answers are taken in too, which come from these ports: a proxy that keeps the address of a client opens
    connections of its own from there.

    `protocol`: UDP or TCP.
    """
    yield set_up("lo", _LOOPBACK)
    everything = {
        "family": AF_INET,
        "dst_len": 0,
        "table": _TABLE,
        "proto": rt_proto["static"],
        "type": rt_type["local"],
        "scope": rt_scope["host"],
    }
    body = encoded(rtmsg, everything, [("RTA_OIF", _LOOPBACK)])
    yield Request(RTM_NEWROUTE, CREATE_NEW, body, "take in all that comes here")
    rule = {"family": AF_INET, "table": _TABLE, "action": _TO_TABLE}
    number, ends = (IPPROTO_TCP, ("D", "S")) if protocol is Protocol.TCP else (IPPROTO_UDP, ("D",))
    for interface, port, end in product(interfaces, ports, ends):
        attrs = [
            ("FRA_IIFNAME", interface),
            ("FRA_IP_PROTO", number),
            (f"FRA_{end}PORT_RANGE", f"{port}:{port}"),
        ]
        body = encoded(fibmsg, rule, attrs)
        yield Request(RTM_NEWRULE, CREATE_NEW, body, f"take in {protocol} port {port} of {interface}")


_FORWARDING = (Path("/proc/sys/net/ipv4/ip_forward"), Path("/proc/sys/net/ipv6/conf/all/forwarding"))


def router_steps(
    event: PartEvent, row: Sequence[NfPlan], fabric: Fabric, reload: Callable[[], object] | None = None
) -> Steps:
    """Steps of an event.

    `row`: the NF; one that instances share has a row for each.
    `reload`: loads its rules anew; None for one that has none.

    Raises:
        Unsupported: It cannot happen to a router.
    """
    name = row[0].name
    down, up = partial(fabric.take_down, name), partial(_bring_back, row, fabric)
    if event is PartEvent.KILL:
        return Steps("ports down, routes gone", down)
    if event is PartEvent.RESTART:
        return Steps("ports down, then up with routes and data threads", down, up)
    if event is PartEvent.ADD:
        return Steps("ports up with routes and data threads", up, before=down)
    if event is PartEvent.PAUSE:
        switch = partial(_forward, fabric, name, _FORWARDING[":" in row[0].left.address])
        return Steps("IP forwarding off, then on; packets are dropped", partial(switch, "0"), partial(switch, "1"))
    if event is PartEvent.MOVE:
        return move_steps(fabric, name)
    if reload is None:
        raise refused(event, f"{name} ({row[0].kind})")
    return Steps("rules replaced in one transaction", reload)


def _bring_back(row: Sequence[NfPlan], fabric: Fabric) -> None:
    fabric.bring_back(row[0].name)
    configure_routers(row, fabric, addresses=False)


def _forward(fabric: Fabric, name: str, switch: Path, value: str) -> None:
    fabric.run_inside(name, partial(switch.write_text, value, encoding="ascii"))


def move_steps(fabric: Fabric, owner: str) -> Steps:
    """Return how the data threads of an owner's ports are moved."""
    return Steps(MOVED, partial(fabric.move_threads, owner))
