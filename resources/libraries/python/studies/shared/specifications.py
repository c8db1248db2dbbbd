"""Files that describe what a characterization test measures."""

from pathlib import Path

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.paths import PROJECT

_SPECS = PROJECT / "tests" / "characterization" / "specs"


def found(path: str) -> Path:
    """A specification's file, relative to the present folder or to the project's own specifications.

    Raises:
        ConfigError: There is none.
    """
    for candidate in (Path(path), _SPECS / path):
        if candidate.is_file():
            return candidate.absolute()
    raise ConfigError(f"{path}: there is no such specification, neither here nor in {_SPECS}")
