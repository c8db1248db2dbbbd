"""What this machine lacks for virtual machines."""

import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from resources.libraries.python.drivers.functions.vm.arguments import QEMU
from resources.libraries.python.drivers.functions.vm.image import cached
from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.drivers.host.programs.image_cache import cache_folder

_TUN = Path("/dev/net/tun")
_INSTALL = "as root: resources/tools/packages.sh vm"


def missing() -> tuple[Problem, ...]:
    """Yield missing requirements with fixes. Changes nothing."""
    return tuple(_missing())


def _missing() -> Iterator[Problem]:
    if platform.machine() != "x86_64":
        yield Problem(f"virtual machines are made for x86_64, this is {platform.machine()}", "leave VSC out")
        return
    if shutil.which(QEMU) is None:
        yield Problem(f"virtual machines need QEMU, and there is no {QEMU}", _INSTALL)
    if not _TUN.exists():
        yield Problem(f"virtual machines need tap devices, and there is no {_TUN}", "load the module: modprobe tun")
    if shutil.which("apt-get") is None and cached(cache_folder()) is None:
        yield Problem(
            "the kernel and busybox of virtual machines come from Debian's packages, and there is no apt-get",
            f"copy {cache_folder()} from a machine that has run a VSC",
        )
