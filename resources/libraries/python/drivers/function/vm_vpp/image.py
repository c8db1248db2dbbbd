"""What a guest with VPP begins with: the image of all guests, and on top of it this machine's VPP."""

import hashlib
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from resources.libraries.python.drivers.function.vm.archive import Entry, cpio, file, folder
from resources.libraries.python.drivers.function.vm.image import Image
from resources.libraries.python.drivers.function.vm.init import READY
from resources.libraries.python.drivers.function.vm_vpp.libraries import libraries
from resources.libraries.python.drivers.host.image_cache import alone
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
_NAME = "vpp-"
_log = logging.getLogger(__name__)


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
    place = cache / f"{_NAME}{_digest(base, files, init)}.cpio"
    with alone(cache):
        if not place.exists():
            # The kernel unpacks archives that follow one another, and takes the last of two files of a name.
            content = base.initramfs.read_bytes() + cpio(
                [*carried(files), file("init", init.encode(), executable=True)]
            )
            _write(place, content)
            for old in set(cache.glob(f"{_NAME}*.cpio")) - {place}:
                old.unlink()
            _log.info("made %s, %d MB", place, len(content) // 2**20)
    return place


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


def carried(files: Iterable[Path]) -> list[Entry]:
    """Programs and libraries with the folders that they are in, where this machine has them."""
    rows = list(files)
    parents = sorted({parent for path in rows for parent in path.relative_to("/").parents} - {Path()})
    return [
        *(folder(str(path)) for path in parents),
        *(file(str(path.relative_to("/")), path.read_bytes(), executable=True) for path in rows),
    ]


def _digest(base: Image, files: Iterable[Path], init: str) -> str:
    """Changes with whatever goes into the archive; of large files, with size and time."""
    stats = [(str(path), (found := path.stat()).st_size, found.st_mtime_ns) for path in files]
    return hashlib.sha256(repr((base.description.digests, stats, init)).encode()).hexdigest()[:12]


def _write(place: Path, content: bytes) -> None:
    """It appears complete or not at all."""
    with NamedTemporaryFile(dir=place.parent, delete=False) as out:
        out.write(content)
    Path(out.name).replace(place)
