"""Version of the program, which pyproject.toml defines, and its sources: those of controller and node are the same."""

import hashlib
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from resources.libraries.python.paths import PROJECT

_TOP = "resources"
"""All that runs on a node is below this folder of the project."""


@cache
def program_version() -> str | None:
    """Return the version; None on a node of a lab, which has a part of the project only."""
    with suppress(OSError, tomllib.TOMLDecodeError, KeyError):
        return str(tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    return None


def sources(root: Path = PROJECT) -> dict[str, bytes]:
    """Files that make up the project on a node, by their path from its root."""
    files = (path for path in (root / _TOP).rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(files)
        if "__pycache__" not in path.parts and path.suffix != ".pyc"
    }


def digest(files: Iterable[tuple[str, bytes]]) -> str:
    """SHA-256 over names and contents, in hexadecimal."""
    total = hashlib.sha256()
    for name, content in files:
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()
