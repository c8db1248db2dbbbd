"""Folders of the project."""

from contextlib import suppress
from pathlib import Path

from resources.libraries.python.errors import ConfigError

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
