"""Requirements of virtual machines; KVM or software emulation (TCG)? Found out by booting a guest.

A /dev/kvm that is there and can be opened does not mean that an ordinary guest runs on it: inside a virtual machine it
may be one on which QEMU fails, or on which a kernel hangs. So a guest is booted once per start of the machine.
"""

import logging
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from resources.libraries.python.drivers.functions.vm import Vm
from resources.libraries.python.drivers.functions.vm.guest import Console
from resources.libraries.python.drivers.functions.vm.image import Image, cached
from resources.libraries.python.drivers.functions.vm.init import probe_command_line
from resources.libraries.python.drivers.functions.vm.qemu import QEMU, Hardware, arguments
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.image_cache import cache_folder
from resources.libraries.python.errors import Unsupported, ending
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.findings import CheckFinding, PreflightProblem, ok, problem, warning
from resources.libraries.python.model.testbed.nodes import DutNode

_KVM = Path("/dev/kvm")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_WITHIN_S = 10.0
"""A guest with KVM boots in about a second."""
_log = logging.getLogger(__name__)


class AcceleratorChoice(Frozen):
    """Accelerator of guests, and the reason."""

    accelerator: Literal["kvm", "tcg"]
    why: str


class _Remembered(Frozen):
    """A choice with the circumstances in which it was made."""

    boot_id: str
    kernel: str
    choice: AcceleratorChoice


def choose(
    wanted: Literal["auto", "kvm", "tcg"], kernel: str, memory: Path, try_kvm: Callable[[], str], boot_id: str = ""
) -> AcceleratorChoice:
    """Choose the accelerator.

    `kernel`: Version of the guests' kernel.
    `memory`: File in which the outcome of a trial is remembered until the machine is started anew.
    `try_kvm`: Boots a guest; returns why it does not, empty when it does.
    `boot_id`: Of this start of the machine; the kernel's by default.

    Raises:
        Unsupported: The testbed insists on KVM, and an ordinary guest does not boot on it.
    """
    if wanted == "tcg":
        return AcceleratorChoice(accelerator="tcg", why="the testbed asks for software emulation")
    boot_id = boot_id or _BOOT_ID.read_text(encoding="ascii").strip()
    choice = _recall(memory, boot_id, kernel)
    if choice is None:
        failure = try_kvm()
        choice = (
            AcceleratorChoice(accelerator="tcg", why=f"no guest boots with KVM here: {failure}")
            if failure
            else AcceleratorChoice(accelerator="kvm", why="a guest booted with KVM")
        )
        _log.info("%s: %s", choice.accelerator, choice.why)
        remembered = _Remembered(boot_id=boot_id, kernel=kernel, choice=choice)
        memory.write_text(remembered.model_dump_json(indent=2), encoding="utf-8")
    if wanted == "kvm" and choice.accelerator != "kvm":
        raise Unsupported(f"{choice.why}; `accelerator: auto` takes software emulation then")
    return choice


def _recall(memory: Path, boot_id: str, kernel: str) -> AcceleratorChoice | None:
    try:
        remembered = _Remembered.model_validate_json(memory.read_bytes())
    except (OSError, ValidationError):
        return None
    return remembered.choice if (remembered.boot_id, remembered.kernel) == (boot_id, kernel) else None


def try_kvm(image: Image, folder: Path, machine: MachineLock, within_s: float = _WITHIN_S) -> str:
    """Boot a guest with KVM; return why it does not boot, empty when it does.

    `folder`: for its console.
    `within_s`: deadline in seconds.
    """
    try:
        _KVM.open("rb").close()
    except OSError as error:
        return f"{_KVM}: {error.strerror}"
    console = Console(folder / "kvm-probe.console")
    hardware = Hardware("kvm", memory_mb=128, vcpus=1)
    argv = arguments("kvm-probe", hardware, (image.kernel, image.initramfs), probe_command_line())
    begin = time.monotonic()
    with (
        console.path.open("wb") as out,
        subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT) as process,
    ):
        machine.claim_process(process.pid)
        try:
            process.wait(within_s)
        except subprocess.TimeoutExpired:
            return _failure(console, f"it hangs for {within_s:g} s")
        finally:
            process.kill()
            process.wait()
            machine.release_process(process.pid)
    if not console.ready:
        return _failure(console, f"QEMU {ending(process.returncode)} after {time.monotonic() - begin:.1f} s")
    return ""


def _failure(console: Console, how: str) -> str:
    lines = console.tail().splitlines()
    return f"{how} ({next((line for line in lines if 'error' in line), lines[-1])})"


_TUN = Path("/dev/net/tun")
_INSTALL = "as root: resources/tools/packages.sh vm"


def missing(nic: str = "virtio") -> tuple[PreflightProblem, ...]:
    """Return missing requirements of guests with a model of network cards, with fixes. Changes nothing."""
    return tuple(_missing(nic))


def _missing(nic: str) -> Iterator[PreflightProblem]:
    if platform.machine() != "x86_64":
        yield PreflightProblem(f"virtual machines are made for x86_64, this is {platform.machine()}", "leave VSC out")
        return
    if shutil.which(QEMU) is None:
        yield PreflightProblem(f"virtual machines need QEMU, and there is no {QEMU}", _INSTALL)
    if not _TUN.exists():
        yield PreflightProblem(
            f"virtual machines need tap devices, and there is no {_TUN}", "load the module: modprobe tun"
        )
    if shutil.which("apt-get") is None and cached(cache_folder(), nic) is None:
        yield PreflightProblem(
            "the kernel and busybox of virtual machines come from Debian's packages, and there is no apt-get",
            f"copy {cache_folder()} from a machine that has run a VSC with nic: {nic}",
        )


class GuestKernel(Frozen):
    """The package of guests' kernel, as `guest_kernel_facts` reports it."""

    package: str | None
    problem: str | None


def check_kernel(place: str, node: DutNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    """Yield which kernel virtual machines of a node get, or that a run can only take one of its cache."""
    kernel, nic = GuestKernel.model_validate(answer), node.settings(Vm).nic
    if kernel.package is not None:
        yield ok(place, "guest kernel", f"{kernel.package}, for {nic} NICs")
    else:
        text = f"{kernel.problem}: virtual machines with {nic} NICs need the image of an earlier run"
        yield warning(f"{place}.vm.nic", "guest kernel", text, "as root: apt-get update, or choose another model")


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
