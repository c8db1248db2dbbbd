"""Result files of a path: in folders, packed by gzip, xz or Zstandard, in ZIP archives and in nested archives.

Only a ZIP archive inside another is unpacked to disk. An archive that unpacks to far more than any
result file is refused while it is read, so that an archive bomb fills neither memory nor disk. What a file is, its
first bytes say; also what it looks like if it is no result.
"""

import os
import re
import tempfile
import zipfile
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from csit_utils.dataset.items import Problem, ReadError
from csit_utils.dataset.store.layout import is_dataset
from resources.libraries.python.model.bounds import LARGEST_RESULT_BYTES, MAX_DEPTH, MAX_VALUES_OF_A_RESULT
from resources.libraries.python.recording.qualifications import FOLDER as QUALIFICATIONS
from resources.libraries.python.recording.writer import RESULTS_FOLDER
from resources.libraries.python.unpacking import (
    CHUNK_BYTES,
    PACKED,
    UNPACK_ERRORS,
    Bounded,
    Budget,
    UnpackError,
    open_archive,
    open_member,
    unpacked,
)

_OUTPUT = re.compile(r"output(?:-[\w.-]+)?\.xml")
"""Names of outputs, also of those whose beginning is damaged."""
_OTHERS = (QUALIFICATIONS.name, "bisection.json")
"""Folders and files that this project writes among results, and that are no results."""
_ZIP = b"PK\x03\x04"


HEAD_BYTES = 1024
"""Of the unpacked content of a file, by which it is recognized."""
READABLE = (
    "./csit reads outputs of Robot Framework (XML and JSON), result records, and results of FD.io CSIT (JSON and "
    "Parquet), NFVbench and DPDK's DTS, plain or packed (.gz, .xz, .zst, .zip)"
)
HTML = "an HTML page"
"""What Robot's log.html and report.html look like."""
_HTML = (b"<!doctype html", b"<html")
_ROBOT_XML = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*\?>\s*+)?<robot[\s>]")
_ROBOT_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*+\{\s*+"generator"\s*+:\s*+"(?:Robot|Rebot) ')
_BLANK = b"\xef\xbb\xbf \t\r\n"
_BINARIES = {
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"BZh": "a file packed by bzip2",
    b"Rar!": "a RAR archive",
    b"ARROW1": "an Arrow file",
    b"SQLite format 3\0": "an SQLite database",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    b"\x7fELF": "a program",
    b"\x0a\x0d\x0d\x0a": "a packet capture",
    b"\xd4\xc3\xb2\xa1": "a packet capture",
    b"\xa1\xb2\xc3\xd4": "a packet capture",
    b"\x4d\x3c\xb2\xa1": "a packet capture",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
_PARQUET = b"PAR1"
_TAR, _TAR_AT = b"ustar", 257
_SEPARATORS = ",;\t"


class Kind(Enum):
    """Kinds of files, each with a reader."""

    ROBOT_XML = auto()
    """An output of Robot Framework; also whatever is no result, which its reader refuses."""
    ROBOT_JSON = auto()
    """Its output in JSON."""
    JSON = auto()
    """A record or a result of another tool."""
    PARQUET = auto()
    """A table of results of another tool."""


def kind_of(head: bytes, name: str) -> Kind:
    """Return the kind of a file.

    `head`: its first `HEAD_BYTES`, unpacked; empty if it is empty or unreadable.
    `name`: its name without the ending of a packed file, which decides then.
    """
    if head.startswith(_PARQUET):
        return Kind.PARQUET
    if _ROBOT_JSON.match(head):
        return Kind.ROBOT_JSON
    text = head.lstrip(_BLANK)
    is_json = text.startswith((b"{", b"[")) if text else name.endswith(".json")
    return Kind.JSON if is_json else Kind.ROBOT_XML


def begins_output(head: bytes) -> bool:
    """Whether a file begins as an output of Robot Framework does."""
    return _ROBOT_XML.match(head) is not None or _ROBOT_JSON.match(head) is not None


def looks_like(head: bytes) -> str:
    """Say in words what a file looks like that is no result."""
    head = head[:HEAD_BYTES]
    if (begin := head.lstrip(_BLANK).lower()).startswith(b"<"):
        return HTML if begin.startswith(_HTML) else "truncated or damaged XML"
    if head[_TAR_AT:].startswith(_TAR):
        return "a tar archive"
    for magic, words in _BINARIES.items():
        if head.startswith(magic):
            return words
    try:
        text = getincrementaldecoder("utf-8")().decode(head)  # its last letter may be cut in two
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return "binary data"
    first, second = [*text.splitlines(), "", ""][:2]
    is_table = any(0 < first.count(each) == second.count(each) for each in _SEPARATORS)
    return "a table (CSV)" if is_table else "text"


@dataclass(frozen=True)
class Source:
    """One file of results."""

    name: str
    """Its path; inside an archive that of the archive, `!`, and the path in it."""
    open: Callable[[], AbstractContextManager[BinaryIO]]
    """Opens its unpacked bytes. Raises `ReadError` or `UnpackError` if they are unreadable or incomplete."""
    path: Path | None = None
    """None inside archives."""
    beside: Callable[[], Iterable["Source"]] = tuple
    """The record files of the run that wrote it, where those are in their folder beside it."""

    @cached_property
    def kind(self) -> Kind:
        """What it is, by its content; by its name if that is unreadable, which its reader then reports."""
        head = b""
        with suppress(ReadError, OSError), self.open() as stream:
            head = stream.read(HEAD_BYTES)
        return kind_of(head, _plain(self.name))

    @property
    def is_json(self) -> bool:
        """Whether it is a record file or a file of another tool."""
        return self.kind is Kind.JSON


def sources(path: Path) -> Iterator[Source | Problem]:
    """Yield the result files of a path; of a folder all outputs of Robot Framework, then files with names of results.

    An output comes first because it has the final status of a test.
    """
    for place in files_of(path):
        yield from sources_of_file(place)


def files_of(path: Path) -> Sequence[Path | Problem]:
    """Return the path of a file, or those of the result files of a folder, in the order of `sources`.

    Folders within it whose names begin with a dot are left out: `.venv` and `.git` have other files of these names. So
    are qualifications of generators, results of bisections and datasets, which are in the folder of results too.
    """
    if not path.is_dir():
        return (path,)
    closed: list[OSError] = []
    files: list[Path] = []
    datasets: list[Path] = []
    for folder, folders, names in os.walk(path, onerror=closed.append):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _OTHERS]
        inside = {name for name in folders if is_dataset(Path(folder, name))}
        folders[:] = [name for name in folders if name not in inside]
        datasets += (Path(folder, name) for name in inside)
        files += [
            Path(folder, name)
            for name in names
            if name not in _OTHERS
            and Path(folder, name).is_file()
            and (_is_result(name) or is_output(Path(folder, name)))
        ]
    problems = [Problem(str(error.filename), f"{error.filename}: cannot be read: {error.strerror}") for error in closed]
    if not files and not closed:
        text = f"{path}: the directory has no output.xml and no .json records"
        if datasets:
            text += f"; name the dataset {min(datasets)} instead"
        problems.append(Problem(str(path), text))
    return (*problems, *sorted(files, key=lambda found: (found.suffix == ".json" and not is_output(found), found)))


def output_of(folder: Path) -> Path:
    """Return the output of the run in a folder: output.xml, or else the latest one of another name."""
    usual = folder / "output.xml"
    if usual.exists() or not folder.is_dir():
        return usual
    others = [each for each in folder.iterdir() if each.is_file() and is_output(each)]
    return max(others, key=lambda each: each.stat().st_mtime_ns, default=usual)


def is_output(path: Path) -> bool:
    """Whether a file is an output of Robot Framework, by its beginning."""
    try:
        with _opened(path) as stream:
            return begins_output(stream.read(HEAD_BYTES))
    except (ReadError, OSError):
        return False


def _is_result(name: str) -> bool:
    """Whether a file must be a result by its name: one that is empty or damaged is reported."""
    plain = _plain(PurePosixPath(name).name)
    return _OUTPUT.fullmatch(plain) is not None or plain.endswith((".json", ".parquet")) or name.endswith(".zip")


def _plain(name: str) -> str:
    """The name without the ending of a packed file."""
    return name.removesuffix(next((end for end in PACKED if name.endswith(end)), ""))


def sources_of_file(path: Path | Problem) -> Iterator[Source | Problem]:
    """Yield a file, or the result files of an archive; the problem if there is one instead."""
    if isinstance(path, Problem):
        yield path
        return
    if path.exists() and not path.is_file():  # the other end of a pipe may never be opened
        yield Problem(str(path), f"{path}: cannot be read: not a regular file")
        return
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            if magic == _ZIP:
                file.seek(0)
                yield from _members(file, path.stat().st_size, str(path), 1)
                return
    except OSError as error:
        yield Problem(str(path), f"{path}: cannot be read: {error.strerror or error}")
        return
    yield Source(str(path), lambda: _opened(path), path, lambda: _records_beside(path))


def _records_beside(path: Path) -> Iterator[Source]:
    for found in sorted((path.parent / RESULTS_FOLDER).glob("*.json")):
        yield from (each for each in sources_of_file(found) if isinstance(each, Source))


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file, unpacked(file, Budget(path.stat().st_size)) as stream:
            yield stream
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror or error}") from error


def _members(
    file: BinaryIO, size: int, name: str, depth: int, budget: Budget | None = None
) -> Iterator[Source | Problem]:
    try:
        archive = open_archive(file, size)
    except UnpackError as error:
        yield Problem(name, f"{name}: {error}")
        return
    spent = budget or Budget(size)
    with archive:
        outputs = {each.filename for each in archive.infolist() if _is_output_in(archive, each)}
        found = [each for each in archive.infolist() if each.filename in outputs or _is_result(each.filename)]
        if not found:
            yield Problem(name, f"{name}: the archive has no output.xml and no .json records")
        for each in sorted(found, key=lambda one: (one.filename not in outputs, one.filename)):
            inner = f"{name}!{each.filename}"
            if each.filename.endswith(".zip"):
                yield from _nested(archive, each, inner, depth, spent)
            else:
                yield Source(
                    inner,
                    _opener(archive, each, spent),
                    beside=partial(_members_beside, archive, found, PurePosixPath(each.filename), name, spent),
                )


def _is_output_in(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    try:
        with open_member(archive, member) as packed, unpacked(packed, Budget(member.compress_size)) as stream:
            return begins_output(stream.read(HEAD_BYTES))
    except (UnpackError, *UNPACK_ERRORS):
        return False


def _members_beside(
    archive: zipfile.ZipFile, members: Iterable[zipfile.ZipInfo], output: PurePosixPath, name: str, budget: Budget
) -> Iterator[Source]:
    folder = output.parent / RESULTS_FOLDER
    for each in members:
        path = PurePosixPath(each.filename)
        if path.parent == folder and path.suffix == ".json":
            yield Source(f"{name}!{path}", _opener(archive, each, budget))


def _opener(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: Budget
) -> Callable[[], AbstractContextManager[BinaryIO]]:
    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        # Counted twice, packed and unpacked, so that a small file in many layers stays small.
        with open_member(archive, member) as stream, unpacked(cast(BinaryIO, Bounded(stream, budget)), budget) as plain:
            yield plain

    return opened


def _nested(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, depth: int, budget: Budget
) -> Iterator[Source | Problem]:
    if depth >= MAX_DEPTH:
        yield Problem(name, f"{name}: refused: archives inside archives more than {MAX_DEPTH} deep")
        return
    with tempfile.TemporaryFile() as copy:
        try:
            with open_member(archive, member) as stream:
                bounded = Bounded(stream, budget)
                while block := bounded.read(CHUNK_BYTES):
                    copy.write(block)
        except (UnpackError, OSError) as error:
            yield Problem(name, f"{name}: {error}")
            return
        size = copy.tell()
        copy.seek(0)
        yield from _members(cast(BinaryIO, copy), size, name, depth + 1, budget)


_MIN_BYTES_PER_VALUE = 8
"""Keys have names, and numbers digits: records have 15 to 40 bytes per value."""


def content_of(stream: BinaryIO) -> bytes:
    """Return the content of a record file, or of a table of another tool, without a byte order mark of UTF-8.

    Raises:
        ReadError: Unreadable, or larger than any record.
    """
    blocks, size = [], 0
    while block := stream.read(1 << 20):
        blocks.append(block)
        size += len(block)
        if size > LARGEST_RESULT_BYTES:
            raise ReadError(f"larger than {LARGEST_RESULT_BYTES / 1e6:.0f} MB, the limit for records")
    content = b"".join(blocks).removeprefix(BOM_UTF8)
    values = content.count(b",") + content.count(b"[") + content.count(b"{")
    if values > max(MAX_VALUES_OF_A_RESULT, size // _MIN_BYTES_PER_VALUE):
        raise ReadError(f"about {values:,} values in {size:,} bytes, which no result has")
    return content
