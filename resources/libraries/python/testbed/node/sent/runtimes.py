"""Removes from this machine what agents have run on. Sent to nodes. The next run brings it again."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

FOLDER = "/var/tmp/csit-density"  # noqa: S108 - only what is named is removed, and only below it


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Remove runtimes.

    Args:
        arguments: `names` of runtimes, as `leftovers` lists them; `folder`, for tests.
    """
    folder = Path(arguments.get("folder", FOLDER))
    if folder.is_symlink():
        return {"failed": f"{folder} is a symbolic link, which is not ours"}
    removed, failed = [], []
    for name in arguments["names"]:
        if not re.fullmatch(r"[0-9a-zA-Z._-]+", name) or name in (".", ".."):
            failed.append(f"{name!r} is no name of a runtime")
            continue
        try:
            shutil.rmtree(folder / name)
            removed.append(name)
        except FileNotFoundError:
            continue
        except OSError as error:
            failed.append(f"{folder / name}: {error.strerror}")
    return {"failed": "; ".join(failed)} if failed else {"removed": removed}
