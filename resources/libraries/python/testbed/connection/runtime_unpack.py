"""Runs on a node: unpacks folders of a runtime from standard input, tries them, and gives them their names only then.

Arguments: FOLDER RUNTIME PACKAGES BYTES KEPT MODULES..., where RUNTIME and PACKAGES are names of folders, RUNTIME may
be empty, and each is in the archive or there already. Writes one JSON object: empty, or with `problem` and numbers.
Whatever goes wrong, nothing is left. Others may do the same at the same time; the first one wins.
"""

import ctypes
import errno
import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

folder, name, packages = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
needed, kept, modules = int(sys.argv[4]), int(sys.argv[5]), sys.argv[6:]
LINK = "packages"
"""Of a runtime, to its packages."""
DAY_S = 86400
_SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Python 3.11.4 and newer."""


def free() -> int:
    """Bytes that are free there."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def misuse() -> dict[str, object]:
    """Make the folder; what is wrong with it where another user has made it, or a link of its name."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o755, parents=True)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022:
        return {}
    return {"problem": "system", "said": f"{folder}: it belongs to user {found.st_uid}; look at it and remove it"}


def install() -> dict[str, object]:
    """Unpack, try, rename."""
    if free() < needed:
        with locked(folder):
            prune(1)  # the one that was used last may be in use now
    if free() < needed:
        return {"problem": "space", "free": free()}
    new = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    try:
        with tarfile.open(fileobj=sys.stdin.buffer, mode="r|*") as archive:
            archive.extractall(new, **_SAFELY)  # noqa: S202 - the controller packed it
        parts = list(new.iterdir())
        for part in parts:
            part.chmod(0o755)
        if packages not in {part.name for part in parts}:
            (new / packages).symlink_to(Path("..", packages))
        if name:
            (new / name / LINK).symlink_to(Path("..", packages))
        tried = try_modules(new) if modules else None
        if tried is not None and tried.returncode:
            output = tried.stdout.decode(errors="replace").strip().splitlines()
            return {"problem": "trial", "said": output[-1] if output else "nothing"}
        flush(new)
        return rename(parts)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return {"problem": "space", "free": free()}
        return {"problem": "system", "said": f"{error.filename or folder}: {error.strerror}"}
    except (tarfile.TarError, EOFError) as error:
        return {"problem": "archive", "said": str(error)}
    finally:
        shutil.rmtree(new, ignore_errors=True)


def flush(path: Path) -> None:
    """Flush the file system, so that a power loss leaves complete files or none."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
            raise OSError(ctypes.get_errno(), "cannot be written to disk", str(path))
    finally:
        os.close(descriptor)


def try_modules(new: Path) -> subprocess.CompletedProcess[bytes]:
    """Import modules from what was unpacked."""
    start = [str(new / name / "start.py"), "--try"] if name else ["-c", IMPORT, str(new / packages)]
    return subprocess.run(
        [sys.executable, "-I", *start, *modules],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
    )  # fmt: skip


IMPORT = "import importlib, sys; sys.path.insert(0, sys.argv[1]); [*map(importlib.import_module, sys.argv[2:])]"


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a folder; without waiting, BlockingIOError if an agent runs on it.

    That of all is for renaming and pruning: between two renames packages have no runtime, and would be pruned.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def rename(parts: list[Path]) -> dict[str, object]:
    """Rename the folders into place, packages first, and prune old ones."""
    with locked(folder):
        for part in sorted(parts, key=lambda part: part.name != packages):
            if not (folder / part.name).is_dir():
                part.rename(folder / part.name)
        if not (folder / packages).is_dir():
            shutil.rmtree(folder / name, ignore_errors=True)
            return {"problem": "packages"}
        os.utime(folder / (name or packages))
        flush(folder)
        prune(kept)
    return {}


def prune(keep: int) -> None:
    """Remove runtimes that were used longest ago, packages without a runtime, and what was never finished.

    So many runtimes are kept, and those that an agent runs on.
    """
    ages = {path: time.time() - path.stat().st_mtime for path in folder.iterdir()}
    runtimes = [path for path in ages if path.is_dir() and not path.name.startswith((".", f"{LINK}-"))]
    finished = sorted(runtimes, key=ages.__getitem__)
    needed_by = {os.path.realpath(path) for path in (folder / packages, *(each / LINK for each in finished[:keep]))}
    stale = [path for path in ages if path.name.startswith(".") and ages[path] > DAY_S]
    stale += [path for path in ages if path.name.startswith(f"{LINK}-") and os.path.realpath(path) not in needed_by]
    for path in stale + finished[keep:]:
        with suppress(OSError), locked(path, wait=False):
            shutil.rmtree(path, ignore_errors=True)


print(json.dumps(misuse() or install()))
