"""Studies on the reading side: one folder each, found by what is in it."""

import pkgutil
from pathlib import Path

_HERE = Path(__file__).parent


def folders() -> tuple[str, ...]:
    """Names of the studies' folders."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules([str(_HERE)]) if found.ispkg))


def template_folders() -> tuple[Path, ...]:
    """Folders with templates, styles and scripts of studies."""
    return tuple(path for name in folders() if (path := _HERE / name / "templates").is_dir())


def study_commands() -> dict[str, str]:
    """Module of each command of a study, by the command's name."""
    return {
        found.name: f"csit_utils.studies.{name}.commands.{found.name}"
        for name in folders()
        for found in pkgutil.iter_modules([str(_HERE / name / "commands")])
    }
