"""Capacity of a simulated cell, calibrated on published figures.

    capacity = min(vSwitch, over the nodes of a service: number of NFs there x NF)
    vSwitch  = cores^0.9 / (crossing(N) x crowding(S) x copying(frame))

with S service instances of N NFs. `crossing` is the vSwitch's time per packet in microseconds: the two crossings at
the edges, next to the physical ports, and in a snake N-1 inner ones, from NF to NF. A pipeline has no inner ones, so
it is flat in N. `crowding` grows with S, as more instances leave smaller vectors for each. A single VM is a case of its
own: published figures are 10 % below those of two. Microseconds, crowding and the half-core NF are calibrated: fitted
by least squares of relative errors to CSIT-1904's 64B NDR with one vSwitch core (slides "NF service density", IETF 105
BMWG; 126 cells). Mean absolute relative error 2.4 %, 11.6 % at worst (VSC 1R10C).

Assumed, not fitted: the exponent 0.9 of the cores (a bit less than linear), NFs scaling alike, what NFs of the kernel
and programs beside it forward or look at, what a copy for a passive NF costs the vSwitch, that a path without NFs costs
it half as much as its two edges, and the cost of copying larger frames at each crossing. With 10GE ports larger frames
are bounded by line rate long before.
"""

from collections.abc import Mapping

from resources.libraries.python.model.cell import Cell, Frame, ServiceType
from resources.libraries.python.model.kinds import NfKind

_CORES_EXPONENT = 0.9
_HALF_CORE_NF_PPS = 5.97e6
"""What one half-core NF forwards; a core is two halves."""
_KINDS_PPS = {
    "linux_router": 0.6e6,
    "linux_gateway": 0.5e6,
    "linux_nat": 0.45e6,
    "linux_stateful_firewall": 0.45e6,
    "netsniff": 0.4e6,
    "tcpdump": 0.35e6,
    "linux_firewall": 0.3e6,
    "pktstat": 0.25e6,
    "process": 0.2e6,
    "suricata": 0.2e6,
    "ngrep": 0.15e6,
    "nginx_balancer": 0.1e6,
    "nginx_proxy": 0.09e6,
    "openvpn": 0.08e6,
    "wireguard": 0.1e6,
    "ipsec": 0.2e6,
}
"""The same of other kinds. Assumed: the fewer, the more is done to each packet."""
_COPY_US = 0.046
"""A copy for a passive NF: half of an inner crossing, as it is sent and not received."""
_COPY_BYTES = 4000.0
"""Bytes beyond 64 that cost as much as the rest of a crossing."""


ScalesTo = Mapping[NfKind, float]
"""Data cores beyond which an NF of a kind gets no faster."""
_WITHOUT_END: ScalesTo = {}


def capacity_pps(cell: Cell, frame: Frame, scales_to: ScalesTo = _WITHOUT_END) -> float:
    """Packets per second that a cell forwards, aggregate of all instances and both directions."""
    nodes = range(1, cell.nf_nodes + 1)
    return min([vswitch_pps(cell, frame), *(nfs_pps(cell, node, scales_to) for node in nodes)])


def vswitch_pps(cell: Cell, frame: Frame) -> float:
    """What the vSwitch forwards, aggregate of all instances and both directions."""
    crossing_us = _crossing_us(cell) * _crowding(cell) * (1 + max(0.0, frame.mean_bytes - 64) / _COPY_BYTES)
    return float(float(cell.vs_dtc) ** _CORES_EXPONENT / crossing_us * 1e6)


def nfs_pps(cell: Cell, node: int, scales_to: ScalesTo = _WITHOUT_END) -> float:
    """What the NFs at place `node` (1-based) of all instances forward together; one NF where they share it."""
    kind, cores = cell.kind_of(node) or NfKind("sim"), used_cores(cell, node, scales_to)
    return float(cell.count_of(node) * _half_core_pps(kind) * (cores / 0.5) ** _CORES_EXPONENT)


def one_pps(kind: NfKind, cores: float) -> float:
    """What one NF of a kind forwards, or looks at, with so many data cores, both directions together."""
    return float(_half_core_pps(kind) * (cores / 0.5) ** _CORES_EXPONENT)


def _half_core_pps(kind: NfKind) -> float:
    return _KINDS_PPS.get(kind, _HALF_CORE_NF_PPS)


def used_cores(cell: Cell, node: int, scales_to: ScalesTo, instance: int = 1) -> float:
    """Data cores of an NF that have work; the others idle whatever the load."""
    cores = cell.size_of(node, instance).cores
    return min(cores, scales_to.get(cell.kind_of(node, instance) or NfKind("sim"), cores))


def _crossing_us(cell: Cell) -> float:
    edges_us, inner_us = (0.198, 0.105) if cell.service_type is ServiceType.VSC else (0.155, 0.092)
    copies_us = _COPY_US * len(cell.taps)
    if cell.service_type.is_pipeline:
        return edges_us + copies_us
    if not cell.nf_nodes:
        return edges_us / 2 + copies_us
    return edges_us + inner_us * (cell.nf_nodes - 1) + copies_us


def _crowding(cell: Cell) -> float:
    """Time per packet relative to the least crowded cell of the kind."""
    more = len(cell.instances) - 2
    if cell.service_type is ServiceType.VSC:
        return 1.10 if more < 0 else 1 + 0.048 * more
    return 1.0 if more < 0 else 1.164 + 0.0236 * more
