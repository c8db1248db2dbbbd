"""Packs what an agent needs into one archive: this project's sources, and the packages that they import."""

import io
import marshal
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from itertools import chain
from pathlib import Path
from platform import machine

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.version import digest, sources

DISTRIBUTIONS = ("pydantic", "pyroute2", "numpy", "hdrhistogram", "Jinja2", "PyYAML")
"""Packages that code on a node imports; what these need comes along."""
_NOT_IMPORTED = {"setuptools"}
"""A requirement of pbr's that only building with it needs."""
MODULES = ("resources.libraries.python.testbed.agent.service",)
"""Modules that are imported to see that a runtime works, and to compile it: with it comes every driver."""
NATIVE_MODULES = ("numpy", "pydantic_core", "yaml._yaml", "hdrh.histogram", "markupsafe._speedups")
"""Modules that are imported instead where byte code comes along: modules that may not suit the node's C library."""
_DOWNLOAD_S = 300.0
_UNCHECKED = 0b01
"""Flags of byte code that has the hash of its source and is not checked against it."""
_32_BITS = 0xFFFF_FFFF
_NAME = re.compile(r"^[\w.-]+", re.ASCII)
"""Of a requirement."""
_START = Path(__file__).with_name("runtime_start.py")


@dataclass(frozen=True, slots=True)
class NodePython:
    """The Python of a node."""

    version: tuple[int, ...]
    machine: str
    soabi: str | None
    """Platform of compiled modules, such as `cpython-311-x86_64-linux-gnu`."""
    libc: tuple[str, str]

    def __str__(self) -> str:
        libc = " ".join(self.libc).strip() or "an unknown C library"
        return f"Python {'.'.join(map(str, self.version))} on {self.machine} with {libc}"


@dataclass(frozen=True, slots=True)
class PackedFolder:
    """The files of one folder on a node, by their path in it."""

    digest: str
    """SHA-256 over all of it, in hexadecimal."""
    content: Mapping[str, bytes]
    origins: Mapping[str, Path] = field(default_factory=dict)
    """Where the files are on this machine, if its Python is that of the node: byte code comes along with them."""

    @property
    def size_bytes(self) -> int:
        """Unpacked size."""
        return sum(map(len, self.content.values()))

    def add_to(self, archive: tarfile.TarFile, folder: str) -> None:
        """Add them to an archive. Compiling them takes 2 s here, and 30 times as long on an emulated machine."""
        for name, content in chain(self.content.items(), self._byte_code()):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))

    def _byte_code(self) -> Iterator[tuple[str, bytes]]:
        """Byte code that is never compared with its source, see PEP 552."""
        for name, path in self.origins.items():
            if name.endswith(".py"):
                source = self.content[name]
                with suppress(SyntaxError):  # packages may have files for another Python
                    code = _compiled(source, path) or marshal.dumps(compile(source, name, "exec", dont_inherit=True))
                    head = MAGIC_NUMBER + _UNCHECKED.to_bytes(4, "little") + source_hash(source)
                    yield cache_from_source(name, optimization=""), head + code


def _compiled(source: bytes, path: Path) -> bytes | None:
    """Byte code that this machine has cached for a file, where it is that of the source; None where there is none.

    Python enters the name of the file that it loads into byte code, so the node's names are in what it says there.
    """
    place = Path(cache_from_source(path, optimization=""))
    try:
        cached, written, found, same = place.read_bytes(), place.stat(), path.stat(), path.read_bytes() == source
    except OSError:
        return None
    # A file can be changed within a second and keep its size, or be given an old time; the time of its last change not.
    if not same or found.st_ctime_ns >= written.st_mtime_ns:
        return None
    # PEP 552: flags of a file that is valid by the time and size of its source.
    stamp = b"".join(number.to_bytes(4, "little") for number in (0, int(found.st_mtime) & _32_BITS, len(source)))
    return cached[16:] if found.st_size == len(source) and cached[:16] == MAGIC_NUMBER + stamp else None


@dataclass(frozen=True, slots=True)
class Runtime:
    """Two folders that an agent runs from: the sources, with a symbolic link `packages`, and the packages."""

    own: PackedFolder
    """`start.py`, and this project's sources below `project/`."""
    packages: PackedFolder
    """Third-party packages; they stay on a node when the sources change."""
    project: str
    """SHA-256 over this project's sources alone."""

    @property
    def name(self) -> str:
        """Folder of the sources; depends on every file of both folders."""
        return self.own.digest

    @property
    def packages_name(self) -> str:
        """Folder of the packages."""
        return f"packages-{self.packages.digest}"


def archive(parts: Mapping[str, PackedFolder]) -> bytes:
    """Return a compressed tar of files by target folder."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as made:
        for folder, files in parts.items():
            files.add_to(made, folder)
    return packed.getvalue()


def pack(python: NodePython) -> Runtime:
    """The runtime for a node with such a Python.

    Raises:
        Unsupported: That Python is too old, or there are no packages for it.
    """
    packages = pack_packages(python)
    project = sources()
    own = {"start.py": _START.read_bytes(), **{f"project/{name}": content for name, content in project.items()}}
    origins = (
        {"start.py": _START, **{f"project/{name}": PROJECT / name for name in project}} if packages.origins else {}
    )
    named = [*own.items(), ("packages", packages.digest.encode())]
    return Runtime(PackedFolder(digest(named), own, origins), packages, digest(project.items()))


def pack_packages(python: NodePython) -> PackedFolder:
    """Return the packages of a runtime alone; raises as `pack` does."""
    if python.version < (3, 11):
        raise Unsupported(f"Python 3.11 or newer is needed, there is {python}; say access.python where another one is")
    origins = dict(_installed()) if python.soabi == sysconfig.get_config_var("SOABI") else {}
    files = {name: path.read_bytes() for name, path in origins.items()} if origins else dict(_downloaded(python))
    return PackedFolder(digest(files.items()), files, origins)


def closure() -> dict[str, metadata.Distribution]:
    """`DISTRIBUTIONS` with all that they need, as they are installed here, by normalised name.

    A requirement of another platform, of another Python or of an extra is not installed here and not needed there.
    """
    found: dict[str, metadata.Distribution] = {}
    waiting = list(DISTRIBUTIONS)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in found or name in _NOT_IMPORTED:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        waiting += [_NAME.findall(text)[0] for text in found[name].requires or () if "extra ==" not in text]
    return dict(sorted(found.items()))


def _installed() -> Iterator[tuple[str, Path]]:
    """Files of the packages in this environment, scripts and tests left out."""
    for distribution in closure().values():
        for file in distribution.files or ():
            if _belongs(file.parts):
                yield file.as_posix(), Path(str(distribution.locate_file(file)))


def _belongs(parts: tuple[str, ...]) -> bool:
    return ".." not in parts and not {"__pycache__", "tests"} & set(parts) and not parts[-1].endswith(".pyc")


def _downloaded(python: NodePython) -> Iterator[tuple[str, bytes]]:
    """Files of the same versions' wheels for another Python."""
    pins = [f"{name}=={distribution.version}" for name, distribution in closure().items()]
    with tempfile.TemporaryDirectory() as folder:
        argv = [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input",
            "--no-deps", "--only-binary=:all:", "--implementation", "cp",
            "--python-version", ".".join(map(str, python.version[:2])),
            *(word for tag in _platforms(python) for word in ("--platform", tag)), "--dest", folder, *pins,
        ]  # fmt: skip
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=_DOWNLOAD_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise Unsupported(f"packages for {python} were not downloaded within {_DOWNLOAD_S:.0f} s") from error
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise Unsupported(
                f"there are no packages for {python}, and none could be downloaded ({reason}); install there the "
                f"Python of this machine, {'.'.join(map(str, sys.version_info[:2]))} on {machine()}, and name it in "
                "access.python"
            )
        for wheel in sorted(Path(folder).glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if not name.endswith("/") and _belongs(tuple(name.split("/"))):
                        yield name, archive.read(name)


def _platforms(python: NodePython) -> list[str]:
    """Tags of wheels that run there, of the newest C library first. See PEP 600 and PEP 656."""
    kind, version = python.libc
    digits = version.split(".")
    if len(digits) < 2 or not all(part.isdigit() for part in digits[:2]):
        return [f"manylinux2014_{python.machine}"]
    family = "manylinux" if kind == "glibc" else "musllinux"
    newest = int(digits[1])
    return [f"{family}_{digits[0]}_{minor}_{python.machine}" for minor in range(newest, -1, -1)] + (
        [f"manylinux2014_{python.machine}", f"manylinux2010_{python.machine}"] if kind == "glibc" else []
    )
