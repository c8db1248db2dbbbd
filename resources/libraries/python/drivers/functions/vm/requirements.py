"""Requirements of virtual machines, on this machine and on nodes before an agent runs there."""

import platform
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.functions.vm.arguments import QEMU
from resources.libraries.python.drivers.functions.vm.image import cached
from resources.libraries.python.drivers.functions.vm.registration import Vm
from resources.libraries.python.drivers.host.ownership.preflight import PreflightProblem
from resources.libraries.python.drivers.host.programs.image_cache import cache_folder
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.findings.check_finding import CheckFinding, ok, problem, warning
from resources.libraries.python.model.nodes import DutNode

_TUN = Path("/dev/net/tun")
_INSTALL = "as root: resources/tools/packages.sh vm"


def missing() -> tuple[PreflightProblem, ...]:
    """Yield missing requirements with fixes. Changes nothing."""
    return tuple(_missing())


def _missing() -> Iterator[PreflightProblem]:
    if platform.machine() != "x86_64":
        yield PreflightProblem(f"virtual machines are made for x86_64, this is {platform.machine()}", "leave VSC out")
        return
    if shutil.which(QEMU) is None:
        yield PreflightProblem(f"virtual machines need QEMU, and there is no {QEMU}", _INSTALL)
    if not _TUN.exists():
        yield PreflightProblem(
            f"virtual machines need tap devices, and there is no {_TUN}", "load the module: modprobe tun"
        )
    if shutil.which("apt-get") is None and cached(cache_folder()) is None:
        yield PreflightProblem(
            "the kernel and busybox of virtual machines come from Debian's packages, and there is no apt-get",
            f"copy {cache_folder()} from a machine that has run a VSC",
        )


class Kvm(Frozen):
    """/dev/kvm, as `kvm_facts` reports it."""

    there: bool
    usable: bool
    problem: str | None
    paravirtual: bool


def check(place: str, node: DutNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    """Yield whether virtual machines of a node run under KVM."""
    kvm = Kvm.model_validate(answer)
    lack = "" if kvm.usable else kvm.problem or "cannot be used" if kvm.there else "/dev/kvm is not there"
    fix = "enable virtualization in the firmware, then: modprobe kvm_intel (or kvm_amd)"
    if lack and node.settings(Vm).accelerator == "kvm":
        yield problem(f"{place}.vm.accelerator", "KVM", lack, f"{fix}, or say accelerator: auto")
    elif lack:
        yield warning(place, "KVM", f"{lack}: virtual machines are emulated, 20 times slower", fix)
    elif kvm.paravirtual:
        text = "is a paravirtual one, on which an ordinary guest may hang: a run tries, and emulates where it does"
        yield warning(place, "KVM", text, "measure virtual machines on bare metal")
    else:
        yield ok(place, "KVM", "/dev/kvm answers")
