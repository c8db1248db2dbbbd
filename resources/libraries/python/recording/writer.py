"""Result files: one JSON file per test, written whole or not at all, read back and validated."""

import os
import re
from pathlib import Path

from pydantic import ValidationError

from resources.libraries.python.errors import CsitError, RunStopped
from resources.libraries.python.model.result import Result

RESULTS_FOLDER = "results"


def write_result(result: Result, folder: Path) -> Path:
    """Write a result to `folder/results/<name>.json`, on disk when this returns, and read it back.

    Raises:
        RunStopped: The folder cannot be written (no space, no permission).
        CsitError: What was read back is no valid result.
    """
    path = folder / RESULTS_FOLDER / f"{_file_name(result)}.json"
    text = result.model_dump_json()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(path, text)
    except OSError as error:
        path.with_suffix(".part").unlink(missing_ok=True)
        raise RunStopped(
            f"{path}: the result cannot be written: {error.strerror or error}; mend that, then resume the run"
        ) from error
    return _validated(path, result)


def check_folder(folder: Path, bytes_needed: int) -> None:
    """Find out before a run whether its results can be kept.

    Raises:
        CsitError: The folder cannot be made or written, or has less than `bytes_needed` bytes of space.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.write_bytes(b"")
        probe.unlink()
        free = os.statvfs(folder)
    except OSError as error:
        raise CsitError(f"{folder}: results cannot be written there: {error.strerror or error}") from error
    space = free.f_bavail * free.f_frsize
    if space < bytes_needed:
        raise CsitError(f"{folder}: {space / 1e6:.1f} MB of space for results, {bytes_needed / 1e6:.1f} MB needed")


def _file_name(result: Result) -> str:
    """The test's name as CSIT writes it, service type in front, safe for any file system."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", f"{result.cell.service_type}-{result.test_name}")


def _write_whole(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _validated(path: Path, written: Result) -> Path:
    try:
        read = Result.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise CsitError(f"{path}: what was written is no valid result: {error}") from error
    if read != written:
        raise CsitError(f"{path}: what was read back differs from what was written")
    return path
