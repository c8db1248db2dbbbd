"""DPDK testpmd as an NF, a process each."""

from resources.libraries.python.model.driver import IPV4, PACKET, Form, FunctionDriver, RequiredProgram, Traffic
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.testbed.memory import NAMESPACE_MB, MemoryNeed
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.planning.media import SHARED_MEMORY, to_vswitch, vswitch_of

_POOL_MB = 336
"""Packet buffers: `-m 320` for jumbo frames (128 for others) and 16 MB of rings of its two ports."""
_OVERHEAD_MB = 100
"""Memory beside its buffers; 38 MB of its own and 60 MB of libraries measured (DPDK 22.11, `--no-huge`)."""


def _memory(dut: DutNode, kind: NfKind, service_type: ServiceType, _: Limits) -> MemoryNeed:
    if to_vswitch(vswitch_of(dut), kind) in SHARED_MEMORY and service_type is not ServiceType.CSP:
        return MemoryNeed.huge(_POOL_MB, NAMESPACE_MB + _OVERHEAD_MB)
    # Started without huge pages, which ports of the kernel do not need.
    return MemoryNeed(NAMESPACE_MB + _OVERHEAD_MB + _POOL_MB)


DRIVERS = (
    FunctionDriver(
        name="testpmd",
        label="testpmd",
        word="testpmd",
        form=Form.PROGRAM,
        simple=True,
        takes=IPV4 | {Traffic.IPV6},
        polls=True,
        joins_late=True,
        factory="resources.libraries.python.drivers.functions.testpmd.driver:Testpmds",
        missing="resources.libraries.python.drivers.functions.testpmd.driver:missing",
        programs=(RequiredProgram("dpdk-testpmd", "dpdk-dev"),),
        kernel=(PACKET,),
        events=frozenset({PartEvent.KILL, PartEvent.RESTART, PartEvent.PAUSE, PartEvent.ADD, PartEvent.MOVE}),
        starts_on_main_cpu=True,
        memory=_memory,
    ),
)
