"""Contention of simulated network functions for the caches and the memory of one server: known, as a truth to test by.

    left(i | j, k, ...) = 1 - s_i D / (D + h_i),   D = p_j + p_k + ...

The pressure p of each neighbour adds up to what displaces the working set of a target. Its loss saturates: it goes
towards the sensitivity s, all that it can lose, of which half is lost at a pressure of h. So several neighbours nearly
always leave more than the product of what each of them leaves. Placements are predicted by another model, see
`interference.company`.

The constants of types I to V are fitted by least squares, and rounded, to the figures of Zeng et al.: row means (Table
III) 87.64, 49.69, 64.07, 64.78 and 61.14 %, I beside III 85.41 %, II beside III 61.53 %, III beside II 64.49 %, and IV
and V as the most aggressive ones. All eight are met within 1.2 points. Eight figures do not determine fifteen
constants: pressures are bounded (I 0.03 to 0.08, II and III up to 0.5), and single pairs that the paper does not print
are not claimed. The other kinds are assumed, in the order of their types.

With guaranteed network I/O a part of each loss is given back, `network_part` of the simulation, for any co-located NFs:
where all are limited, and their limits together are no more than the line carries. Beyond that nothing is guaranteed.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from resources.libraries.python.drivers.sim.simulation import Simulation
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.plan import NfPlan


class Contention(NamedTuple):
    """How network functions of a kind get along with others."""

    sensitivity: float
    """Share of the throughput that is lost at most, in [0, 1)."""
    half_pressure: float
    """Pressure of neighbours at which half of that is lost, above 0."""
    pressure: float
    """On each neighbour, in [0, 1)."""


CONTENTION: Mapping[str, Contention] = {
    # Types I, II, III, III, IV, V: fitted.
    "linux_gateway": Contention(0.15, 0.02, 0.03),
    "pktstat": Contention(0.94, 0.26, 0.35),
    "suricata": Contention(0.95, 0.59, 0.18),
    "ngrep": Contention(0.95, 0.59, 0.18),
    "nginx_balancer": Contention(0.95, 0.61, 0.93),
    "nginx_proxy": Contention(0.95, 0.50, 0.95),
    # Assumed.
    "linux_router": Contention(0.12, 0.02, 0.02),
    "linux_firewall": Contention(0.40, 0.15, 0.10),
    "linux_nat": Contention(0.45, 0.30, 0.30),
    "linux_stateful_firewall": Contention(0.45, 0.30, 0.30),
    "netsniff": Contention(0.90, 0.30, 0.30),
    "tcpdump": Contention(0.92, 0.28, 0.33),
    "openvpn": Contention(0.90, 0.50, 0.95),
    "wireguard": Contention(0.90, 0.50, 0.95),
    "ipsec": Contention(0.90, 0.50, 0.95),
}
_OTHER = Contention(0.50, 0.30, 0.30)
_WAYS = 2
_ROUNDING = 1e-9


def left_by(neighbours: Sequence[NfPlan], function: NfPlan, simulation: Simulation, line_pps: float) -> float:
    """The share of what a network function can do alone that its neighbours leave to it.

    Args:
        neighbours: All others on the server.
        function: The target.
        simulation: Has constants of its own for some kinds.
        line_pps: What the line carries for all of them, one way.
    """
    own = _of(function.kind, simulation)
    pressure = sum(_of(each.kind, simulation).pressure for each in neighbours)
    lost = own.sensitivity * pressure / (pressure + own.half_pressure)
    guaranteed = is_guaranteed((function, *neighbours), line_pps)
    return 1 - lost * (1 - simulation.network_part if guaranteed else 1)


def is_guaranteed(colocated: Sequence[NfPlan], line_pps: float) -> bool:
    """Whether each has its share of the line: all are limited, to no more than the line carries for all of them."""
    limits = [each.limits.network_pps for each in colocated]
    known = [limit_pps for limit_pps in limits if limit_pps is not None]
    return len(known) == len(limits) and sum(known) <= line_pps * (1 + _ROUNDING)


def limit_pps(function: NfPlan) -> float | None:
    """What a network function may receive, both ways; None where that is not limited."""
    each_pps = function.limits.network_pps
    return None if each_pps is None else _WAYS * each_pps


def _of(kind: NfKind, simulation: Simulation) -> Contention:
    known = CONTENTION.get(kind, _OTHER)
    return Contention(
        simulation.sensitivity.get(kind, known.sensitivity),
        simulation.half_pressure.get(kind, known.half_pressure),
        simulation.pressure.get(kind, known.pressure),
    )
