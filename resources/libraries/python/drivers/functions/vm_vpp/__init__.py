"""Network functions as virtual machines in which VPP routes IPv4."""

from resources.libraries.python.drivers.functions.vm import KERNEL, NICS, PROGRAM, Vm, machine
from resources.libraries.python.drivers.vpp import PROGRAM as VPP
from resources.libraries.python.drivers.vpp import Vpp, guest_mb
from resources.libraries.python.model.base import Inconsistency
from resources.libraries.python.model.driver import Form, FunctionDriver
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.testbed.memory import MemoryNeed
from resources.libraries.python.model.testbed.nodes import DutNode


def _memory(dut: DutNode, _: NfKind, __: ServiceType, limits: Limits) -> MemoryNeed:
    return machine(dut, limits.memory_mib or guest_mb(dut))


def _settings_problem(dut: DutNode) -> Inconsistency | None:
    nic = dut.settings(Vm).nic
    if NICS[nic].shares_queues:
        return None
    why = f"VPP in guests drives VirtIO network cards by itself, and no {nic}"
    return Inconsistency(("vm", "nic"), f"{why}: take nic: virtio, or vms: qemu")


DRIVERS = (
    FunctionDriver(
        name="qemu_vpp",
        label="VPP in QEMU",
        options={"vm": Vm, "vpp": Vpp},
        word="vppip4",
        form=Form.VM,
        listed=("vms",),
        simple=True,
        polls=None,
        factory="resources.libraries.python.drivers.functions.vm_vpp.guest_software:make",
        missing="resources.libraries.python.drivers.functions.vm_vpp.guest_software:missing",
        programs=(PROGRAM, VPP),
        kernel=KERNEL,
        events=frozenset({PartEvent.KILL, PartEvent.PAUSE}),
        memory=_memory,
        settings_problem=_settings_problem,
    ),
)
