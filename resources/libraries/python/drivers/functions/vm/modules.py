"""Kernel modules: which ones a module needs, and in what order they are to be loaded."""

import gzip
import lzma
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from resources.libraries.python.errors import CommandFailed

_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


def load_order(wanted: Sequence[str], files: Mapping[str, bytes]) -> list[str]:
    """Modules that are wanted and those that they need, each after all that it needs.

    Args:
        wanted: Names; one that is not among the files is built into the kernel.
        files: Contents by name.
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
        CommandFailed: It cannot be unpacked.
    """
    content = path.read_bytes()
    match path.suffix:
        case ".xz":
            return lzma.decompress(content)
        case ".gz":
            return gzip.decompress(content)
        case ".zst":
            return _unzstd(path)
        case _:
            return content


def _unzstd(path: Path) -> bytes:
    argv = ("zstd", "--decompress", "--stdout", str(path))
    try:
        return subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout
    except FileNotFoundError as error:
        raise CommandFailed(argv, 127, "there is no zstd here; apt-get install zstd") from error
    except subprocess.CalledProcessError as error:
        raise CommandFailed(argv, error.returncode, error.stderr.decode(errors="replace")) from error


def module_name(path: Path) -> str:
    """`virtio_net` of `virtio_net.ko.xz`; the kernel takes `-` and `_` for the same."""
    return path.name.partition(".ko")[0].replace("-", "_")
