"""Layout of a dataset: a folder of Parquet files, to which imports add files and never change any.

    dataset.json                                        version of the layout
    tests/testbed=T/night=YYYY-MM-DD/<digest>.parquet   rows of tests
    details/testbed=T/night=YYYY-MM-DD/<digest>.arrow   their records, in the same order
    characterizations/<digest>.parquet                  records of other studies
    imports/<digest>.json                               contents of one import; written last

`digest` is that of the unpacked content, so a file is recognized whatever its name and compression. Files that no file
in `imports` lists are ignored: they are left by a killed import.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import msgspec

from csit_utils.dataset.items import ReadError
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import LARGEST_INPUT_BYTES, LARGEST_RECORD_BYTES
from resources.libraries.python.model.load import content_of
from resources.libraries.python.model.result import Environment
from resources.libraries.python.whole_files import opened, replace_file

VERSION = 1
"""Raised when a release would misread the datasets of another one; columns that are added do not raise it."""
_HEAD, _IMPORTS, _STAGING, _LOCK = "dataset.json", "imports", ".importing", ".lock"
_TABLES = TESTS, DETAILS = "tests", "details"
CHARACTERIZATIONS = "characterizations"
DETAILS_SUFFIX = ".arrow"
_UNKNOWN = "__HIVE_DEFAULT_PARTITION__"
_LONGEST_FOLDER = 200
"""Characters of a value in the name of a folder; file systems permit 255 with its key."""
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{16,64}\Z")]
_PartPath = Annotated[
    str, msgspec.Meta(pattern=r"\Atestbed=[A-Za-z0-9_.~%-]+/night=[A-Za-z0-9_.~%-]+/[0-9a-f]{16}\.parquet\Z")
]
"""As `partition` makes it. A dataset may come from anyone, and other paths would lead out of it."""


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int


_FORMAT = "csit-density dataset"
_UNREADABLE = (ConfigError, ReadError, msgspec.DecodeError, UnicodeError, RecursionError)


def _why(path: Path, error: Exception) -> str:
    return str(error).removeprefix(f"{path}: ")


class PartValues(msgspec.Struct, frozen=True):
    """Values of columns of a part, each once, by which commands choose what they read; None: more than are listed."""

    run: tuple[str, ...] | None
    label: tuple[str, ...] | None
    version: tuple[str, ...] | None
    revision: tuple[str, ...] | None
    profile: tuple[str, ...] | None
    service_type: tuple[str, ...] | None
    frame: tuple[str, ...] | None
    origin: tuple[str, ...] | None


class StoredPart(msgspec.Struct, frozen=True):
    """Tests of one import on one testbed in one night."""

    path: _PartPath
    """Below `tests`, and below `details` with the suffix of details."""
    testbed: str | None
    night: str | None
    """UTC date of the start of the tests."""
    begun: str | None
    """Start of its first test, as `TestRow.started_at`."""
    tests: _Count
    values: PartValues


class Import(msgspec.Struct, frozen=True):
    """The contents of one imported file."""

    digest: _Digest
    source: str
    label: str | None
    parts: tuple[StoredPart, ...]
    refused: tuple[msgspec.Raw, ...]
    """JSON of cells that do not fit, `RefusedCell` of the model."""
    problems: tuple[str, ...]
    environments: dict[str, msgspec.Raw]
    """JSON of the model's Environment, by digest."""
    files: tuple[str, ...] = ()
    """SHA-256 of imported record files; empty for an output.xml."""
    characterizations: _Count = 0
    """Number of records of other studies."""

    @property
    def run(self) -> str:
        """As `TestRow.run`."""
        return run_of(self.digest)

    @property
    def tests(self) -> int:
        """Number of tests, including those of other studies."""
        return sum(part.tests for part in self.parts) + self.characterizations


def run_of(digest: str) -> str:
    """Return a short name of an import."""
    return digest[:12]


def partition(testbed: str | None, night: str | None) -> str:
    """Return Hive-style partition folders, which Parquet readers know.

    A name that is too long for a folder is shortened there: files of tests have the whole one.
    """
    return "/".join(
        f"{name}={_folder(quote(value, safe='')) if value else _UNKNOWN}"
        for name, value in (("testbed", testbed), ("night", night))
    )


def _folder(name: str) -> str:
    if len(name) <= _LONGEST_FOLDER:
        return name
    return f"{name[: _LONGEST_FOLDER - 17]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def is_dataset(folder: Path) -> bool:
    """Whether a folder is a dataset."""
    try:
        return (folder / _HEAD).is_file()
    except OSError:  # not permitted: reading it as a file says so
        return False


class Layout:
    """A dataset's folder.

    Args:
        temporary: Whether it is removed before the program ends: nothing waits for the disk, and details, which are
            read soon, stay in the page cache.

    Raises:
        ConfigError: Not a dataset, or of another version.
    """

    def __init__(self, folder: Path, *, temporary: bool = False) -> None:
        self.folder = folder
        self.temporary = temporary
        head = folder / _HEAD
        try:
            header = msgspec.json.decode(content_of(head, LARGEST_INPUT_BYTES), type=_Header)
        except _UNREADABLE as error:
            raise ConfigError(f"{head}: not a dataset: {_why(head, error)}") from error
        if header.format != _FORMAT:
            raise ConfigError(f"{head}: not a dataset, but '{header.format}'")
        if header.version != VERSION:
            raise ConfigError(
                f"{folder}: the dataset has version {header.version}, and this release reads version {VERSION}: import "
                "the results into a new folder, or use the release that wrote it"
            )

    @classmethod
    def make(cls, folder: Path, *, temporary: bool = False) -> "Layout":
        """Open a dataset; create it if the folder is empty or missing.

        Raises:
            ConfigError: The folder has other contents, or is not writable.
        """
        try:
            if not is_dataset(folder):
                folder.mkdir(parents=True, exist_ok=True)
                if any(each.name != _LOCK for each in folder.iterdir()):
                    raise ConfigError(f"{folder}: neither a dataset nor empty; choose a new folder")
                head = msgspec.json.encode(_Header(_FORMAT, VERSION)) + b"\n"
                replace_file(folder / _HEAD, head, sync=not temporary)
        except OSError as error:
            raise ConfigError(f"{folder}: cannot create a dataset: {error.strerror or error}") from error
        return cls(folder, temporary=temporary)

    def imports(self, damaged: list[str] | None = None) -> list[Import]:
        """Return all imports in the order of their digests.

        `damaged`: gets a sentence for each import that cannot be read; without it that is an error.

        Raises:
            ConfigError: An import cannot be read.
        """
        decoder = msgspec.json.Decoder(Import)
        found = []
        for path in sorted((self.folder / _IMPORTS).glob("*.json")):
            try:
                inside = self._inside(path.relative_to(self.folder))
                found.append(decoder.decode(content_of(inside, LARGEST_RECORD_BYTES)))
            except _UNREADABLE as error:
                text = f"{path}: damaged; remove it and import its file again: {_why(path, error)}"
                if damaged is None:
                    raise ConfigError(text) from error
                damaged.append(text)
        return found

    def digests(self) -> frozenset[str]:
        """Return the digests of all imports, readable or not."""
        return frozenset(path.stem for path in (self.folder / _IMPORTS).glob("*.json"))

    def find(self, digest: str) -> Import | None:
        """Return the import of a digest."""
        try:
            path = self._inside(Path(_IMPORTS, f"{digest}.json"))
            return msgspec.json.decode(content_of(path, LARGEST_RECORD_BYTES), type=Import)
        except _UNREADABLE:
            return None

    def path(self, table: str, part: StoredPart) -> Path:
        """Return the path of a part of a table."""
        path = Path(table, part.path)
        return self._inside(path.with_suffix(DETAILS_SUFFIX) if table == DETAILS else path)

    def characterizations(self, made: Import) -> Path:
        """Return the path of records of other studies of an import."""
        return self._inside(Path(CHARACTERIZATIONS, f"{made.digest[:16]}.parquet"))

    def _inside(self, path: Path) -> Path:
        """Return a path of the dataset.

        Raises:
            ReadError: It leads through a link, which may lead to any file.
        """
        for each in (path, *path.parents[:-1]):
            if os.path.islink(self.folder / each):  # noqa: PTH114 - not by `Path`, as below
                raise ReadError(f"{self.folder / each}: a link; replace it by what it leads to")
        return self.folder / path

    def staged(self, digest: str, table: str, number: int) -> Path:
        """Return the path of a part before its commit."""
        return self.folder / _STAGING / f"{digest[:16]}-{number}.{table}"

    def claim(self, digest: str) -> bool:
        """Claim a content; False if another process of this import stages the same."""
        try:
            (self.folder / _STAGING / f"{digest}.claim").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def commit(self, made: Import) -> None:
        """Move staged files to their places, on disk before they are named, unless they are temporary."""
        moves = [(table, number, self.path(table, part)) for number, part in enumerate(made.parts) for table in _TABLES]
        if made.characterizations:
            moves.append((CHARACTERIZATIONS, 0, self.characterizations(made)))
        for table, number, target in moves:
            staged = self.staged(made.digest, table, number)
            target.parent.mkdir(parents=True, exist_ok=True)
            if not self.temporary:
                _sync(staged, forget=table == DETAILS)
            staged.replace(target)
        self._inside(Path(_IMPORTS)).mkdir(exist_ok=True)
        replace_file(
            self.folder / _IMPORTS / f"{made.digest}.json", msgspec.json.encode(made) + b"\n", sync=not self.temporary
        )

    @contextmanager
    def writing(self, wait: Callable[[], None]) -> Iterator[None]:
        """Lock the dataset, and remove leftovers of killed imports. At the end, committed files are on disk.

        Those of a temporary dataset need not be.

        `wait`: called once before waiting for another import.
        """
        with opened(self.folder / _LOCK) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                wait()
                fcntl.flock(lock, fcntl.LOCK_EX)
            staging = self._inside(Path(_STAGING))
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir()
            try:
                yield
                if not self.temporary:
                    # What is in the files is on disk already; their names are waited for once for all of them.
                    _sync(self.folder)
                    if (self.folder / _IMPORTS).is_dir():
                        _sync(self.folder / _IMPORTS)
            finally:
                shutil.rmtree(staging, ignore_errors=True)


def environment(raw: msgspec.Raw) -> Environment:
    """Return a stored environment."""
    return Environment.model_validate_json(bytes(raw))


def _sync(path: Path, *, forget: bool = False) -> None:
    """Wait until a file or a folder is on disk; `forget` drops it from the page cache."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
        if forget:
            os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(number)
