"""Decompression of what others packed: bounded in output, ratio, time, files and depth.

All code of this project that unpacks does it here, except for the runtime of agents, which its own controller packed.
"""

import gzip
import lzma
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.bounds import (
    FREE_BYTES,
    FREE_RECORD_BYTES,
    FREE_S,
    LARGEST_DIRECTORY_BYTES,
    LARGEST_RECORD_BYTES,
    MAX_FILES,
    MAX_RATIO,
    MAX_RECORD_RATIO,
    MAX_S_PER_MB,
)

CHUNK_BYTES = 1 << 20
PACKED = (".gz", ".xz", ".zst")
"""Endings of the names of files that `unpacked` unpacks."""
_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"
_MAGIC_BYTES = 6
UNPACK_ERRORS = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, MemoryError)
"""Raised by streams of packed files that are damaged; an xz or Zstandard file says how much memory it needs."""


class UnpackError(CsitError):
    """A packed file is damaged, truncated, or unpacks to too much."""


class Budget:
    """Remaining output and time of a file, over everything in it.

    `most_bytes`: Maximum size of the output; None for a multiple of the file's.
    """

    def __init__(self, packed_bytes: int, most_bytes: int | None = None) -> None:
        self.packed_bytes = packed_bytes
        self.most_bytes = FREE_BYTES + MAX_RATIO * packed_bytes if most_bytes is None else most_bytes
        self.unpacked_bytes = 0
        self.took_s = 0.0

    def spend(self, count: int, seconds: float = 0.0) -> None:
        """Count unpacked bytes, and the CPU time that they took.

        Raises:
            UnpackError: The output or the time is above that of any such file.
        """
        self.unpacked_bytes += count
        self.took_s += seconds
        if self.unpacked_bytes > self.most_bytes:
            raise UnpackError(
                f"refused: {self.packed_bytes:,} packed bytes unpack to more than {self.most_bytes:,}, "
                "as in an archive bomb"
            )
        if self.took_s > FREE_S + MAX_S_PER_MB * self.packed_bytes / 1e6:
            raise UnpackError(f"refused: unpacking {self.packed_bytes:,} bytes takes more than {self.took_s:.0f} s")


class Bounded:
    """A stream of unpacked bytes that raises only `UnpackError`."""

    def __init__(self, stream: BinaryIO, budget: Budget) -> None:
        self._stream = stream
        self._budget = budget

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, and up to `CHUNK_BYTES`.

        Raises:
            UnpackError: The archive is damaged, truncated, or unpacks to too much.
        """
        began_s = time.thread_time()
        try:
            block = self._stream.read(min(size, CHUNK_BYTES) if size >= 0 else CHUNK_BYTES)
        except EOFError as error:
            raise UnpackError("the packed file ends too early") from error
        except UNPACK_ERRORS as error:
            raise UnpackError(f"the packed file is damaged: {error}") from error
        self._budget.spend(len(block), time.thread_time() - began_s)
        return block


class _Begun:
    """A stream of which the first bytes have been read already."""

    closed = False

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def read(self, size: int = -1) -> bytes:
        """Read, as for files."""
        block = self._head if size < 0 else self._head[:size]
        self._head = self._head[len(block) :]
        return block + self._rest.read(size - len(block) if size >= 0 else size)

    def close(self) -> None:
        """Leave it open: who opened it closes it."""


@contextmanager
def unpacked(stream: BinaryIO, budget: Budget) -> Iterator[BinaryIO]:
    """Yield the content of a file packed by gzip, xz or Zstandard, as its first bytes say; of other files the file."""
    head = stream.read(_MAGIC_BYTES)
    begun = cast(BinaryIO, _Begun(head, stream))
    if head.startswith(_GZIP):
        with gzip.GzipFile(fileobj=begun) as opened:
            yield cast(BinaryIO, Bounded(cast(BinaryIO, opened), budget))
    elif head.startswith(_XZ):
        with lzma.LZMAFile(begun) as opened_xz:
            yield cast(BinaryIO, Bounded(cast(BinaryIO, opened_xz), budget))
    elif head.startswith(_ZSTD):
        import pyarrow  # noqa: PLC0415 - costs time where there is none

        with pyarrow.CompressedInputStream(pyarrow.PythonFile(begun, mode="r"), "zstd") as opened_zstd:
            yield cast(BinaryIO, Bounded(cast(BinaryIO, opened_zstd), budget))
    else:
        yield begun


class _Archive:
    """A ZIP file whose directory is bounded: Python holds all of it in memory before the first name is seen."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def seekable(self) -> bool:
        """As for files."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read, as for files; the directory of an archive is read at once.

        Raises:
            UnpackError: The directory is larger than any.
        """
        block = self._file.read(min(size, LARGEST_DIRECTORY_BYTES) if size >= 0 else LARGEST_DIRECTORY_BYTES)
        if len(block) >= LARGEST_DIRECTORY_BYTES or block.count(b"PK\1\2") > MAX_FILES:
            raise UnpackError(f"refused: more than {MAX_FILES:,} files")
        return block


def open_archive(file: BinaryIO, size: int) -> zipfile.ZipFile:
    """Open a ZIP file.

    Raises:
        UnpackError: It is damaged, has too many files, or files that share their bytes, as in an archive bomb.
    """
    try:
        archive = zipfile.ZipFile(_Archive(file))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnpackError(f"the archive is damaged: {error}") from error
    packed = sum(each.compress_size for each in archive.infolist())
    if packed > size:
        raise UnpackError(f"refused: files of {packed:,} bytes in an archive of {size:,}, as in an archive bomb")
    return archive


def open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> BinaryIO:
    """Open a file of an archive.

    Raises:
        UnpackError: It has a password, a damaged directory, or a compression method other than deflate: Python unpacks
            what it has read of bzip2 and LZMA as a whole, 200 bytes to 100 MB.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UnpackError("packed by another method than deflate; unpack the archive, and pack it again")
    try:
        return cast(BinaryIO, archive.open(member))
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise UnpackError(f"cannot be unpacked: {error}") from error


def inflate(packed: bytes, most_bytes: int | None = None) -> bytes:
    """Return the content of a zlib stream (RFC 1950), of a part of a record where no size is given.

    Raises:
        UnpackError: It is damaged, truncated, or unpacks to too much.
    """
    if most_bytes is None:
        most_bytes = min(FREE_RECORD_BYTES + MAX_RECORD_RATIO * len(packed), LARGEST_RECORD_BYTES)
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(packed, most_bytes)
    except zlib.error as error:
        raise UnpackError(f"is damaged: {error}") from error
    if unpacker.unconsumed_tail:
        raise UnpackError(f"unpacks to more than {most_bytes / 1e6:.1f} MB, as in an archive bomb")
    if not unpacker.eof:
        raise UnpackError("ends too early")
    return content


def read_packed(stream: gzip.GzipFile | lzma.LZMAFile, packed_bytes: int) -> bytes:
    """Return the whole content of a stream of unpacked bytes.

    `stream`: Of `gzip.open` or `lzma.open`.

    Raises:
        UnpackError: It is damaged, truncated, or unpacks to too much.
    """
    bounded, blocks = Bounded(cast(BinaryIO, stream), Budget(packed_bytes)), []
    while block := bounded.read():
        blocks.append(block)
    return b"".join(blocks)
