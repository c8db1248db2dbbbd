"""Records of earlier runs, below a folder."""

from pathlib import Path
from typing import TypeVar

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import LARGEST_RECORD_BYTES
from resources.libraries.python.model.load import content_of
from resources.libraries.python.model.record import Record
from resources.libraries.python.recording.records import NotARecord, read_record

_Record = TypeVar("_Record", bound=Record)


def check_results(folder: Path) -> None:
    """Check that a folder with earlier results exists.

    Raises:
        ConfigError: It does not.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder of earlier results")


def earlier_records(folder: Path, kind: type[_Record]) -> list[_Record]:
    """Read the records of a kind in `results/*.json` at any depth, oldest first; files of other kinds are ignored."""
    found = []
    for path in folder.rglob("results/*.json"):
        try:
            record, _ = read_record(content_of(path, LARGEST_RECORD_BYTES))
        except (ConfigError, NotARecord):
            continue  # no record, or of a later version
        if isinstance(record, kind):
            found.append(record)
    return sorted(found, key=lambda record: record.started_at)
