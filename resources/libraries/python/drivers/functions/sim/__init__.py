"""Simulated network functions, which are as large as VPP in FD.io CSIT's tests."""

from resources.libraries.python.drivers.vswitches.sim import HEAP_MB, HUGE_PAGES_MB
from resources.libraries.python.model.driver import IPV4, Form, FunctionDriver, Traffic
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.testbed.memory import NAMESPACE_MB, MemoryNeed
from resources.libraries.python.model.testbed.nodes import DutNode

_VM_HUGE_PAGES_MB = 4096
"""A VM with VPP inside: FD.io CSIT's QemuManager gives each 4096 MB, in huge pages that it shares with the vSwitch."""
_VM_OVERHEAD_MB = 64


def _memory(_: DutNode, __: NfKind, service_type: ServiceType, ___: Limits) -> MemoryNeed:
    if service_type is ServiceType.VSC:
        return MemoryNeed.huge(_VM_HUGE_PAGES_MB, NAMESPACE_MB + _VM_OVERHEAD_MB)
    return MemoryNeed.huge(HUGE_PAGES_MB, HEAP_MB)


DRIVERS = (
    FunctionDriver(
        name="sim",
        label="simulated NF",
        word="simip4",
        form=Form.PROGRAM,
        listed=("containers", "vms"),
        memory=_memory,
        simple=True,
        takes=IPV4 | {Traffic.IPV6},
        passive=True,
        shareable=True,
        events=frozenset(PartEvent),
    ),
)
