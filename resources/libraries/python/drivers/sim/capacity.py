"""Capacity of a simulated cell, calibrated on published figures.

    capacity = min(vSwitch, instances x slowest NF)
    vSwitch  = cores^0.9 / (crossing(N) x crowding(S) x copying(frame))

with S service instances of N NFs. `crossing` is the vSwitch's time per packet in microseconds: the two crossings at
the edges, next to the physical ports, and in a snake N-1 inner ones, from NF to NF. A pipeline has no inner ones, so
it is flat in N. `crowding` grows with S, as more instances leave smaller vectors for each. A single VM is a case of its
own: published figures are 10 % below those of two. Microseconds, crowding and the half-core NF are calibrated: fitted
by least squares of relative errors to CSIT-1904's 64B NDR with one vSwitch core (slides "NF service density", IETF 105
BMWG; 126 cells). Mean absolute relative error 2.4 %, 11.6 % at worst (VSC 1R10C).

Assumed, not fitted: the exponent 0.9 of the cores (a bit less than linear), NFs scaling alike, and the cost of copying
larger frames at each crossing. With 10GE ports larger frames are bounded by line rate long before.
"""

from resources.libraries.python.model.cell import Cell, Frame, ServiceType

_CORES_EXPONENT = 0.9
_HALF_CORE_NF_PPS = 5.97e6
"""What one half-core NF forwards; a core is two halves."""
_COPY_BYTES = 4000.0
"""Bytes beyond 64 that cost as much as the rest of a crossing."""


def capacity_pps(cell: Cell, frame: Frame) -> float:
    """Packets per second that a cell forwards, aggregate of all instances and both directions."""
    return min(vswitch_pps(cell, frame), *(nfs_pps(cell, node) for node in range(1, cell.nf_nodes + 1)))


def vswitch_pps(cell: Cell, frame: Frame) -> float:
    """What the vSwitch forwards, aggregate of all instances and both directions."""
    crossing_us = _crossing_us(cell) * _crowding(cell) * (1 + max(0.0, frame.mean_bytes - 64) / _COPY_BYTES)
    return float(float(cell.vs_dtc) ** _CORES_EXPONENT / crossing_us * 1e6)


def nfs_pps(cell: Cell, node: int) -> float:
    """What the NFs at place `node` (1-based) of all instances forward together."""
    return float(cell.nf_chains * _HALF_CORE_NF_PPS * (cell.size_of(node).cores / 0.5) ** _CORES_EXPONENT)


def limiting_node(cell: Cell, frame: Frame) -> int | None:
    """The truth about what limits a cell: the place of the slowest NF, or None where it is the vSwitch."""
    node = min(range(1, cell.nf_nodes + 1), key=lambda each: nfs_pps(cell, each))
    return node if nfs_pps(cell, node) < vswitch_pps(cell, frame) else None


def _crossing_us(cell: Cell) -> float:
    edges_us, inner_us = (0.198, 0.105) if cell.service_type is ServiceType.VSC else (0.155, 0.092)
    inner = 0 if cell.service_type.is_pipeline else cell.nf_nodes - 1
    return edges_us + inner_us * inner


def _crowding(cell: Cell) -> float:
    """Time per packet relative to the least crowded cell of the kind."""
    if cell.service_type is ServiceType.VSC:
        return 1.10 if cell.nf_chains == 1 else 1 + 0.048 * (cell.nf_chains - 2)
    return 1.0 if cell.nf_chains == 1 else 1.164 + 0.0236 * (cell.nf_chains - 2)
