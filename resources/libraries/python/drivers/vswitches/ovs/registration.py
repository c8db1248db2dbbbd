"""Declaration of Open vSwitch as the vSwitch."""

from resources.libraries.python.model.attachment import attachment_of
from resources.libraries.python.model.driver import PortOption, RequiredProgram, VSwitchDriver
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.memory import NAMESPACE_MB, Need
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import Medium

WITH_DPDK = "ovs_dpdk"
"""The variant whose physical ports DPDK drives: it shares memory with NFs that are DPDK programs."""
OVERHEAD_MB = 256
"""What it takes beside DPDK's huge pages: both daemons and their libraries; 54 MB more measured."""
USERSPACE_MB = 1280
"""With sockets and without huge pages: 1024 MB that it asks DPDK for, and itself."""


def variant(dut: DutNode) -> str:
    """What Open vSwitch is on a node: on DPDK where that drives a physical port."""
    physical = (attachment_of(port, dut) for port in dut.interfaces.values() if port.pci_address is not None)
    return WITH_DPDK if any(each.is_dpdk for each in physical) else "ovs"


def _memory(dut: DutNode) -> Need:
    if variant(dut) == WITH_DPDK:
        return Need.huge(dut.ovs.socket_memory_mb, NAMESPACE_MB + OVERHEAD_MB)
    return Need(NAMESPACE_MB + (OVERHEAD_MB if dut.ovs.ports == "kernel" else USERSPACE_MB))


def _vlan_problem(dut: DutNode) -> str | None:
    if dut.ovs.ports in ("system", "kernel"):
        return None
    return "Open vSwitch separates VLANs on ports of the kernel only; use link or mac, or `ovs: {ports: system}`"


DRIVERS = (
    VSwitchDriver(
        name="ovs",
        label="Open vSwitch",
        factory="resources.libraries.python.drivers.vswitches.ovs.driver:make",
        missing="resources.libraries.python.drivers.vswitches.ovs.programs:missing_on",
        programs=(
            RequiredProgram("ovs-vswitchd", "openvswitch-switch", label="Open vSwitch", version=r"(\d[\w.]+)\s*$"),
        ),
        words=("openvswitch", "ovsdb", "ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovs-vswitchd"),
        memory=_memory,
        variant=variant,
        media={WITH_DPDK: {NfKind.TESTPMD: Medium.VHOST_USER}},
        interface_words={"ovs": "ovs"},
        ports=PortOption("ovs", "system", "sockets of Open vSwitch", frozenset({"kernel"})),
        vlan_problem=_vlan_problem,
        keeps_packets=True,  # in the ring of a port of AF_XDP, 2048 at most
    ),
)
