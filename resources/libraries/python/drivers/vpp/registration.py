"""What the declarations of VPP as vSwitch, as NF and in virtual machines share: memory of a VPP."""

from typing import cast

from resources.libraries.python.model.driver import RequiredProgram
from resources.libraries.python.model.memory import Need
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.settings import Vpp

BUFFER_BYTES = 2496
"""A packet buffer of VPP with 2048 bytes of data."""
OVERHEAD_MB = 128
"""What a VPP takes beside its heap and buffers: 32 MB of statistics, and the program with its plugins."""
_RINGS_2MB = 8
"""Huge pages of a guest for the rings of two network cards: each ring of 1024 descriptors is in a page of its own."""

PROGRAM = RequiredProgram(
    "vpp",
    "vpp",
    label="VPP",
    version=r"vpp v?(\S+)",
    path=lambda node: f"{cast(DutNode, node).vpp.prefix}/bin/vpp",
    option="vpp.prefix",
    fix="install it (https://fd.io/docs/vpp), or say vpp.prefix",
)


def need(vpp: Vpp) -> Need:
    """Memory of a process, from huge pages where there are enough."""
    buffers_mb = pool_mb(vpp) - vpp.main_heap_mb
    # Heap and buffers begin in pages of their own.
    pages = -(-vpp.main_heap_mb // 1024) - (-buffers_mb // 1024)
    return Need(OVERHEAD_MB, either_mb=pool_mb(vpp), pages_1gb=pages)


def pool_mb(vpp: Vpp) -> int:
    """Heap and buffers."""
    return vpp.main_heap_mb - (-vpp.buffers_per_numa * BUFFER_BYTES // 2**20)


def guest_hugepages(dut: DutNode) -> int:
    """Huge pages of 2 MB that a guest has for the VPP in it.

    Its network cards read memory by physical addresses, and a ring is larger than a page of 4 KB.
    """
    vpp = dut.vpp
    in_heap = -(-vpp.main_heap_mb // 2)
    in_buffers = -(-vpp.buffers_per_numa * BUFFER_BYTES // 2**21)
    return in_heap + in_buffers + _RINGS_2MB


def guest_mb(dut: DutNode) -> int:
    """Memory of a guest with a VPP in it."""
    return dut.vm.memory_mb + OVERHEAD_MB + 2 * guest_hugepages(dut)
