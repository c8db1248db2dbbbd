"""Declaration of Linux guests of QEMU as NFs, and memory of virtual machines."""

from resources.libraries.python.drivers.functions.monitor.registration import (
    SURICATA_GUEST_MB,
    SURICATA_LEAST_MB,
    suricata_mb,
)
from resources.libraries.python.model.cell import ServiceType
from resources.libraries.python.model.driver import FunctionDriver, RequiredProgram
from resources.libraries.python.model.function import Limits
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.memory import NAMESPACE_MB, Need
from resources.libraries.python.model.nodes import DutNode

PROGRAM = RequiredProgram("qemu-system-x86_64", "qemu-system-x86", label="QEMU", version=r"version (\S+)")
HUGE_PAGES_MB = {"none": 0, "2mb": 2, "1gb": 1024}
"""Sizes of pages by what `vm.huge_pages` says."""
_OVERHEAD_MB = 64
"""What QEMU takes beside the guest's memory under KVM; 44 MB resident measured (QEMU 7.2, no display)."""
_TRANSLATION_MB = 128
"""Translated code where a guest may run in software emulation, which `accelerator: kvm` rules out. A booted guest with
128 MB and three vCPUs has 218 MB resident, translated code included (measured, QEMU 7.2)."""
_LEAST_SYSTEM_MB = 128
"""Of a Linux guest without an application; the default of `vm.memory_mb`."""


def machine(dut: DutNode, inside_mb: int) -> Need:
    """Memory of a virtual machine whose guest has so much."""
    emulated = 0 if dut.vm.accelerator == "kvm" else _TRANSLATION_MB
    if page_mb := HUGE_PAGES_MB[dut.vm.huge_pages]:
        return Need.huge(-(-inside_mb // page_mb) * page_mb, NAMESPACE_MB + _OVERHEAD_MB + emulated)
    return Need(NAMESPACE_MB + inside_mb + _OVERHEAD_MB + emulated)


def guest_mb(dut: DutNode, kind: NfKind) -> int:
    """Memory of a guest of a kind, where its limits do not say it."""
    return dut.vm.memory_mb + (suricata_mb(dut, SURICATA_GUEST_MB) if kind is NfKind.QEMU_SURICATA else 0)


def _least_mb(dut: DutNode, kind: NfKind) -> int:
    return _LEAST_SYSTEM_MB + suricata_mb(dut, SURICATA_LEAST_MB) if kind is NfKind.QEMU_SURICATA else 0


def _memory(dut: DutNode, kind: NfKind, _: ServiceType, limits: Limits) -> Need:
    return machine(dut, limits.memory_mib or guest_mb(dut, kind))


DRIVERS = (
    FunctionDriver(
        name="qemu",
        label="QEMU",
        kind=NfKind.QEMU,
        word="lnxip4",
        factory="resources.libraries.python.drivers.functions.vm_application.guest_software:make",
        missing="resources.libraries.python.drivers.functions.vm_application.requirements:missing_on",
        programs=(PROGRAM,),
        words=("qemu-system-x86_64",),
        memory=_memory,
        least_memory_mb=_least_mb,
    ),
)
