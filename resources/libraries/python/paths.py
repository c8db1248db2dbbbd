"""Folders of the project."""

from contextlib import suppress
from pathlib import Path

from resources.libraries.python.errors import CsitError

PROJECT = Path(__file__).resolve().parents[3]
"""Root of the project. On a node of a lab it holds `resources` only."""
RESOURCES = PROJECT / "resources"
LOCAL_TOPOLOGY = PROJECT / "topologies" / "local.yaml"
"""Testbed of the machine at hand."""


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file as a whole or not at all; an earlier one stays until then. Devices and pipes are written to.

    Raises:
        CsitError: It cannot be written.
    """
    part = path.with_name(f".{path.name}"[:240] + ".part")
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # root would replace /dev/null by a file
            path.write_bytes(data)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise CsitError(f"{path}: cannot be written: {error.strerror or error}") from error
