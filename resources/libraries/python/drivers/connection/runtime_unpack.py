"""Runs on a node: unpacks a runtime from standard input, tries it, and gives it its name only then.

Arguments: FOLDER DIGEST BYTES KEPT MODULES... Writes one JSON object: empty, or with `problem` and numbers.
Whatever goes wrong, nothing is left. Others may do the same at the same time; the first one wins.
"""

import errno
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

folder, digest, needed, kept, modules = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]
target = folder / digest
DAY_S = 86400
_SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Python 3.11.4 and newer."""


def free() -> int:
    """Bytes that are free there."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def install() -> dict[str, object]:
    """Unpack, try, rename."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if free() < needed:
        prune(1)  # the one that was used last may be in use now
    if free() < needed:
        return {"problem": "space", "free": free()}
    new = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    try:
        with tarfile.open(fileobj=sys.stdin.buffer, mode="r|*") as archive:
            archive.extractall(new, **_SAFELY)  # noqa: S202 - the controller packed it
        new.chmod(0o755)
        tried = subprocess.run(
            [sys.executable, "-I", new / "start.py", "--try", *modules],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
        )  # fmt: skip
        if tried.returncode:
            said = tried.stdout.decode(errors="replace").strip().splitlines()
            return {"problem": "trial", "said": said[-1] if said else "nothing"}
        if not target.is_dir():
            new.rename(target)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return {"problem": "space", "free": free()}
        if not target.is_dir():
            return {"problem": "system", "said": f"{error.filename or folder}: {error.strerror}"}
    except (tarfile.TarError, EOFError) as error:
        return {"problem": "archive", "said": str(error)}
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return {}


def prune(keep: int) -> None:
    """Remove runtimes that were used longest ago, and what was never finished; so many are kept."""
    ages = {path: time.time() - path.stat().st_mtime for path in folder.iterdir()}
    finished = sorted((path for path in ages if not path.name.startswith(".")), key=ages.__getitem__)
    stale = [path for path in ages if path.name.startswith(".") and ages[path] > DAY_S]
    for path in stale + finished[keep:]:
        shutil.rmtree(path, ignore_errors=True)


answer = install()
if not answer:
    os.utime(target)
    prune(kept)
print(json.dumps(answer))
