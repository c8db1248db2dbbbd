"""cpio archives in the format that the kernel unpacks as its first root file system (`newc`).

The format: Documentation/driver-api/early-userspace/buffer-format.rst in the kernel's sources.
"""

import stat
from collections.abc import Iterable
from dataclasses import dataclass

_MAGIC = b"070701"
_TRAILER = "TRAILER!!!"


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """A file or folder of an archive."""

    path: str
    """Relative to the root: `bin/busybox`."""
    mode: int
    """Type and permissions as in `st_mode`."""
    content: bytes = b""


def folder(path: str) -> ArchiveEntry:
    """A folder readable by all users."""
    return ArchiveEntry(path, stat.S_IFDIR | 0o755)


def file(path: str, content: bytes, *, executable: bool = False) -> ArchiveEntry:
    """A file readable by all users."""
    return ArchiveEntry(path, stat.S_IFREG | (0o755 if executable else 0o644), content)


def secret(path: str, content: bytes) -> ArchiveEntry:
    """A file that only root may read."""
    return ArchiveEntry(path, stat.S_IFREG | 0o600, content)


def cpio(entries: Iterable[ArchiveEntry]) -> bytes:
    """Pack entries, all of them owned by root and without a time, so that equal contents give equal bytes."""
    packed = [_packed(number, entry) for number, entry in enumerate(entries, 1)]
    return b"".join([*packed, _packed(0, ArchiveEntry(_TRAILER, 0))])


def _packed(inode: int, entry: ArchiveEntry) -> bytes:
    name = entry.path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (inode, entry.mode, 0, 0, links, 0, len(entry.content), 0, 0, 0, 0, len(name), 0)
    header = _MAGIC + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name) + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
