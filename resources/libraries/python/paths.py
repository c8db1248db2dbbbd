"""Folders of the project."""

from contextlib import suppress
from pathlib import Path

from resources.libraries.python.errors import ConfigError, CsitError

PROJECT = Path(__file__).resolve().parents[3]
"""Root of the project. On a node of a lab it holds `resources` only."""
RESOURCES = PROJECT / "resources"
LOCAL_TOPOLOGY = PROJECT / "topologies" / "local.yaml"
"""Testbed of the machine at hand."""
_SPECIFICATIONS = PROJECT / "tests" / "characterization" / "specs"


def specification_file(path: str | Path) -> Path:
    """File of a specification, relative to the present folder or to the project's own specifications.

    Raises:
        ConfigError: There is none.
    """
    for candidate in (Path(path), _SPECIFICATIONS / path):
        with suppress(OSError):  # a name that is too long
            if candidate.exists() and not candidate.is_dir():  # it may be a pipe
                return candidate.absolute()
    raise ConfigError(f"{path}: no such specification, neither here nor in {_SPECIFICATIONS}")


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
