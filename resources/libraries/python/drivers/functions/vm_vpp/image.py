"""What a guest with VPP begins with: the image of all guests, and on top of it this machine's VPP."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from resources.libraries.python.drivers.functions.vm.archive import file
from resources.libraries.python.drivers.functions.vm.extended_image import extended
from resources.libraries.python.drivers.functions.vm.image import Image
from resources.libraries.python.drivers.functions.vm.init import READY
from resources.libraries.python.drivers.functions.vm.libraries import libraries
from resources.libraries.python.drivers.vpp.installation import program
from resources.libraries.python.rendering import render

FOLDER = Path("/run/vpp")
"""Of VPP in the guest."""
PORT = "csit.vpp"
"""The port from the host to VPP's command line."""
STARTUP = "opt/csit/startup.conf"
"""What QEMU calls the file with VPP's configuration."""
TCP = 5002
"""Where VPP takes commands in the guest: its busybox can connect by TCP only."""


def initramfs(base: Image, prefix: Path, cache: Path) -> Path:
    """An archive with the guests' image and VPP, made once for each VPP; the last one only is kept.

    Args:
        base: Of all guests.
        prefix: Where VPP is installed.
        cache: Where archives are kept.

    Raises:
        Unsupported: Libraries of VPP cannot be found.
        CsitError: It cannot be made.
    """
    vpp = program(prefix)
    files = (vpp, *libraries([vpp]))
    init = render_init(base.description.user_space_modules, vpp, files[1:])
    return extended(base, "vpp", files, [file("init", init.encode(), executable=True)], cache)


def render_init(modules: Sequence[str], vpp: Path, needed: Iterable[Path]) -> str:
    """The guest's first program.

    Args:
        modules: Names of kernel modules, in the order of loading.
        vpp: The program.
        needed: Its libraries.
    """
    values = {
        "modules": modules,
        "folder": FOLDER,
        "port": PORT,
        "startup": STARTUP,
        "program": vpp,
        "libraries": list(dict.fromkeys(str(path.parent) for path in needed)),
        "tcp": TCP,
        "ready": READY,
    }
    return render("guest-vpp-init.sh.j2", values)
