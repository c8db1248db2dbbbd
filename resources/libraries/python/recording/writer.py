"""The record of a test: its draft, its JSON file, whole or not at all, its short form in `output.xml`; space for both.

The short form has what rows of tables need as it is, the rest compressed. A record is JSON of some 80 kB, nineteen
twentieths of which are trials, histograms, the plan and the environment. They are replaced by one key, `packed`: the
base64 of zlib (RFC 1950) of their JSON object. Another new key, `counted`, has the digest of the whole record, and the
few figures of the packed part that a row of a table has: a table of tests is made without unpacking anything. A
record's class marks its packed fields.
"""

import base64
import hashlib
import json
import os
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Generic, TypeVar

import msgspec
from pydantic import ValidationError

from resources.libraries.python.errors import CsitError, RunStopped
from resources.libraries.python.model.base import digest_of_model, error_text
from resources.libraries.python.model.record import Record, packed_keys
from resources.libraries.python.model.result import DeploymentTimes, Environment, Finding, Verdict, VerdictKind
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.redaction import redacted_model
from resources.libraries.python.whole_files import opened, remove_unfinished, replace_file

RESULTS_FOLDER = "results"
TABLES_FOLDER = "characterization"
RecordT_co = TypeVar("RecordT_co", bound=Record, covariant=True)


def utc_now() -> str:
    """Now, as results write it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Draft(Generic[RecordT_co]):
    """Fields of a record, filled by the phases of a test. Another name than that of a field is an error."""

    def __init__(self, record: type[RecordT_co], topology: Topology, environment: Environment, **asked: object) -> None:
        own = vars(self)
        own["topology"], own["_record"] = topology, record
        own["deploy_s"] = own["remove_s"] = None
        own["_known"] = {}
        self.environment, self.started_at = environment, utc_now()
        self.warnings = list[str]()
        for name, value in asked.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the record's type
        known = vars(self).get("_known", {})
        if name in known:
            return known[name]
        field = self._field(name)
        if field.is_required():
            return None
        return known.setdefault(name, field.get_default(call_default_factory=True))

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401 - of the record's type
        if name in ("deploy_s", "remove_s"):
            vars(self)[name] = value
            return
        self._field(name)
        self._known[name] = value

    def _field(self, name: str) -> Any:  # noqa: ANN401 - a field of pydantic
        fields = {} if name.startswith("_") else vars(self)["_record"].model_fields
        if name not in fields:
            raise AttributeError(f"a record has no {name}")
        return fields[name]

    def finish(
        self, *, test_id: str, test_name: str, tags: tuple[str, ...], passed: bool, message: str, skipped: bool = False
    ) -> RecordT_co:
        """Close the record, without secrets. The verdict of a test that did not pass begins with the reason."""
        values = dict(self._known)
        times = None if self.deploy_s is None else DeploymentTimes(deploy_s=self.deploy_s, remove_s=self.remove_s)
        made: RecordT_co = self._record(
            **values
            | {
                "test_id": test_id,
                "test_name": test_name,
                "tags": tags,
                "finished_at": utc_now(),
                "passed": passed,
                "skipped": skipped,
                "message": message,
                "world": self.topology.world,
                "simulated": self.topology.world is World.SIM,
                "testbed": self.topology.metadata.name,
                "plan_digest": digest_of_model(self.plan) if self.plan else None,
                "deployment": times,
                "verdict": self._verdict(passed=passed, skipped=skipped, message=message),
            }
        )
        return redacted_model(made)

    @property
    def judged(self) -> bool:
        """Whether the record is of a study whose tests have a verdict."""
        return bool(self._record.model_fields["verdict"].is_required())

    def _verdict(self, *, passed: bool, skipped: bool, message: str) -> Verdict | None:
        verdict: Verdict | None = self.verdict
        first: list[Finding] = []
        if self.quarantined is not None:
            attempts = enumerate(self.broken, 1)
            first += (
                Finding(kind=VerdictKind.QUARANTINED, text=f"attempt {number}: {reason}") for number, reason in attempts
            )
        if self.judged and (verdict is None or (not passed and VerdictKind.FAILED not in verdict.kinds)):
            first.append(Finding(kind=VerdictKind.SKIPPED if skipped else VerdictKind.FAILED, text=message))
        return Verdict(findings=(*first, *(verdict.findings if verdict else ()))) if first else verdict


_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def pack(record: Record, text: str | None = None, digest: str | None = None) -> str:
    """Return the short form, one JSON object on one line: the light keys, `counted` and `packed`.

    `text`: JSON of the record, where there is some.
    `digest`: Of the record as first written; by default that of the text.
    """
    whole = (text or record.model_dump_json()).encode()
    digest = digest or hashlib.sha256(whole).hexdigest()
    heavy, parts = packed_keys(type(record)), _KEYS.decode(whole)
    light, packed = (
        b",".join(b'"%b":%b' % (key.encode(), bytes(each)) for key, each in parts.items() if (key in heavy) is which)
        for which in (False, True)
    )
    counted = json.dumps(record.counted(digest), separators=(",", ":"))
    compressed = base64.b64encode(zlib.compress(b"{%b}" % packed, 6)).decode()
    return f'{{{light.decode()},"counted":{counted},"packed":"{compressed}"}}'


def write_record(record: Record, folder: Path, name: str | None = None, text: str | None = None) -> Path:
    """Write a record to `folder/results/`, on disk when this returns, and read it back.

    `name`: Of the test in file names; its own name by default.

    Raises:
        RunStopped: The folder cannot be written (no space, no permission).
        CsitError: What was read back is no valid record.
    """
    path = folder / RESULTS_FOLDER / f"{safe_name(f'{record.file_prefix}-{name or record.test_name}')}.json"
    _on_disk(path, text or record.model_dump_json())
    return _validated(path, record)


def write_tables(name: str, tables: Mapping[str, str], folder: Path) -> Path:
    """Write CSV files to `folder/characterization/<name>/`; return that folder.

    Raises:
        RunStopped: The folder cannot be written.
    """
    place = folder / TABLES_FOLDER / safe_name(name)
    for file, text in tables.items():
        _on_disk(place / file, text)
    return place


def check_folder(folder: Path, bytes_needed: int) -> None:
    """Find out before a run whether its results can be kept.

    Raises:
        CsitError: The folder cannot be made or written, or has less than `bytes_needed` bytes of space.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
        space = free_bytes(folder)
    except OSError as error:
        raise CsitError(f"{folder}: cannot write results: {error.strerror or error}") from error
    if space < bytes_needed:
        raise CsitError(f"{folder}: {space / 1e6:.1f} MB of disk space for results, {bytes_needed / 1e6:.1f} MB needed")


def remove_half_written(folder: Path) -> None:
    """Remove results that a killed run was writing, before another one writes to its folder."""
    remove_unfinished((folder, folder / RESULTS_FOLDER, *folder.glob(f"{TABLES_FOLDER}/*")))


def _on_disk(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode(), sync=True)
    except OSError as error:
        raise RunStopped(
            f"{path}: cannot write the result: {error.strerror or error}; fix that, then resume the run"
        ) from error


def _validated(path: Path, written: Record) -> Path:
    try:
        read = type(written).model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise CsitError(f"{path}: the written result is invalid: {error_text(error)}") from error
    if read != written:
        raise CsitError(f"{path}: the result read back differs from the written one")
    return path


def safe_name(name: str) -> str:
    """A name that any file system takes."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", name)


class FileNames:
    """A name for each test of a run, also where two suites have tests of the same name.

    The same tests in the same order have the same names, so a run that is resumed finds its own again.
    """

    def __init__(self) -> None:
        self._test_of: dict[str, str] = {}

    def of(self, test_id: str, test_name: str) -> str:
        """The test's own name where that is free, else its long one."""
        long = safe_name(test_id)
        names = chain((safe_name(test_name), long), (f"{long}-{number}" for number in count(2)))
        return next(name for name in names if self._test_of.setdefault(name, test_id) == test_id)


RESERVE_BYTES = 8_000_000
"""For Robot's output on tests that did not run, and the last records."""
MIN_BYTES = 4_000_000
"""Least free space to begin a test."""


def free_bytes(folder: Path) -> int:
    """Free space for this user."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


class Reserve:
    """A file that reserves space, so that a run can write its last records when the disk is full."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / ".reserve"

    def hold(self) -> None:
        """Allocate the space, where the file system can."""
        with suppress(OSError):
            self.free()
            with opened(self._path) as descriptor:
                os.posix_fallocate(descriptor, 0, RESERVE_BYTES)

    def free(self) -> None:
        """Release the space."""
        self._path.unlink(missing_ok=True)

    def check(self) -> None:
        """Check that there is space for another test.

        Raises:
            RunStopped: There is not; the reserve is released.
        """
        left = free_bytes(self._folder)
        if left < MIN_BYTES:
            self.free()
            raise RunStopped(
                f"{self._folder}: {left / 1e6:.1f} MB of disk space left for results; free space, then resume the run"
            )
