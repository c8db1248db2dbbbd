"""Configuration of nginx as an NF, from the plan. Pure."""

from ipaddress import IPv4Network

from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.traffic import TrafficProfile
from resources.libraries.python.rendering import render

_BEHIND = 4
"""Addresses that the datagrams of a direction are spread over."""
_CONNECTIONS = 4096
"""At a time; a datagram has two, for the moment that it takes to send it on."""
_BUFFER_BYTES = 4 << 20
_TEMPLATE = "nginx-stream.conf.j2"


def ports(traffic: TrafficProfile) -> tuple[int, int]:
    """UDP ports whose datagrams it takes in: those of load and of probes. It routes all others past itself."""
    return traffic.load.udp_port, traffic.probes.port


def configuration(function: NfPlan, traffic: TrafficProfile, *, workers: int, module: str | None) -> str:
    """The configuration file of an NF.

    A balancer keeps the source address and port of a datagram, a proxy sends it on under its own. Both change the
    destination: to one of four addresses in the network that it was sent to, in turns.

    Args:
        function: Has the networks at both sides.
        traffic: Has the ports.
        workers: Processes that share the work.
        module: nginx's stream module as a file; None where it is built in.
    """
    return render(
        _TEMPLATE,
        {
            "name": function.name,
            "module": module,
            "workers": workers,
            "connections": _CONNECTIONS,
            "buffer_bytes": _BUFFER_BYTES,
            "ports": ports(traffic),
            "right": [function.right.route.prefix],
            "behind": {
                "forward": _addresses(function.right.route.prefix),
                "reverse": _addresses(function.left.route.prefix),
            },
            "transparent": "nginx_balancer" in (function.kind, function.kind.in_guest),
        },
    )


def _addresses(prefix: str) -> list[str]:
    """The last ones of a network: flows begin with the first."""
    last = IPv4Network(prefix).broadcast_address
    return [str(last - number) for number in range(1, _BEHIND + 1)]
