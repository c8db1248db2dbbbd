"""Parquet tables in a bucket of an object store that speaks S3, such as FD.io CSIT's: copied, then read as files.

Credentials are those of the environment (`AWS_ACCESS_KEY_ID` …, or `~/.aws`), never part of an address; without any a
bucket is read anonymously.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self
from urllib.parse import parse_qs, urlsplit

from pyarrow import ArrowException, NativeFile
from pyarrow.fs import FileInfo, FileSelector, FileType, S3FileSystem

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import MAX_BUCKET_BYTES, MAX_FILES, quoted
from resources.libraries.python.whole_files import writing_whole

_ADDRESS = re.compile(r"s3:/+")
_OPTIONS = frozenset({"region", "endpoint"})
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_BLOCK_BYTES = 1 << 20
_WITHIN_S = 30.0
_SUFFIX = ".parquet"


def is_address(text: str) -> bool:
    """Whether it is the address of a bucket and no path, also where a path made one slash of two."""
    return _ADDRESS.match(text) is not None


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, or a folder in it."""

    name: str
    prefix: str
    region: str | None
    endpoint: str | None
    """URL of another store than Amazon's."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address, `s3://BUCKET/FOLDER?region=REGION&endpoint=URL`.

        Raises:
            ConfigError: It is none; the text names it.
        """
        text = _ADDRESS.sub("s3://", text, count=1)
        wrong = ConfigError(
            f"{quoted(text)} is no address of a bucket; expected s3://BUCKET/FOLDER, with ?region=REGION or "
            "&endpoint=URL"
        )
        try:
            found = urlsplit(text)
        except ValueError as error:  # brackets of an IPv6 address that is none
            raise wrong from error
        options = parse_qs(found.query)
        host = found.netloc
        if "@" in host or "@" in "".join(options.get("endpoint", ())):
            raise ConfigError(
                "s3://…@…: credentials are no part of an address; set AWS_ACCESS_KEY_ID in the environment"
            )
        outside = ".." in PurePosixPath(found.path).parts
        unlike = found.fragment or not options.keys() <= _OPTIONS or any(len(row) > 1 for row in options.values())
        if _NAME.fullmatch(host) is None or outside or unlike:
            raise wrong
        region, endpoint = (options.get(name, [None])[0] for name in ("region", "endpoint"))
        # `s3:/` of a path has lost the second slash of the URL as well.
        address = re.sub(r"^(https?):/+", r"\1://", endpoint) if endpoint else None
        return cls(host, found.path.strip("/"), region, address)

    def __str__(self) -> str:
        return f"s3://{self.name}/{self.prefix}".rstrip("/")

    def copy(self, folder: Path, report: Callable[[int, int], None] = lambda _done, _all: None) -> Path:
        """Copy its tables into a folder, those that are not there yet; return their folder.

        `report`: called with the bytes so far and those of all.

        Raises:
            ConfigError: The bucket cannot be read, has no table, or has too many or too large ones.
        """
        try:
            return self._copy(self._store(), folder, report)
        except (OSError, ValueError, ArrowException) as error:  # a name with a zero byte is a ValueError
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise ConfigError(f"{self}: {quoted(reason)}") from error

    def _store(self) -> S3FileSystem:
        known = any(os.environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"))
        known = known or (Path.home() / ".aws" / "credentials").exists()
        scheme, _, host = (self.endpoint or "https://").partition("://")
        options = {"region": self.region} if self.region else {}
        options |= {"endpoint_override": host, "region": self.region or "us-east-1"} if host else {}
        return S3FileSystem(
            anonymous=not known, scheme=scheme, connect_timeout=_WITHIN_S, request_timeout=_WITHIN_S, **options
        )

    def _copy(self, store: S3FileSystem, folder: Path, report: Callable[[int, int], None]) -> Path:
        top = PurePosixPath(self.name, self.prefix)
        tables = list(self._tables(store, str(top)))
        size = sum(each.size for each in tables)
        if not tables:
            raise ConfigError(f"{self} has no table: no file that ends in {_SUFFIX}")
        if size > MAX_BUCKET_BYTES:
            raise ConfigError(
                f"{self} has {size / 1e9:.3g} GB of tables; at most {MAX_BUCKET_BYTES / 1e9:g} GB are read"
            )
        done, own = 0, folder / self.name
        for each in tables:
            target = own / PurePosixPath(each.path).relative_to(self.name)
            if not _is_there(target, each):
                if link := next((place for place in _places(target, folder) if place.is_symlink()), None):
                    raise ConfigError(f"{link}: a link; replace it by what it leads to")
                with store.open_input_stream(each.path) as stream, writing_whole(target) as written:
                    _copy_to(written, stream, each)
                os.utime(target, ns=(each.mtime_ns, each.mtime_ns))
            done += each.size
            report(done, size)
        return own / self.prefix

    def _tables(self, store: S3FileSystem, top: str) -> Iterator[FileInfo]:
        """Tables of the folder and those below it; a table itself where the address is one's.

        Raises:
            ConfigError: There are too many.
        """
        one = store.get_file_info(top)
        found = (
            [one]
            if one.type == FileType.File
            else store.get_file_info(FileSelector(top, allow_not_found=True, recursive=True))
        )
        tables = [each for each in found if each.type == FileType.File and each.path.endswith(_SUFFIX)]
        if len(tables) > MAX_FILES:
            raise ConfigError(f"{self} has {len(tables):,} tables; at most {MAX_FILES:,} are read")
        unsafe = [each.path for each in tables if ".." in PurePosixPath(each.path).parts]
        if unsafe:
            raise ConfigError(f"{self}: {quoted(unsafe[0])} leaves its folder")
        yield from tables


def _places(target: Path, folder: Path) -> Iterator[Path]:
    """Folders of a table, in which another user may have put links."""
    return (place for place in target.parents if place.is_relative_to(folder))


def _copy_to(file: BinaryIO, stream: NativeFile, table: FileInfo) -> None:
    left = table.size
    while block := stream.read(_BLOCK_BYTES):
        left -= len(block)
        if left < 0:
            raise ConfigError(f"{quoted(table.path)} is larger than the {table.size:,} bytes that the bucket lists")
        file.write(block)


def _is_there(target: Path, table: FileInfo) -> bool:
    if not target.is_file():
        return False
    there = target.stat()
    return bool(there.st_size == table.size and there.st_mtime_ns == table.mtime_ns)
