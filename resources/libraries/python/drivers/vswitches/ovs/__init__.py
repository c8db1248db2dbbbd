"""Open vSwitch with its userspace datapath, in daemons of its own."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.driver import (
    AF_XDP,
    KernelFeature,
    Medium,
    PolledPorts,
    PortOption,
    RequiredProgram,
    VSwitchDriver,
)
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.attachment import attachment_of
from resources.libraries.python.model.testbed.memory import NAMESPACE_MB, MemoryNeed
from resources.libraries.python.model.testbed.nodes import DutNode


class Ovs(Frozen):
    """How Open vSwitch is made."""

    ports: Literal["auto", "af_xdp", "system", "kernel", "dpdk"] = "auto"
    """How it takes packets from ports: AF_XDP sockets, AF_PACKET sockets (`system`), not at all because the kernel's
    module openvswitch forwards them (`kernel`), or DPDK; `auto` is DPDK for physical NICs that DPDK knows, and for
    virtual ports AF_XDP where it was built with that, else system. A result says which one it was."""
    socket_memory_mb: Annotated[int, Field(ge=64)] = 1024
    """Huge pages that it takes on the NUMA node of its physical ports, where DPDK drives these."""
    pmd_sleep_max_us: Literal["auto"] | Annotated[int, Field(ge=0, le=10_000)] = "auto"
    """Longest sleep of a PMD thread that finds no packets; 0 for polling without end. `auto` is 100, and 0 for physical
    ports on CPUs of their own."""
    openflow_rules: Annotated[int, Field(ge=0, le=10_000)] = 0
    """OpenFlow rules that the first packet of each flow is looked up in before what it has learned; 0 for none. None of
    them matches. Later packets of a flow find it in the datapath's cache until the rules change."""


def reload_problem(dut: DutNode) -> str | None:
    """Reason why no rule set can be loaded anew; None where there is one."""
    return None if dut.settings(Ovs).openflow_rules else "it has no OpenFlow rules (set ovs: {openflow_rules: 100})"


WITH_DPDK = "ovs_dpdk"
"""The variant whose physical ports DPDK drives: it shares memory with NFs that are DPDK programs."""
OVERHEAD_MB = 256
"""Memory beside DPDK's huge pages: both daemons and their libraries; 54 MB more measured."""
USERSPACE_MB = 1280
"""With sockets and without huge pages: 1024 MB that it asks DPDK for, and itself."""


def variant(dut: DutNode) -> str:
    """Kind of Open vSwitch on a node: on DPDK where that drives a physical port."""
    physical = (attachment_of(port, dut) for port in dut.interfaces.values() if port.pci_address is not None)
    return WITH_DPDK if any(each.is_dpdk for each in physical) else "ovs"


def _memory(dut: DutNode, _: PolledPorts) -> MemoryNeed:
    if variant(dut) == WITH_DPDK:
        return MemoryNeed.huge(dut.settings(Ovs).socket_memory_mb, NAMESPACE_MB + OVERHEAD_MB)
    return MemoryNeed(NAMESPACE_MB + (OVERHEAD_MB if dut.settings(Ovs).ports == "kernel" else USERSPACE_MB))


def _takes(ports: str) -> Callable[[DutNode], bool]:
    return lambda dut: dut.settings(Ovs).ports == ports


def _vlan_problem(dut: DutNode) -> str | None:
    if dut.settings(Ovs).ports in ("system", "kernel"):
        return None
    return "Open vSwitch separates VLANs on ports of the kernel only; use link or mac, or `ovs: {ports: system}`"


DRIVERS = (
    VSwitchDriver(
        name="ovs",
        label="Open vSwitch",
        options={"ovs": Ovs},
        factory="resources.libraries.python.drivers.vswitches.ovs.driver:OpenVSwitch",
        missing="resources.libraries.python.drivers.vswitches.ovs.daemons:missing_on",
        programs=(
            RequiredProgram("ovs-vswitchd", "openvswitch-switch", label="Open vSwitch", version=r"(\d[\w.]+)\s*$"),
        ),
        copies=True,
        words=("openvswitch", "ovsdb", "ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovs-vswitchd"),
        kernel=(
            replace(AF_XDP, when=_takes("af_xdp")),
            replace(AF_XDP, when=_takes("auto"), instead="auto takes packets through AF_PACKET sockets"),
            KernelFeature("the module openvswitch", "OPENVSWITCH", "openvswitch", when=_takes("kernel")),
        ),
        memory=_memory,
        events=frozenset(PartEvent) - {PartEvent.ADD},
        reload_problem=reload_problem,
        variant=variant,
        media={WITH_DPDK: {NfKind("testpmd"): Medium.VHOST_USER}},
        interface_words={"ovs": "ovs"},
        ports=PortOption(Ovs, "system", "sockets of Open vSwitch", frozenset({"kernel"})),
        vlan_problem=_vlan_problem,
        keeps_packets=True,  # in the ring of a port of AF_XDP, 2048 at most
    ),
)
