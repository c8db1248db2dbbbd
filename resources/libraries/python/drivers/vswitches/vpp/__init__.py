"""VPP as the vSwitch: a bridge domain per L2 segment."""

from dataclasses import replace

from resources.libraries.python.drivers.vpp import (
    PROGRAM,
    SEGMENTS,
    Vpp,
    need,
    ports_problem,
    reload_problem,
    sized,
)
from resources.libraries.python.model.driver import (
    AF_XDP,
    Form,
    Leftover,
    Medium,
    PolledPorts,
    PortOption,
    VSwitchDriver,
)
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.attachment import attachment_of
from resources.libraries.python.model.testbed.memory import NAMESPACE_MB, MemoryNeed
from resources.libraries.python.model.testbed.nodes import DutNode


def _memory(dut: DutNode, ports: PolledPorts) -> MemoryNeed:
    each = need(sized(dut.settings(Vpp), ports))
    if any(attachment_of(port, dut).is_dpdk for port in dut.interfaces.values() if port.pci_address):
        # DPDK does not do without huge pages.
        each = replace(each, hugepages_mb=each.either_mb, either_mb=0)
    return MemoryNeed(NAMESPACE_MB) + each


DRIVERS = (
    VSwitchDriver(
        name="vpp",
        label="VPP",
        options={"vpp": Vpp},
        factory="resources.libraries.python.drivers.vswitches.vpp.driver:VppSwitch",
        missing="resources.libraries.python.drivers.vswitches.vpp.driver:missing",
        programs=(PROGRAM,),
        words=("vppctl",),
        kernel=(replace(AF_XDP, when=lambda node: node.settings(Vpp).ports == "af_xdp"),),
        memory=_memory,
        ports_problem=ports_problem,
        events=frozenset(PartEvent) - {PartEvent.ADD},
        reload_problem=reload_problem,
        starts_on_main_cpu=True,
        media={
            "vpp": {
                NfKind("vpp"): Medium.MEMIF,
                NfKind("vpp_ipsec"): Medium.MEMIF,
                Form.VM: Medium.VHOST_USER,
            }
        },
        ports=PortOption(Vpp, "af_packet", "AF_PACKET sockets"),
        tags_frames=True,
        patches_segments=False,
    ),
)
LEFTOVERS = (
    Leftover(
        key=SEGMENTS,
        label="shared memory of VPP",
        remove="resources.libraries.python.drivers.vpp.instance:remove_segments",
    ),
)
