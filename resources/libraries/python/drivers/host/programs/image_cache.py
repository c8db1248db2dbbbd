"""A cache of machine images: each is a folder that appears under its name complete or not at all."""

import fcntl
import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

BUILDING = ".building-"
"""Prefix of folders in which an image is made."""
_log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """The user's cache: below `XDG_CACHE_HOME`, `SHARED` for root, or `~/.cache`."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "csit-density"
    return SHARED if os.geteuid() == 0 else Path.home() / ".cache" / "csit-density"


SHARED = Path("/var/cache/csit-density")
"""Root's cache, which all users can read."""


def newest(cache: Path, pattern: str) -> list[Path]:
    """Images whose names match a pattern, the newest first."""
    found = cache.glob(pattern) if cache.is_dir() else ()
    return sorted(found, key=lambda place: place.stat().st_mtime, reverse=True)


@contextmanager
def alone(cache: Path) -> Iterator[None]:
    """One maker at a time; what a killed one left is removed."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob(f"{BUILDING}*"):
            shutil.rmtree(left)
        yield


def make(cache: Path, build: Callable[[Path, Path], str]) -> Path:
    """Make an image; call this inside `alone`.

    Args:
        cache: Folder of images.
        build: Is given an empty work folder, and an empty folder for the image's files; returns the image's name. An
            image that has this name already is replaced.
    """
    work = Path(mkdtemp(prefix=BUILDING, dir=cache))
    try:
        made = work / "image"
        made.mkdir()
        place = cache / build(work, made)
        if place.exists():  # damaged, or it would have been taken
            shutil.rmtree(place)
        made.rename(place)
    finally:
        shutil.rmtree(work)
    _log.info("made %s", place)
    return place


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
