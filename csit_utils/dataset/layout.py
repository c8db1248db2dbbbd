"""Where things are in a dataset: a folder of Parquet files that is added to, import after import, and never changed.

    dataset.json                                        which version of this layout it is
    tests/testbed=T/night=YYYY-MM-DD/<digest>.parquet   rows of tests
    details/testbed=T/night=YYYY-MM-DD/<digest>.parquet their records, in the same order
    characterizations/<digest>.parquet                  records of characterizations, which are no rows of tests
    imports/<digest>.json                               what came from one file; written last

`digest` is of what was imported, so a file that is imported again is known, whatever its name and packing. What no file
under `imports` names is not there: the rest of an import that was killed.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import msgspec

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.result import Environment

VERSION = 1
"""Goes up when older software would read a dataset wrongly. A column that is new is no such thing: see `stored`."""
_HEAD, _IMPORTS, _STAGING, _LOCK = "dataset.json", "imports", ".importing", ".lock"
_TABLES = TESTS, DETAILS = "tests", "details"
CHARACTERIZATIONS = "characterizations"
_UNKNOWN = "__HIVE_DEFAULT_PARTITION__"


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int


_FORMAT = "csit-density dataset"


class Part(msgspec.Struct, frozen=True):
    """The tests of one import that were run on one testbed in one night."""

    path: str
    """Below `tests`, and below `details`."""
    testbed: str | None
    night: str | None
    """UTC date of the start of the tests."""
    tests: int


class Import(msgspec.Struct, frozen=True):
    """What came from one file."""

    digest: str
    source: str
    label: str | None
    parts: tuple[Part, ...]
    refused: tuple[msgspec.Raw, ...]
    """JSON of cells that do not fit, see `refused`."""
    problems: tuple[str, ...]
    environments: dict[str, msgspec.Raw]
    """JSON of the model's Environment, by digest."""
    files: tuple[str, ...] = ()
    """SHA-256 of the record files that this came from; none for an output.xml."""
    characterizations: int = 0
    """How many records of those."""

    @property
    def run(self) -> str:
        """As `TestRow.run`."""
        return run_of(self.digest)

    @property
    def tests(self) -> int:
        """How many, characterizations too."""
        return sum(part.tests for part in self.parts) + self.characterizations


def run_of(digest: str) -> str:
    """A short name of what was imported."""
    return digest[:12]


def partition(testbed: str | None, night: str | None) -> str:
    """Folders in Hive's manner, which readers of Parquet know."""
    return "/".join(
        f"{name}={quote(value, safe='') if value else _UNKNOWN}"
        for name, value in (("testbed", testbed), ("night", night))
    )


def is_dataset(folder: Path) -> bool:
    """Whether a folder is one of ours."""
    return (folder / _HEAD).is_file()


class Layout:
    """A dataset's folder.

    Raises:
        ConfigError: It is none, or one of software that came later.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        head = folder / _HEAD
        try:
            header = msgspec.json.decode(head.read_bytes(), type=_Header)
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(f"{head}: this is no dataset: {error}") from error
        if header.format != _FORMAT:
            raise ConfigError(f"{head}: this is no dataset but '{header.format}'")
        if header.version > VERSION:
            raise ConfigError(
                f"{folder}: the dataset has version {header.version}, this software reads up to {VERSION}; "
                "use a newer one"
            )

    @classmethod
    def make(cls, folder: Path) -> "Layout":
        """Open a dataset; make it where the folder is empty or not there.

        Raises:
            ConfigError: There is something else in the folder, or it cannot be written.
        """
        try:
            if not is_dataset(folder):
                folder.mkdir(parents=True, exist_ok=True)
                if any(each.name != _LOCK for each in folder.iterdir()):
                    raise ConfigError(f"{folder}: this is no dataset, and not empty; name a new folder")
                _write(folder / _HEAD, msgspec.json.encode(_Header(_FORMAT, VERSION)) + b"\n", sync=False)
        except OSError as error:
            raise ConfigError(f"{folder}: a dataset cannot be made there: {error.strerror or error}") from error
        return cls(folder)

    def imports(self) -> list[Import]:
        """All that was imported, in the order of its digests.

        Raises:
            ConfigError: One of the files that tell it is damaged.
        """
        decoder = msgspec.json.Decoder(Import)
        found = []
        for path in sorted((self.folder / _IMPORTS).glob("*.json")):
            try:
                found.append(decoder.decode(path.read_bytes()))
            except (OSError, msgspec.DecodeError) as error:
                raise ConfigError(f"{path}: damaged; remove it and import {_IMPORTS} anew: {error}") from error
        return found

    def find(self, digest: str) -> Import | None:
        """What was imported under a digest."""
        try:
            return msgspec.json.decode((self.folder / _IMPORTS / f"{digest}.json").read_bytes(), type=Import)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def path(self, table: str, part: Part) -> Path:
        """Of a table's part."""
        return self.folder / table / part.path

    def characterizations(self, made: Import) -> Path:
        """Of an import's records of characterizations, where it has any."""
        return self.folder / CHARACTERIZATIONS / f"{made.digest[:16]}.parquet"

    def staged(self, digest: str, table: str, number: int) -> Path:
        """Where a part waits for being committed."""
        return self.folder / _STAGING / f"{digest[:16]}-{number}.{table}"

    def claim(self, digest: str) -> bool:
        """Whether nobody else of this import has the same content in hand."""
        try:
            (self.folder / _STAGING / f"{digest}.claim").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def commit(self, made: Import) -> None:
        """Move staged files to their places, on disk before they are named."""
        moves = [(table, number, self.path(table, part)) for number, part in enumerate(made.parts) for table in _TABLES]
        if made.characterizations:
            moves.append((CHARACTERIZATIONS, 0, self.characterizations(made)))
        for table, number, target in moves:
            staged = self.staged(made.digest, table, number)
            target.parent.mkdir(parents=True, exist_ok=True)
            _sync(staged, forget=table == DETAILS)
            staged.replace(target)
        (self.folder / _IMPORTS).mkdir(exist_ok=True)
        _write(self.folder / _IMPORTS / f"{made.digest}.json", msgspec.json.encode(made) + b"\n", sync=True)

    @contextmanager
    def writing(self, wait: Callable[[], None]) -> Iterator[None]:
        """Keep other imports out; what killed ones left is removed. At its end, what was committed is on disk.

        Args:
            wait: Called once where another import has to be waited for.
        """
        with (self.folder / _LOCK).open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                wait()
                fcntl.flock(lock, fcntl.LOCK_EX)
            shutil.rmtree(self.folder / _STAGING, ignore_errors=True)
            (self.folder / _STAGING).mkdir()
            try:
                yield
                # What is in the files is on disk already, but for the head of a new dataset; their names are waited
                # for once for all of them.
                _sync(self.folder / _HEAD)
                if (self.folder / _IMPORTS).is_dir():
                    _sync(self.folder / _IMPORTS)
            finally:
                shutil.rmtree(self.folder / _STAGING, ignore_errors=True)


def environment(raw: msgspec.Raw) -> Environment:
    """An environment as it was kept."""
    return Environment.model_validate_json(bytes(raw))


def _sync(path: Path, *, forget: bool = False) -> None:
    """Wait until a file, or the names in a folder, are on disk; what is forgotten gives its memory to the next file."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
        if forget:
            os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(number)


def _write(path: Path, content: bytes, *, sync: bool) -> None:
    """Whole or not at all."""
    part = path.with_suffix(".part")
    part.write_bytes(content)
    if sync:
        _sync(part)
    part.replace(path)
