"""What simulated network functions of one server take from each other: known, so that a study can be held against it.

    left(i | j, k, ...) = (1 - s_i p_j) (1 - s_i p_k) ...

with the sensitivity s of who suffers and the pressure p of each neighbour, both in [0, 1). Where the neighbours have a
guaranteed share of the network, the part of that product that is not about the network is left of s_i p_j. The numbers
are assumed: in the order of what Zeng et al. saw, where those that look into packets suffer and press most.
"""

from collections.abc import Mapping
from math import prod

from resources.libraries.python.drivers.sim.simulation import Simulation
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.plan import NfPlan

SENSITIVITY: Mapping[NfKind, float] = {
    NfKind.LINUX_ROUTER: 0.20,
    NfKind.LINUX_GATEWAY: 0.25,
    NfKind.LINUX_FIREWALL: 0.40,
    NfKind.LINUX_NAT: 0.45,
    NfKind.NETSNIFF: 0.45,
    NfKind.TCPDUMP: 0.50,
    NfKind.PKTSTAT: 0.60,
    NfKind.NGREP: 0.65,
    NfKind.SURICATA: 0.65,
    NfKind.NGINX_BALANCER: 0.40,
    NfKind.NGINX_PROXY: 0.50,
    NfKind.OPENVPN: 0.40,
}
PRESSURE: Mapping[NfKind, float] = {
    NfKind.LINUX_ROUTER: 0.25,
    NfKind.LINUX_GATEWAY: 0.30,
    NfKind.LINUX_FIREWALL: 0.45,
    NfKind.LINUX_NAT: 0.50,
    NfKind.NETSNIFF: 0.70,
    NfKind.TCPDUMP: 0.60,
    NfKind.PKTSTAT: 0.55,
    NfKind.NGREP: 0.80,
    NfKind.SURICATA: 0.80,
    NfKind.NGINX_BALANCER: 0.70,
    NfKind.NGINX_PROXY: 0.75,
    NfKind.OPENVPN: 0.85,
}
_OTHER_SENSITIVITY, _OTHER_PRESSURE = 0.3, 0.4
_WAYS = 2


def left_by(neighbours: list[NfPlan], function: NfPlan, simulation: Simulation) -> float:
    """The share of what a network function can do alone that its neighbours leave to it."""
    sensitive = simulation.sensitivity.get(function.kind, SENSITIVITY.get(function.kind, _OTHER_SENSITIVITY))
    return prod(1 - sensitive * _pressure(each, simulation) for each in neighbours)


def guaranteed_pps(function: NfPlan) -> float | None:
    """What a network function may receive, both ways; None where that is not limited."""
    limit_pps = function.limits.network_pps
    return None if limit_pps is None else _WAYS * limit_pps


def _pressure(neighbour: NfPlan, simulation: Simulation) -> float:
    whole = simulation.pressure.get(neighbour.kind, PRESSURE.get(neighbour.kind, _OTHER_PRESSURE))
    return whole if neighbour.limits.network_pps is None else whole * (1 - simulation.network_part)
