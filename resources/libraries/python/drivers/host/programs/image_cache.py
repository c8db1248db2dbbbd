"""A cache of machine images: each is a folder that appears under its name complete or not at all.

All users can read folders and images, which have no secrets, and only the owner can write them, whatever the umask.
Archives with programs of this machine stay their owner's.
"""

import fcntl
import hashlib
import logging
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from resources.libraries.python.whole_files import opened

_FOLDER_MODE, _FILE_MODE, _OTHERS_WRITE = 0o755, 0o644, 0o022
_NAME = "csit-density"
BUILDING = ".building-"
"""Prefix of folders in which an image is made."""
_log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """The user's cache: below `XDG_CACHE_HOME`, `SHARED` for root, or `~/.cache`."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / _NAME
    return SHARED if os.geteuid() == 0 else Path.home() / ".cache" / _NAME


SHARED = Path("/var/cache") / _NAME
"""Root's cache, which all users can read."""


def newest(cache: Path, pattern: str) -> list[Path]:
    """Images whose names match a pattern, the newest first."""
    found = cache.glob(pattern) if cache.is_dir() else ()
    return sorted(found, key=lambda place: place.stat().st_mtime, reverse=True)


@contextmanager
def alone(cache: Path) -> Iterator[None]:
    """One maker at a time; what a killed one left is removed."""
    ours = (folder for folder in (cache, *cache.parents) if folder == cache or _NAME in folder.parts)
    missing = [folder for folder in ours if not folder.exists()]
    cache.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        share(folder)
    cache.chmod(stat.S_IMODE(cache.stat().st_mode) & ~_OTHERS_WRITE)  # whatever the umask is
    with opened(cache / "lock", 0o600) as lock:  # what can open it can hold it
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob(f"{BUILDING}*"):
            shutil.rmtree(left)
        yield


def share(path: Path) -> None:
    """Let all users read a file or a folder, and only its owner write it."""
    path.chmod(_FOLDER_MODE if path.is_dir() else _FILE_MODE)


def make(cache: Path, build: Callable[[Path, Path], str]) -> Path:
    """Make an image; call this inside `alone`.

    `build`: Is given an empty work folder, and an empty folder for the image's files; returns the image's name. An
      image that has this name already is replaced.
    """
    work = Path(mkdtemp(prefix=BUILDING, dir=cache))
    try:
        made = work / "image"
        made.mkdir()
        place = cache / build(work, made)
        for path in (made, *made.rglob("*")):
            share(path)
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
