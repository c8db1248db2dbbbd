"""Records of earlier runs, below a folder."""

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.model.result import Result

_Record = TypeVar("_Record", Result, Characterization)


def check_results(folder: Path) -> None:
    """Check that a folder with earlier results exists.

    Raises:
        ConfigError: It does not.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder with earlier results")


def earlier_records(folder: Path, kind: type[_Record]) -> list[_Record]:
    """Read the records of a kind in `results/*.json` at any depth, oldest first; files of other kinds are ignored."""
    found = []
    for path in folder.rglob("results/*.json"):
        try:
            found.append(kind.model_validate_json(path.read_bytes()))
        except (OSError, ValidationError):
            continue  # another kind, or of a later version
    return sorted(found, key=lambda record: record.started_at)
