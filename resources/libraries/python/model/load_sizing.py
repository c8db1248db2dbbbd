"""Loading of the two specifications of a sizing, with the scripts that they name."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_json
from resources.libraries.python.model.sizing import DeploymentSpec
from resources.libraries.python.model.workload import WorkloadSpec

_EXECUTABLE = 0o111


@dataclass(frozen=True, slots=True)
class Specifications:
    """Both files. Scripts are absolute paths here, so that the specifications stay the same wherever they lie."""

    deployment: DeploymentSpec
    workload: WorkloadSpec
    install: Mapping[str, Path]
    """By component."""
    remove: Path | None
    generator: Path
    folders: tuple[Path, Path]
    """In which the two files lie, and with them what their scripts use."""


def load_specifications(deployment: Path, workload: Path) -> Specifications:
    """Read both files and look for their scripts, which are relative to the file that names them.

    Raises:
        ConfigError: A file does not fit, or a script is missing or cannot be executed.
    """
    spec, load = load_json(deployment, DeploymentSpec), load_json(workload, WorkloadSpec)
    service = _script(deployment, "install", spec.install)
    return Specifications(
        spec,
        load,
        {
            row.name: service
            if row.install is None
            else _script(deployment, f"components.{index}.install", row.install)
            for index, row in enumerate(spec.components)
        },
        None if spec.remove is None else _script(deployment, "remove", spec.remove),
        _script(workload, "generator", load.generator),
        (deployment.parent.resolve(), workload.parent.resolve()),
    )


def _script(file: Path, key: str, name: str) -> Path:
    path = (file.parent / name).resolve()
    try:
        mode = path.stat().st_mode if path.is_file() else None
    except OSError as error:
        raise ConfigError(f"{file}: {key}: {path} cannot be looked at: {error.strerror}") from error
    if mode is None:
        raise ConfigError(f"{file}: {key}: there is no script {path}")
    if not mode & _EXECUTABLE:
        raise ConfigError(f"{file}: {key}: {path} is not executable; chmod +x mends that")
    return path
