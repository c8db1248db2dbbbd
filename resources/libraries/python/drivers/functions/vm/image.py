"""Boot image of guests: a kernel, its modules and an initramfs made of Debian's packages, kept in a cache.

A cached image is used for as long as it is there and unchanged, so a second run needs no network and has the same
kernel; removing the folder fetches the newest. An image appears under its name complete or not at all. Guests with
programs have an extended one: that image, this machine's programs and their libraries (ldd).
"""

import gzip
import hashlib
import logging
import lzma
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from resources.libraries.python.drivers.functions.vm import NICS
from resources.libraries.python.drivers.functions.vm.archive import ArchiveEntry, cpio, file, folder
from resources.libraries.python.drivers.functions.vm.init import render_init
from resources.libraries.python.drivers.host.programs.image_cache import alone, file_digest, make, newest
from resources.libraries.python.drivers.host.programs.program_output import completed, path_of
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.unpacking import read_packed
from resources.libraries.python.whole_files import replace_file

_USER_SPACE_MODULES = ("virtio_pci", "virtio_console", "qemu_fw_cfg", "uio_pci_generic")
"""Contents of an image whose NICs a program drives; it is configured over a port and files of QEMU."""
_APPLICATION_MODULES = (
    *("crc32c_generic", "virtio_pci", "virtio_console", "qemu_fw_cfg", "nf_tables", "nft_counter", "nft_objref"),
    *("nft_ct", "nft_chain_nat", "nft_nat"),
)
"""Kernel modules of guests that run an application, besides those of their network cards: nothing loads a module on
demand. Kernels differ in built-in ones, of which there is no file."""
_NEAR = ("virtio", "failover", "uio", "fw_cfg", "nf_", "nft_", "nfnetlink", "crc32c")
"""In the names of modules that can matter: a kernel has thousands."""
_FOLDERS = ("bin", "dev", "modules", "proc", "sys")
_KERNEL_PART = re.compile(r"linux-(image|modules|modules-extra)-\d")
_FETCH_WITHIN_S = 300.0


def fetch(folder: Path, kernels: Sequence[str]) -> list[Path]:
    """Fetch the packages that a guest is made of: kernel, its modules, busybox.

    `kernels`: packages of kernels; the first that apt knows is taken.

    Raises:
        Unsupported: This system has no apt, or its sources have none of these kernels.
        CommandFailed: They cannot be fetched.
        NotReady: That takes too long.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise Unsupported("a guest's kernel and busybox come from Debian's packages, and there is no apt-get here")
    try:
        return _download(folder, kernels)
    except (CommandFailed, NotReady, Unsupported) as error:
        if os.geteuid() != 0:
            raise
        _log.info("%s; reading apt's lists anew", error)
        _run(("apt-get", "-q", "-o", "Acquire::Retries=3", "update"))
        return _download(folder, kernels)


def _download(folder: Path, kernels: Sequence[str]) -> list[Path]:
    kernel = next((name for name in kernels if package_depends(_shown(name))), None)
    if kernel is None:
        raise Unsupported(f"apt knows none of {', '.join(kernels)}; `apt-get update`, on amd64")
    names = sorted({"busybox-static", *_parts(kernel)})
    _log.info("fetching %s", ", ".join(names))
    # _apt, the user as which apt fetches, cannot write to a folder of root's; so no other user is taken.
    _run(("apt-get", "-q", "-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=root", "download", *names), folder)
    return sorted(folder.glob("*.deb"))


def _parts(name: str) -> set[str]:
    """Packages of a kernel's image and modules, by way of those that only name others."""
    found: set[str] = set()
    left = [name]
    while left:
        new = [each for each in package_depends(_shown(left.pop())) if _KERNEL_PART.match(each) and each not in found]
        found.update(new)
        left += new
    return found


def package_depends(description: str) -> list[str]:
    """Names of the packages that a package's description (of `apt-cache show`) says it needs."""
    rows = [line for line in description.splitlines() if line.startswith(("Depends:", "Pre-Depends:"))]
    words = [word for row in rows for word in row.partition(":")[2].split(",")]
    return [word.split("|")[0].split("(")[0].strip() for word in words]


def _shown(name: str) -> str:
    """A package's description; empty when apt does not know it."""
    return completed(["apt-cache", "show", "--no-all-versions", name], 60, check=False).stdout


def unpack(packages: Iterable[Path], folder: Path) -> dict[str, str]:
    """Unpack packages into a folder; return their versions by name.

    Raises:
        CommandFailed: One cannot be unpacked.
    """
    versions = {}
    for package in packages:
        _run(("dpkg-deb", "--extract", str(package), str(folder)))
        name, version = _run(("dpkg-deb", "--show", "--showformat=${Package} ${Version}", str(package))).split()
        versions[name] = version
    return versions


def _run(argv: Sequence[str], folder: Path | None = None) -> str:
    return completed(argv, _FETCH_WITHIN_S, folder=folder, environment={**os.environ, "LC_ALL": "C"}).stdout


_log = logging.getLogger(__name__)


_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


def load_order(wanted: Sequence[str], files: Mapping[str, bytes]) -> list[str]:
    """Modules that are wanted and those that they need, each after all that it needs.

    `wanted`: Names; one that is not among the files is built into the kernel.
    """
    order: list[str] = []

    def visit(name: str) -> None:
        if name in order or name not in files:
            return
        for needed in depends(files[name]):
            visit(needed)
        order.append(name)

    for name in wanted:
        visit(name)
    return order


def depends(content: bytes) -> list[str]:
    """Names of the modules that a module says it needs, from its `.modinfo` section."""
    match = _DEPENDS.search(content)
    return [name.replace("-", "_") for name in match[1].decode("ascii").split(",") if name] if match else []


def read_module(path: Path) -> bytes:
    """A module's content, unpacked.

    Raises:
        CommandFailed: There is no program that unpacks it.
        UnpackError: It is damaged.
    """
    size = path.stat().st_size
    match path.suffix:
        case ".xz":
            with lzma.open(path) as stream:
                return read_packed(stream, size)
        case ".gz":
            with gzip.open(path) as stream:
                return read_packed(stream, size)
        case ".zst":
            return _unzstd(path)
        case _:
            return path.read_bytes()


def _unzstd(path: Path) -> bytes:
    argv = ("zstd", "--decompress", "--stdout", str(path))
    try:
        return subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout
    except FileNotFoundError as error:
        raise CommandFailed(argv, 127, "there is no zstd here; apt-get install zstd") from error
    except subprocess.CalledProcessError as error:
        raise CommandFailed(argv, error.returncode, error.stderr.decode(errors="replace")) from error


def unpacked_kernel(packed: bytes) -> bytes:
    """Unpack a kernel that is packed by XZ into the ELF file that QEMU boots as well; others are returned as they are.

    In emulation Debian's kernel would take 2.8 s of CPU time to unpack itself, and boots in 1.9 s (measured, QEMU 7.2).
    Form of the file: Documentation/arch/x86/boot.rst in the kernel's sources.

    Raises:
        UnpackError: It is damaged.
    """
    if packed[0x202:0x206] != b"HdrS":
        return packed
    offset, size = struct.unpack_from("<2I", packed, 0x248)
    begin = ((packed[0x1F1] or 4) + 1) * 512 + offset
    payload = packed[begin : begin + size - 4]  # the size when unpacked comes last
    if not payload.startswith(b"\xfd7zXZ\0"):
        return packed
    with lzma.open(BytesIO(payload)) as stream:
        return read_packed(stream, size)


def module_name(path: Path) -> str:
    """`virtio_net` of `virtio_net.ko.xz`; the kernel takes `-` and `_` for the same."""
    return path.name.partition(".ko")[0].replace("-", "_")


class Description(Frozen):
    """Contents of an image, kept beside it."""

    kernel_version: str
    packages: dict[str, str]
    """Versions by name."""
    modules: tuple[str, ...]
    """In the order in which the guest loads them."""
    user_space_modules: tuple[str, ...]
    """The same of a guest whose network cards a program drives."""
    application_modules: tuple[str, ...] = ()
    """The same of a guest that runs an application."""
    digests: dict[str, str]
    """SHA-256 of its files by name."""


class Image:
    """An image in a folder."""

    def __init__(self, place: Path) -> None:
        """Read the description.

        Raises:
            CsitError: It is not a complete image.
        """
        self.kernel = place / "vmlinuz"
        self.initramfs = place / "initramfs.cpio"
        try:
            self.description = Description.model_validate_json((place / "image.json").read_bytes())
            damaged = [name for name, digest in self.description.digests.items() if file_digest(place / name) != digest]
        except (OSError, ValidationError) as error:
            raise CsitError(f"{place} is no image of a guest") from error
        if damaged:
            raise CsitError(f"{place / damaged[0]} is not what was written")


def cached(cache: Path, nic: str = "virtio") -> Image | None:
    """The newest image in the cache that was made by the present recipe for a NIC; None when there is none."""
    for place in newest(cache, f"guest-*-{recipe(nic)}"):
        try:
            return Image(place)
        except CsitError as error:
            _log.warning("%s; it is made anew", error)
    return None


def image(cache: Path, nic: str = "virtio") -> Image:
    """The cached image, or a new one.

    `nic`: model of the guests' network cards, one of `NICS`.

    Raises:
        Unsupported: It cannot be made on this system.
        CsitError: It could not be made.
    """
    try:
        with alone(cache):
            return cached(cache, nic) or Image(make(cache, partial(_build, nic)))
    except OSError as error:
        raise CsitError(f"the image of a guest cannot be kept in {cache}: {error}") from error


def _build(nic: str, work: Path, made: Path) -> str:
    (work / "packages").mkdir()
    versions = unpack(fetch(work / "packages", NICS[nic].kernels), work / "root")
    return f"guest-{write(work / 'root', versions, made, nic).kernel_version}-{recipe(nic)}"


def write(root: Path, versions: dict[str, str], made: Path, nic: str) -> Description:
    """Write kernel, initramfs and description of unpacked packages.

    `nic`: Model of the guests' network cards, one of `NICS`.

    Raises:
        Unsupported: The kernel has no driver of such cards.
    """
    kernel = _only(root, "boot/vmlinuz-*")
    version = kernel.name.removeprefix("vmlinuz-")
    found = {module_name(path): path for path in root.glob("**/modules/*/kernel/**/*.ko*") if path.is_file()}
    drivers = NICS[nic].modules
    built_in = {module_name(Path(line)) for path in root.glob("**/modules.builtin") for line in _lines(path)}
    if lost := [name for name in drivers if name not in found and name not in built_in]:
        raise Unsupported(f"the kernel {version} has no module {', '.join(lost)}, which {nic} NICs of guests need")
    near = {name: read_module(path) for name, path in found.items() if any(word in name for word in (*_NEAR, *drivers))}
    order, *others = (
        load_order(row, near) for row in (drivers, _USER_SPACE_MODULES, (*_APPLICATION_MODULES, *drivers))
    )
    busybox = _only(root, "**/bin/busybox").read_bytes()
    entries = [
        *(folder(path) for path in _FOLDERS),
        file("bin/busybox", busybox, executable=True),
        *(file(f"modules/{name}.ko", near[name]) for name in dict.fromkeys(chain(order, *others))),
        file("init", render_init(order).encode(), executable=True),
    ]
    (made / "initramfs.cpio").write_bytes(cpio(entries))
    (made / "vmlinuz").write_bytes(unpacked_kernel(kernel.read_bytes()))
    description = Description(
        kernel_version=version,
        packages=versions,
        modules=tuple(order),
        user_space_modules=tuple(others[0]),
        application_modules=tuple(others[1]),
        digests={name: file_digest(made / name) for name in ("vmlinuz", "initramfs.cpio")},
    )
    (made / "image.json").write_text(description.model_dump_json(indent=2), encoding="utf-8")
    return description


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _only(root: Path, pattern: str) -> Path:
    found = [path for path in root.glob(pattern) if path.is_file() and not path.is_symlink()]
    if len(found) != 1:
        raise CsitError(f"the packages have {len(found)} files {pattern}; one is needed")
    return found[0]


def recipe(nic: str = "virtio") -> str:
    """Changes with whatever goes into an image besides the versions of the packages."""
    ingredients = (render_init([]), NICS[nic], _USER_SPACE_MODULES, _APPLICATION_MODULES, _FOLDERS)
    return hashlib.sha256(repr(ingredients).encode()).hexdigest()[:12]


_FOUND = re.compile(r"^[ \t]++(?:\S++ => )?(/\S++) \(0x[0-9a-f]+\)$", re.MULTILINE)
_LOST = re.compile(r"^[ \t]++(\S++) => not found$", re.MULTILINE)
_LDD_WITHIN_S = 30.0


def libraries(programs: Sequence[Path]) -> tuple[Path, ...]:
    """Libraries that programs load, the loader among them, each where it is looked for.

    Raises:
        Unsupported: There is no ldd, or a library is nowhere.
        CommandFailed: One is no program.
    """
    if path_of("ldd") is None:
        raise Unsupported("there is no ldd here, which finds what programs need inside of a guest")
    return parse(completed(("ldd", *map(str, programs)), _LDD_WITHIN_S).stdout)


def parse(shown: str) -> tuple[Path, ...]:
    """Read what ldd shows.

    Raises:
        Unsupported: A library is nowhere.
    """
    if lost := _LOST.findall(shown):
        raise Unsupported(f"programs of a guest need libraries that are not here: {', '.join(dict.fromkeys(lost))}")
    return tuple(Path(path) for path in dict.fromkeys(_FOUND.findall(shown)))


def extended(base: Image, word: str, files: Sequence[Path], entries: Sequence[ArchiveEntry], cache: Path) -> Path:
    """An archive with the guests' image and more, made once for each content; the last one of a word only is kept.

    `entries`: further files, which may replace those of the image.

    Raises:
        CsitError: It cannot be made.
    """
    place = cache / f"{word}-{_digest(base, files, entries)}.cpio"
    with alone(cache):
        if not place.exists():
            # The kernel unpacks archives that follow one another, and takes the last of two files of a name.
            content = base.initramfs.read_bytes() + cpio([*carried(files), *entries])
            replace_file(place, content, sync=False)
            for old in set(cache.glob(f"{word}-*.cpio")) - {place}:
                old.unlink()
            _log.info("made %s, %d MB", place, len(content) // 2**20)
    return place


def carried(files: Iterable[Path]) -> list[ArchiveEntry]:
    """Programs and libraries with the folders that they are in, where this machine has them."""
    rows = list(files)
    parents = sorted({parent for path in rows for parent in path.relative_to("/").parents} - {Path()})
    return [
        *(folder(str(path)) for path in parents),
        *(file(str(path.relative_to("/")), path.read_bytes(), executable=True) for path in rows),
    ]


def _digest(base: Image, files: Iterable[Path], entries: Sequence[ArchiveEntry]) -> str:
    """Changes with whatever goes into the archive; of large files, with size and time."""
    stats = [(str(path), (found := path.stat()).st_size, found.st_mtime_ns) for path in files]
    return hashlib.sha256(repr((base.description.digests, stats, entries)).encode()).hexdigest()[:12]
