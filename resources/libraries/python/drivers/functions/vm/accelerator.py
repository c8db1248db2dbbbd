"""KVM or software emulation (TCG)? Found out by booting a guest.

A /dev/kvm that is there and can be opened does not mean that an ordinary guest runs on it: inside a virtual machine it
may be one on which QEMU fails, or on which a kernel hangs. So a guest is booted once per start of the machine.
"""

import logging
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from resources.libraries.python.drivers.functions.vm.arguments import Hardware, arguments
from resources.libraries.python.drivers.functions.vm.guest import Console
from resources.libraries.python.drivers.functions.vm.image import Image
from resources.libraries.python.drivers.functions.vm.init import probe_command_line
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.base import Frozen

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

    Args:
        wanted: As the testbed says.
        kernel: Version of the guests' kernel.
        memory: File in which the outcome of a trial is remembered until the machine is started anew.
        try_kvm: Boots a guest; returns why it does not, empty when it does.
        boot_id: Of this start of the machine; the kernel's by default.

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

    Args:
        image: To boot.
        folder: For its console.
        machine: Keeps its process on record.
        within_s: Deadline in seconds.
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
        return _failure(console, f"QEMU ended with {process.returncode} after {time.monotonic() - begin:.1f} s")
    return ""


def _failure(console: Console, how: str) -> str:
    lines = console.tail().splitlines()
    return f"{how} ({next((line for line in lines if 'error' in line), lines[-1])})"
