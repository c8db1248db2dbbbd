"""Which sources these are: controller and node have to run the same ones."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from resources.libraries.python.paths import PROJECT

TOP = "resources"
"""All that runs on a node is below this folder of the project."""


def sources(root: Path = PROJECT) -> dict[str, bytes]:
    """Files that make up the project on a node, by their path from its root."""
    files = (path for path in (root / TOP).rglob("*") if path.is_file())
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
