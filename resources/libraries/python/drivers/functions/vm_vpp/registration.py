"""Declaration of VPP in virtual machines as NFs."""

from resources.libraries.python.drivers.functions.vm.registration import machine
from resources.libraries.python.drivers.vpp.registration import guest_mb
from resources.libraries.python.model.cell import ServiceType
from resources.libraries.python.model.driver import FunctionDriver, Program
from resources.libraries.python.model.function import Limits
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.memory import Need
from resources.libraries.python.model.nodes import DutNode


def _memory(dut: DutNode, _: NfKind, __: ServiceType, limits: Limits) -> Need:
    return machine(dut, limits.memory_mib or guest_mb(dut))


DRIVERS = (
    FunctionDriver(
        name="qemu_vpp",
        label="VPP in QEMU",
        kind=NfKind.QEMU_VPP,
        word="vppip4",
        factory="resources.libraries.python.drivers.functions.vm_vpp.guest_software:make",
        missing="resources.libraries.python.drivers.functions.vm_vpp.requirements:missing_on",
        programs=(Program("qemu-system-x86_64", "qemu-system-x86"), Program("vpp", "vpp")),
        memory=_memory,
    ),
)
