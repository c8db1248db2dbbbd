"""VPP: what its use as vSwitch and as NF have in common, and its memory."""

from typing import Annotated, Literal

from pydantic import Field

from resources.libraries.python.drivers.functions.vm import Vm
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.driver import PolledPorts, RequiredProgram
from resources.libraries.python.model.testbed.memory import MemoryNeed
from resources.libraries.python.model.testbed.nodes import DutNode

SEGMENTS = "vpp_segments"
"""Key of the record for shared memory of VPPs, by its prefix."""


_MIN_BUFFERS = 16384
"""VPP's own default."""
_DESCRIPTORS = 1024
"""Of a queue by default, with DPDK and with VPP's drivers rdma and vmxnet3; DPDK's virtio ports have 256."""


class Vpp(Frozen):
    """How VPP is run, as vSwitch and as NF."""

    prefix: str = "/usr"
    """Where it is installed: the folder that has `bin/vpp`."""
    ports: Literal["auto", "dpdk", "native", "rdma", "af_xdp", "af_packet"] = "auto"
    """How the vSwitch takes packets from physical ports: DPDK, VPP's own drivers for PCI devices (virtio, vmxnet3,
    iavf), its rdma driver, AF_XDP or AF_PACKET sockets. `auto` is DPDK on NICs that DPDK knows, and VPP's own driver
    for such a NIC where the installation has no DPDK plugin. A result says which one it was."""
    main_heap_mb: Annotated[int, Field(ge=64)] = 512
    buffers_per_numa: Literal["auto"] | Annotated[int, Field(ge=1024)] = "auto"
    """Packet buffers on each NUMA node; `auto` is 16384, and for a vSwitch that polls physical ports at least twice the
    descriptors of their queues. A result with such ports says how many it were."""
    rx_mode: Literal["auto", "polling", "interrupt", "adaptive"] = "auto"
    """How workers wait for packets; `auto` is polling on dedicated cores and interrupt where a plan is oversubscribed.
    A result says which one it was."""
    poll_sleep_us: Literal["auto"] | Annotated[int, Field(ge=0)] = "auto"
    """How long the main thread sleeps when it has looked for work, in microseconds; `auto` is 0 on dedicated cores and
    100 where a plan is oversubscribed. A result says which one it was."""
    acl_rules: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Rules of an access list that every VPP, as vSwitch and as NF, looks each received packet up in; 0 for none. None
    matches but the last ones, which let IPv6 and IPv4 pass. VPP finds rules whose prefixes have the same length by one
    lookup, whatever their number."""

    @property
    def buffers(self) -> int:
        """Packet buffers on each NUMA node, of a VPP that polls no physical ports."""
        return _MIN_BUFFERS if self.buffers_per_numa == "auto" else self.buffers_per_numa


def descriptors(ports: PolledPorts) -> int:
    """Descriptors of all queues of physical ports: a buffer can be in each.

    VPP sends from its main thread, too. Receive queues are always full of buffers, and drivers take those of packets
    that are sent out of a queue when it runs short of descriptors.
    """
    return _DESCRIPTORS * (sum(ports.rx_queues) + len(ports.rx_queues) * (ports.threads + 1))


def sized(vpp: Vpp, ports: PolledPorts) -> Vpp:
    """The settings of a vSwitch: with packet buffers for the queues of its ports where the topology does not say them.

    As many again are for packets on their way, and for those that threads keep for themselves.
    """
    if vpp.buffers_per_numa != "auto":
        return vpp
    return vpp.model_copy(update={"buffers_per_numa": max(vpp.buffers, 2 * descriptors(ports))})


def ports_problem(dut: DutNode, ports: PolledPorts) -> str | None:
    """Return why packet buffers that a topology says are too few; None where they suffice, or it says none."""
    there, needed = dut.settings(Vpp).buffers_per_numa, descriptors(ports)
    if there == "auto" or there >= needed:
        return None
    receive, send = sum(ports.rx_queues), len(ports.rx_queues) * (ports.threads + 1)
    return (
        f"vpp.buffers_per_numa: {there} packet buffers are too few for {receive} receive and {send} transmit queues of "
        f"{_DESCRIPTORS} descriptors: remove the key, or set it to {2 * needed}"
    )


def acl(vpp: Vpp) -> tuple[str, ...]:
    """The plugin of an access list, where there is one."""
    return ("acl",) if vpp.acl_rules else ()


def reload_problem(dut: DutNode) -> str | None:
    """Reason why no rule set can be loaded anew; None where there is one."""
    return None if dut.settings(Vpp).acl_rules else "it has no access list (set vpp: {acl_rules: 100})"


BUFFER_BYTES = 2496
"""A packet buffer of VPP with 2048 bytes of data."""
OVERHEAD_MB = 128
"""Memory of a VPP beside its heap and buffers: 32 MB of statistics, and the program with its plugins."""
_RINGS_2MB = 8
"""Huge pages of a guest for the rings of two network cards: each ring of 1024 descriptors is in a page of its own."""

PROGRAM = RequiredProgram(
    "vpp",
    "vpp",
    label="VPP",
    version=r"vpp v?(\S+)",
    path=lambda node: f"{node.settings(Vpp).prefix}/bin/vpp",
    option="vpp.prefix",
    fix="install it (https://fd.io/docs/vpp), or say vpp.prefix",
)


def need(vpp: Vpp) -> MemoryNeed:
    """Memory of a process, from huge pages where there are enough."""
    buffers_mb = pool_mb(vpp) - vpp.main_heap_mb
    # Heap and buffers begin in pages of their own.
    pages = -(-vpp.main_heap_mb // 1024) - (-buffers_mb // 1024)
    return MemoryNeed(OVERHEAD_MB, either_mb=pool_mb(vpp), pages_1gb=pages)


def pool_mb(vpp: Vpp) -> int:
    """Heap and buffers."""
    return vpp.main_heap_mb - (-vpp.buffers * BUFFER_BYTES // 2**20)


def pages_2mb(vpp: Vpp) -> int:
    """Huge pages of 2 MB for heap and buffers, which begin in pages of their own."""
    return -(-vpp.main_heap_mb // 2) - (-vpp.buffers * BUFFER_BYTES // 2**21)


def guest_hugepages(dut: DutNode) -> int:
    """Huge pages of 2 MB that a guest has for the VPP in it.

    Its network cards read memory by physical addresses, and a ring is larger than a page of 4 KB.
    """
    return pages_2mb(dut.settings(Vpp)) + _RINGS_2MB


def guest_mb(dut: DutNode) -> int:
    """Memory of a guest with a VPP in it."""
    return dut.settings(Vm).memory_mb + OVERHEAD_MB + 2 * guest_hugepages(dut)
