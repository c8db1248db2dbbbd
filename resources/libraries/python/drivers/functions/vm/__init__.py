"""Network functions as virtual machines, each with a Linux kernel of its own that routes IPv4."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from resources.libraries.python.model.base import Frozen, Inconsistency
from resources.libraries.python.model.driver import (
    TUN,
    Form,
    FunctionDriver,
    GuestKind,
    KernelFeature,
    Medium,
    NodeCheck,
    RequiredProgram,
)
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.testbed.memory import NAMESPACE_MB, MemoryNeed
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode
from resources.libraries.python.planning.media import to_vswitch, vswitch_of


class Vm(Frozen):
    """How virtual machines are made."""

    memory_mb: Annotated[int, Field(ge=64)] = 128
    """Memory of a guest's system; what `vpp` says that a VPP has comes on top where one runs in the guest."""
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    """`auto` takes KVM where an ordinary guest boots on it, else software emulation (TCG)."""
    huge_pages: Literal["none", "2mb", "1gb"] = "none"
    """Backing of a guest's memory: ordinary pages, or huge ones of the NUMA node of the ports, shared."""
    boot_within_s: Annotated[float, Field(gt=0)] = 60.0
    nic: Literal["virtio", "e1000"] = "virtio"
    """Model of a guest's network cards, one of `NICS`."""


@dataclass(frozen=True, slots=True)
class GuestNicModel:
    """A model of the network cards of guests."""

    device: str
    """QEMU's name of it."""
    modules: tuple[str, ...]
    """Kernel modules by which a guest drives it."""
    kernels: tuple[str, ...] = ("linux-image-cloud-amd64", "linux-image-virtual")
    """Packages of kernels with these modules: Debian's, Ubuntu's. Each only names the package of the newest version."""
    shares_queues: bool = False
    """Whether the host's kernel (vhost) or a vSwitch (vhost-user) can serve its queues in place of QEMU."""


NICS = {
    "virtio": GuestNicModel("virtio-net-pci", ("virtio_pci", "virtio_net"), shares_queues=True),
    # Debian leaves its driver out of the kernel for virtual machines.
    "e1000": GuestNicModel("e1000", ("e1000",), ("linux-image-amd64", "linux-image-generic")),
}
"""Models by what `vm.nic` says."""

PROGRAM = RequiredProgram("qemu-system-x86_64", "qemu-system-x86", label="QEMU", version=r"version (\S+)")
KERNEL = (
    TUN,
    KernelFeature(
        "vhost-net",
        "VHOST_NET",
        "vhost_net",
        when=lambda dut: dut.settings(Vm).accelerator != "tcg" and NICS[dut.settings(Vm).nic].shares_queues,
        instead="QEMU copies packets in a thread of its own",
    ),
)
"""Of all virtual machines."""
HUGE_PAGES_MB = {"none": 0, "2mb": 2, "1gb": 1024}
"""Sizes of pages by what `vm.huge_pages` says."""
_OVERHEAD_MB = 64
"""Memory of QEMU beside the guest's under KVM; 44 MB resident measured (QEMU 7.2, no display)."""
_TRANSLATION_MB = 128
"""Translated code where a guest may run in software emulation, which `accelerator: kvm` rules out. A booted guest with
128 MB and three vCPUs has 218 MB resident, translated code included (measured, QEMU 7.2)."""
_MIN_SYSTEM_MB = 128
"""Of a Linux guest without an application; the default of `vm.memory_mb`."""


def whole_pages(memory_mb: int, page_mb: int) -> int:
    """Memory in whole huge pages of a size, in MB; as it is without such pages."""
    return -(-memory_mb // page_mb) * page_mb if page_mb else memory_mb


def machine(dut: DutNode, inside_mb: int) -> MemoryNeed:
    """Memory of a virtual machine whose guest has so much."""
    emulated = 0 if dut.settings(Vm).accelerator == "kvm" else _TRANSLATION_MB
    if page_mb := HUGE_PAGES_MB[dut.settings(Vm).huge_pages]:
        return MemoryNeed.huge(whole_pages(inside_mb, page_mb), NAMESPACE_MB + _OVERHEAD_MB + emulated)
    return MemoryNeed(NAMESPACE_MB + inside_mb + _OVERHEAD_MB + emulated)


def guest_mb(dut: DutNode, kind: NfKind) -> int:
    """Memory of a guest of a kind, where its limits do not say it."""
    application = _application(kind)
    return dut.settings(Vm).memory_mb + (0 if application is None else application.memory_mb(dut))


def _least_mb(dut: DutNode, kind: NfKind) -> int:
    application = _application(kind)
    own_mb = 0 if application is None else application.least_memory_mb(dut)
    return _MIN_SYSTEM_MB + own_mb if own_mb else 0


def _application(kind: NfKind) -> GuestKind | None:
    return None if kind.in_guest is None else kind.in_guest.driver.guest


def _memory(dut: DutNode, kind: NfKind, _: ServiceType, limits: Limits) -> MemoryNeed:
    return machine(dut, limits.memory_mib or guest_mb(dut, kind))


def _settings_problem(dut: DutNode) -> Inconsistency | None:
    nic = dut.settings(Vm).nic
    if dut.vms is None or NICS[nic].shares_queues:
        return None
    if to_vswitch(vswitch_of(dut), dut.vms) is not Medium.VHOST_USER:
        return None
    why = f"{nic} cannot be joined to {dut.vswitch}, which shares memory with virtual machines (vhost-user)"
    return Inconsistency(("vm", "nic"), f"{why}: take nic: virtio, or another vswitch")


def _wanted(node: TgNode | DutNode) -> Mapping[str, Any] | None:
    return {} if isinstance(node, DutNode) and node.vms is not None else None


def _kernels(node: TgNode | DutNode) -> Mapping[str, Any] | None:
    return None if _wanted(node) is None else {"kernels": list(NICS[node.settings(Vm).nic].kernels)}


_PACKAGE = "resources.libraries.python.drivers.functions.vm"
CHECKS = (
    NodeCheck(script=f"{_PACKAGE}.kvm_facts", arguments=_wanted, check=f"{_PACKAGE}.accelerator:check", lab_only=True),
    NodeCheck(
        script=f"{_PACKAGE}.guest_kernel_facts", arguments=_kernels, check=f"{_PACKAGE}.accelerator:check_kernel"
    ),
)
DRIVERS = (
    FunctionDriver(
        name="qemu",
        label="QEMU",
        options={"vm": Vm},
        word="lnxip4",
        form=Form.VM,
        listed=("vms",),
        simple=True,
        runs_guests=True,
        factory="resources.libraries.python.drivers.functions.vm.application_guests:make",
        missing="resources.libraries.python.drivers.functions.vm.application_guests:missing_on",
        programs=(PROGRAM,),
        kernel=KERNEL,
        events=frozenset({PartEvent.KILL, PartEvent.RESTART, PartEvent.PAUSE}),
        words=("qemu-system-x86_64",),
        memory=_memory,
        least_memory_mb=_least_mb,
        settings_problem=_settings_problem,
    ),
)
