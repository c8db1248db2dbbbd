"""Loading of the two specifications of a sizing, with the scripts that they name."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_json
from resources.libraries.python.model.service.spec import DeploymentSpec
from resources.libraries.python.model.service.workload import Option, WorkloadSpec, variable_of, variables
from resources.libraries.python.paths import specification_file

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

    @property
    def name(self) -> str:
        """Name of the service."""
        return self.deployment.vnf_name

    @property
    def options(self) -> Mapping[str, str]:
        """Environment variables of the chosen options of both files."""
        return variables({**self.deployment.options, **self.workload.options})


def load_sizing(deployment: Path, settings: Mapping[str, str]) -> Specifications:
    """Read both files, given the key `workload` for the second one; other keys are values of options.

    Raises:
        ConfigError: As `load_specifications`, or there is no such key.
    """
    chosen = dict(settings)
    if not (workload := chosen.pop("workload", "")):
        raise ConfigError(f"{deployment}: a sizing needs a workload, such as workload=clearwater/workload.json")
    return load_specifications(deployment, specification_file(workload), chosen)


def load_specifications(
    deployment: Path, workload: Path, chosen: Mapping[str, str] = MappingProxyType({})
) -> Specifications:
    """Read both files and look for their scripts, which are relative to the file that names them.

    `chosen`: Values of options, by name; of others the files' own values hold.

    Raises:
        ConfigError: A file does not fit, a script is missing or cannot be executed, or an option does not have a value.
    """
    spec, load = load_json(deployment, DeploymentSpec), load_json(workload, WorkloadSpec)
    seen: dict[str, str] = {}
    for file, name in ((file, name) for file, row in ((deployment, spec), (workload, load)) for name in row.options):
        variable = variable_of(name)
        if variable in seen:
            raise ConfigError(f"{file}: options: '{name}' and {seen[variable]} are the same variable {variable}")
        seen[variable] = f"'{name}' of {file}"
    for name in chosen:
        if name not in spec.options and name not in load.options:
            known = ", ".join([*spec.options, *load.options]) or "none"
            raise ConfigError(f"unknown option '{name}'; {deployment} and {workload} have {known}")
    spec = spec.model_copy(update={"options": _choose(deployment, spec.options, chosen)})
    load = load.model_copy(update={"options": _choose(workload, load.options, chosen)})
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


def _choose(file: Path, options: Mapping[str, Option], chosen: Mapping[str, str]) -> dict[str, Option]:
    found = dict(options)
    for name in options.keys() & chosen.keys():
        value, values = chosen[name], options[name].values
        if value not in values:
            raise ConfigError(f"{file}: options.{name}: '{value}' is not one of {', '.join(values)}")
        found[name] = options[name].model_copy(update={"value": value})
    return found


def _script(file: Path, key: str, name: str) -> Path:
    path = (file.parent / name).resolve()
    try:
        mode = path.stat().st_mode if path.is_file() else None
    except OSError as error:
        raise ConfigError(f"{file}: {key}: {path} is not accessible: {error.strerror}") from error
    if mode is None:
        raise ConfigError(f"{file}: {key}: no script {path}")
    if not mode & _EXECUTABLE:
        raise ConfigError(f"{file}: {key}: {path} is not executable; fix it by chmod +x")
    return path
