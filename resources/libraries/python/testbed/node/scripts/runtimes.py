"""Removes from this machine what agents have run on. Sent to nodes. The next run brings it again."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
from pathlib import Path
from typing import Any

FOLDER = "/var/tmp/csit-density"  # noqa: S108 - only what is named is removed, and only below it


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Remove runtimes.

    `arguments`: `names` of runtimes, as `leftovers` lists them; `folder`, for tests.
    """
    folder = Path(arguments.get("folder", FOLDER))
    try:
        found = folder.lstat()
    except OSError:
        return {"removed": []}
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        kind = "is a symbolic link" if stat.S_ISLNK(found.st_mode) else f"belongs to user {found.st_uid}"
        return {"failed": f"{folder} {kind}, with mode {found.st_mode & 0o7777:o}, and is not ours; look at it"}
    removed, failed = [], []
    for name in arguments["names"]:
        if not re.fullmatch(r"[0-9a-zA-Z._-]+", name) or name in (".", ".."):
            failed.append(f"{name!r} is no name of a runtime")
            continue
        try:
            descriptor = os.open(folder / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        except OSError as error:
            failed.append(f"{folder / name}: {error.strerror}")
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder / name)
            removed.append(name)
        except BlockingIOError:
            failed.append(f"{folder / name}: an agent runs on it")
        except OSError as error:
            failed.append(f"{folder / name}: {error.strerror}")
        finally:
            os.close(descriptor)
    return {"failed": "; ".join(failed)} if failed else {"removed": removed}
