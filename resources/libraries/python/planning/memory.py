"""Memory of a cell: what its vSwitch and NFs take, and whether the NUMA node of the interfaces has it.

All constants are here, each with its source. They are upper estimates: a cell that fits by them must not run out.
A cell is planned on one NUMA node, its memory too: memory of another node costs every packet a trip.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from resources.libraries.python.model.attachment import attachment_of
from resources.libraries.python.model.cell import Cell, ServiceType
from resources.libraries.python.model.function import Limits
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.memory import MemoryLayout, MemoryNode
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.settings import Vpp
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.planning.media import OVS_WITH_DPDK, vswitch_of
from resources.libraries.python.planning.reasons import Limit, Reason

HOST_MB = 1024
"""The operating system, this suite and its generator. Measured: an idle Debian 12 uses 411 MB, the suite 85, the
generator 35. The rest is for what else a machine does."""
NAMESPACE_MB = 2
"""A network namespace with two links and its kernel threads; 0.3 MB measured as the mean of 60."""
PROGRAM_MB = 64
"""A program in a network namespace, where its limits do not say what it may use."""
VM_OVERHEAD_MB = 64
"""What QEMU takes beside the guest's memory under KVM; 44 MB resident measured (QEMU 7.2, no display)."""
VM_TRANSLATION_MB = 128
"""Translated code where a guest may run in software emulation, which `accelerator: kvm` rules out. A booted guest with
128 MB and three vCPUs has 218 MB resident, translated code included (measured, QEMU 7.2)."""
TESTPMD_POOL_MB = 336
"""Packet buffers of a testpmd: `-m 320` for jumbo frames (128 for others) and 16 MB of rings of its two ports."""
TESTPMD_OVERHEAD_MB = 100
"""What testpmd takes beside its buffers; 38 MB of its own and 60 MB of libraries measured (DPDK 22.11, `--no-huge`)."""
VPP_HUGEPAGES_MB = 1024
"""A VPP as vSwitch or NF: FD.io CSIT sets 215,040 buffers of 2,496 bytes with SMT on, which is 512 MB of huge pages
(methodology_vpp_startup_settings), and as much again for rings and shared memory."""
VPP_HEAP_MB = 512
"""Main heap of a VPP; FD.io CSIT's startup file for VMs says 512M."""
VPP_BUFFER_BYTES = 2496
"""A packet buffer of VPP with 2048 bytes of data."""
VPP_OVERHEAD_MB = 128
"""What a VPP takes beside its heap and buffers: 32 MB of statistics, and the program with its plugins."""
VPP_VM_HUGEPAGES_MB = 4096
"""A VM with VPP inside: FD.io CSIT's QemuManager gives each 4096 MB, in huge pages that it shares with the vSwitch."""
LEAST_SYSTEM_MB = 128
"""Of a Linux guest without an application; the default of `vm.memory_mb`."""
SURICATA_LEAST_MB = 64
"""What Suricata adds to the least memory of a guest. Measured: with 1000 rules one of 128 + 64 MB starts and counts,
one of 128 + 32 MB does not answer."""
SURICATA_GUEST_MB = 192
"""What it adds by default: its memory for flows and streams (32 MB), rings for frames of 9000 bytes, and
some to spare."""
SURICATA_RULE_KB = 8
"""For each rule. Measured: 37 MB of its own with 1000 rules, 71 with 10,000, 297 with 50,000 (Suricata 7.0.10)."""
_RINGS_2MB = 8
"""Huge pages of a guest for the rings of two network cards: each ring of 1024 descriptors is in a page of its own."""
USERSPACE_SWITCH_MB = 1280
"""A vSwitch that is a process of its own without huge pages: 1024 MB that it asks DPDK for, and itself."""


OVS_OVERHEAD_MB = 256
"""What Open vSwitch takes beside DPDK's huge pages: both daemons and their libraries; 54 MB more measured."""


HUGE_PAGES_MB = {"none": 0, "2mb": 2, "1gb": 1024}
"""Sizes of pages by what `vm.huge_pages` says."""


_NONE = Limits()


@dataclass(frozen=True, slots=True)
class Need:
    """Memory by where it comes from."""

    ordinary_mb: int = 0
    hugepages_mb: int = 0
    either_mb: int = 0
    """From huge pages where there are enough for all of it, else from ordinary memory."""
    pages_1gb: int = field(default=0, compare=False)
    """Of the huge pages, where they are of 1 GB: each program begins in pages of its own."""

    def __add__(self, other: "Need") -> "Need":
        return Need(
            self.ordinary_mb + other.ordinary_mb,
            self.hugepages_mb + other.hugepages_mb,
            self.either_mb + other.either_mb,
            self.pages_1gb + other.pages_1gb,
        )

    def times(self, count: int) -> "Need":
        """Of several of a kind."""
        return Need(self.ordinary_mb * count, self.hugepages_mb * count, self.either_mb * count, self.pages_1gb * count)

    def where(self, hugepages_mb: int) -> "Need":
        """The same where there are so many huge pages: decided where the rest comes from."""
        if self.hugepages_mb + self.either_mb <= hugepages_mb:
            return Need(self.ordinary_mb, self.hugepages_mb + self.either_mb, 0, self.pages_1gb)
        return Need(self.ordinary_mb + self.either_mb, self.hugepages_mb, 0, self.pages_1gb)

    def usable_mb(self, there: MemoryNode) -> int:
        """Huge pages of a node that can be had for this: of one size, for a program that takes them takes no mixture.

        Pages of 1 GB are counted as what they hold of this, where there is one for each that is begun.
        """
        wanted, small = self.hugepages_mb + self.either_mb, 2 * there.hugepages_2mb
        return max(small, wanted) if self.pages_1gb <= there.hugepages_1gb and wanted else small


def in_pages(needs: Need, there: MemoryNode | None) -> str:
    """Huge pages that are taken, by size and NUMA node: `540 of 2 MB on NUMA 0`; empty for none."""
    taken_mb = needs.hugepages_mb + needs.either_mb
    if not taken_mb:
        return ""
    small = f"{-(-taken_mb // 2)} of 2 MB"
    if there is None:
        return f"{small}, or {needs.pages_1gb} of 1 GB"
    node = f" on NUMA {there.node}"
    return f"{small}{node}" if 2 * there.hugepages_2mb >= taken_mb else f"{needs.pages_1gb} of 1 GB{node}"


def _huge(mb: int, ordinary_mb: int = 0) -> Need:
    """A program that cannot do without huge pages."""
    return Need(ordinary_mb, mb, 0, -(-mb // 1024))


def need(topology: Topology, cell: Cell) -> Need:
    """Memory that a cell takes, the host's own share not counted."""
    dut = topology.dut
    total = _of_vswitch(topology)
    for tap in cell.taps:
        total += _of_nf(topology, ServiceType.CSC, tap.kind, tap.limits).times(cell.nf_chains)
    if len(cell.nf_kinds) <= 1 and not cell.limits and not cell.instance_kinds:
        # One kind for all: as fast as planning a thousand cells has to be.
        kind = dut.kind_of(cell.service_type, cell.kind_of(1))
        return total + _of_nf(topology, cell.service_type, kind).times(cell.nf_count)
    for instance in range(1, cell.nf_chains + 1) if cell.instance_kinds else [1]:
        for node in range(1, cell.nf_nodes + 1):
            kind = dut.kind_of(cell.service_type, cell.kind_of(node, instance))
            times = 1 if cell.instance_kinds else cell.count_of(node)
            total += _of_nf(topology, cell.service_type, kind, cell.limits_of(node, instance)).times(times)
    return total


def _of_nf(topology: Topology, service_type: ServiceType, kind: NfKind | None, limits: Limits = _NONE) -> Need:
    needs = Need()  # where the testbed has no such NF, which is a reason of its own
    match kind:
        case _ if kind is not None and kind.is_namespace:
            needs = Need(NAMESPACE_MB)
        case _ if kind is not None and kind.is_routed:
            needs = Need(NAMESPACE_MB + (limits.memory_mib or PROGRAM_MB))
        case NfKind.TESTPMD:
            if vswitch_of(topology.dut) == OVS_WITH_DPDK and service_type is not ServiceType.CSP:
                return _huge(TESTPMD_POOL_MB, NAMESPACE_MB + TESTPMD_OVERHEAD_MB)
            # Started without huge pages, which ports of the kernel do not need.
            needs = Need(NAMESPACE_MB + TESTPMD_OVERHEAD_MB + TESTPMD_POOL_MB)
        case _ if kind is not None and kind.is_vm:
            vm = topology.dut.vm
            emulated = 0 if vm.accelerator == "kvm" else VM_TRANSLATION_MB
            inside = limits.memory_mib or guest_mb(topology.dut, kind)
            needs = Need(NAMESPACE_MB + inside + VM_OVERHEAD_MB + emulated)
            if page_mb := HUGE_PAGES_MB[vm.huge_pages]:
                needs = _huge(-(-inside // page_mb) * page_mb, NAMESPACE_MB + VM_OVERHEAD_MB + emulated)
        case NfKind.VPP:
            needs = Need(NAMESPACE_MB) + _of_vpp(topology)
        case NfKind.SIM if service_type is ServiceType.VSC:
            needs = _huge(VPP_VM_HUGEPAGES_MB, NAMESPACE_MB + VM_OVERHEAD_MB)
        case NfKind.SIM:
            needs = _huge(VPP_HUGEPAGES_MB, VPP_HEAP_MB)
    return needs


def _of_vswitch(topology: Topology) -> Need:
    dut = topology.dut
    match dut.vswitch:
        case "sim":
            return _huge(VPP_HUGEPAGES_MB, VPP_HEAP_MB)
        case "linux_bridge":
            return Need(NAMESPACE_MB)
        case "vpp" if any(attachment_of(port, dut).is_dpdk for port in dut.interfaces.values() if port.pci_address):
            # DPDK does not do without huge pages.
            return _huge(_pool_mb(dut.vpp), NAMESPACE_MB + VPP_OVERHEAD_MB)
        case "vpp":
            return Need(NAMESPACE_MB) + _of_vpp(topology)
        case "ovs" if vswitch_of(dut) == OVS_WITH_DPDK:
            return _huge(dut.ovs.socket_memory_mb, NAMESPACE_MB + OVS_OVERHEAD_MB)
        case _:
            by_kernel = dut.vswitch == "ovs" and dut.ovs.ports == "kernel"
            return Need(NAMESPACE_MB + (OVS_OVERHEAD_MB if by_kernel else USERSPACE_SWITCH_MB))


def _of_vpp(topology: Topology) -> Need:
    vpp = topology.dut.vpp
    buffers_mb = _pool_mb(vpp) - vpp.main_heap_mb
    # Heap and buffers begin in pages of their own.
    pages = -(-vpp.main_heap_mb // 1024) - (-buffers_mb // 1024)
    return Need(VPP_OVERHEAD_MB, either_mb=_pool_mb(vpp), pages_1gb=pages)


def _pool_mb(vpp: Vpp) -> int:
    """Heap and buffers of a VPP."""
    return vpp.main_heap_mb - (-vpp.buffers_per_numa * VPP_BUFFER_BYTES // 2**20)


def vpp_guest_hugepages(dut: DutNode) -> int:
    """Huge pages of 2 MB that a guest has for the VPP in it.

    Its network cards read memory by physical addresses, and a ring is larger than a page of 4 KB.
    """
    vpp = dut.vpp
    in_heap = -(-vpp.main_heap_mb // 2)
    in_buffers = -(-vpp.buffers_per_numa * VPP_BUFFER_BYTES // 2**21)
    return in_heap + in_buffers + _RINGS_2MB


def guest_mb(dut: DutNode, kind: NfKind) -> int:
    """Memory of a guest of a kind, where its limits do not say it."""
    if kind is NfKind.QEMU_VPP:
        return vpp_guest_mb(dut)
    return dut.vm.memory_mb + _of_suricata(dut, SURICATA_GUEST_MB if kind is NfKind.QEMU_SURICATA else 0)


def least_guest_mb(dut: DutNode, kind: NfKind) -> int:
    """Memory that limits must leave to a guest of a kind: with less, what is in it does not start; 0 if not known."""
    return LEAST_SYSTEM_MB + _of_suricata(dut, SURICATA_LEAST_MB) if kind is NfKind.QEMU_SURICATA else 0


def _of_suricata(dut: DutNode, own_mb: int) -> int:
    """With its rules; none where it has no memory of its own."""
    return own_mb + -(-dut.suricata.rules * SURICATA_RULE_KB // 1024) if own_mb else 0


def vpp_guest_mb(dut: DutNode) -> int:
    """Memory of a guest with a VPP in it."""
    return dut.vm.memory_mb + VPP_OVERHEAD_MB + 2 * vpp_guest_hugepages(dut)


def node_of(topology: Topology, memory: MemoryLayout | None) -> MemoryNode | None:
    """The memory of the node of the interfaces; None where nothing is known of it."""
    if memory is None:
        memory = topology.dut.memory if isinstance(topology.dut.memory, tuple) else ()
    return next((node for node in memory if node.node == topology.dut.numa_node), None)


def spare_mb(there: MemoryNode) -> int:
    """Ordinary memory that a cell may take: without the host's share, and no more than was free when looked at."""
    without_host = max(0, there.ordinary_mb - HOST_MB)
    return without_host if there.available_mb is None else min(without_host, there.available_mb)


def shortages(topology: Topology, cell: Cell, there: MemoryNode | None) -> Iterable[Reason]:
    """Say which memory a cell lacks; nothing where it is not known what the testbed has."""
    if there is None:
        return
    needs = need(topology, cell)
    usable_mb = needs.usable_mb(there)
    needs = needs.where(usable_mb)
    rows = (
        (Limit.MEMORY, "memory", needs.ordinary_mb, spare_mb(there)),
        (Limit.HUGEPAGES, "huge pages", needs.hugepages_mb, usable_mb),
    )
    for limit, what, needed, has in rows:
        if needed > has:
            text = f"needs {needed} MB of {what} on NUMA {there.node}, {has} there"
            yield Reason(limit=limit, text=text, needs=needed, there=has)
