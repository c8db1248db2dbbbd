"""Studies on the reading side, one folder each."""

import pkgutil
from pathlib import Path

_HERE = Path(__file__).parent
_COMMAND = "_command"


def folders() -> tuple[str, ...]:
    """Return the names of the folders of studies."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules([str(_HERE)]) if found.ispkg))


def template_folders() -> tuple[Path, ...]:
    """Return the folders of studies with templates, styles and scripts."""
    return tuple(path for name in folders() if (path := _HERE / name / "templates").is_dir())


def study_commands() -> dict[str, str]:
    """Return the dotted name of the module of each command of a study, by command name."""
    return {
        found.name.removesuffix(_COMMAND): f"csit_utils.studies.{name}.{found.name}"
        for name in folders()
        for found in pkgutil.iter_modules([str(_HERE / name)])
        if found.name.endswith(_COMMAND)
    }
