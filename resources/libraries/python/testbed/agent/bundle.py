"""Files of a sized service for nodes of a lab: specifications, and the user's scripts with all that lies beside.

The folders of the specifications are what is brought: scripts may use whatever is in them. Hidden files are left out.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Base64Bytes

from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.load import content_of
from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.model.service.spec import DeploymentSpec
from resources.libraries.python.model.service.workload import WorkloadSpec

MAX_BYTES = 16_000_000
"""Maximum size of both folders together, in one message to each node."""
_NAMES = ("deployment", "workload")
"""Names of the folders of the two specifications on a node; where both lie in one, it is the first."""
_OTHERS_READ = 0o755
"""Most permissions of a file: only root may write to what runs as root."""


@dataclass(frozen=True, slots=True)
class BundledFile:
    """A file that the user wrote."""

    path: str
    """On the node, from the folder of this service."""
    mode: int
    content: Base64Bytes


@dataclass(frozen=True, slots=True)
class ServiceBundle:
    """Specifications, scripts and files of a service; paths are those on the node."""

    deployment: DeploymentSpec
    workload: WorkloadSpec
    install: Mapping[str, str]
    """By component."""
    remove: str | None
    generator: str
    files: tuple[BundledFile, ...]


def bundled(asked: Specifications) -> ServiceBundle:
    """Read what nodes get.

    Raises:
        ConfigError: A script lies elsewhere, or its folder cannot be brought.
    """
    service, load = asked.folders
    names = {load: _NAMES[1]} | {service: _NAMES[0]}
    return ServiceBundle(
        asked.deployment,
        asked.workload,
        {component: _inside(path, service, names) for component, path in asked.install.items()},
        None if asked.remove is None else _inside(asked.remove, service, names),
        _inside(asked.generator, load, names),
        tuple(_files(names)),
    )


def _inside(script: Path, folder: Path, names: Mapping[Path, str]) -> str:
    if not script.is_relative_to(folder):
        raise ConfigError(f"{script} is outside of {folder}, which is what nodes of a lab get: move it there")
    return f"{names[folder]}/{script.relative_to(folder).as_posix()}"


def _files(names: Mapping[Path, str]) -> Iterator[BundledFile]:
    size = 0
    for folder, name in names.items():
        for path in _paths(folder):
            try:
                if not path.resolve(strict=True).is_relative_to(folder):
                    raise ConfigError(
                        f"{path} leads out of {folder}, which is what nodes of a lab get: put a copy there"
                    )
                status = path.stat()
                size += status.st_size
                content = content_of(path, MAX_BYTES) if size <= MAX_BYTES else b""
            except OSError as error:
                raise ConfigError(f"{path} cannot be brought to a node: {error.strerror}") from error
            if size > MAX_BYTES:
                raise ConfigError(
                    f"{folder}: more than {MAX_BYTES} bytes; nodes of a lab get all of a specification's folder"
                )
            yield BundledFile(f"{name}/{path.relative_to(folder).as_posix()}", status.st_mode & _OTHERS_READ, content)


def _paths(folder: Path) -> Iterator[Path]:
    """Files below a folder; a socket and the like is none.

    Raises:
        ConfigError: There is a link to a folder.
    """
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            if (path := Path(here, name)).is_symlink():
                raise ConfigError(
                    f"{path} is a link to a folder, which does not go to nodes of a lab: put a copy there"
                )
        for name in sorted(names):
            path = Path(here, name)
            if not name.startswith(".") and (path.is_file() or path.is_symlink()):
                yield path


def as_on_node(brought: ServiceBundle, folder: Path) -> Specifications:
    """The specifications with the scripts as they lie below a folder of the node."""
    return Specifications(
        brought.deployment,
        brought.workload,
        {component: folder / path for component, path in brought.install.items()},
        None if brought.remove is None else folder / brought.remove,
        folder / brought.generator,
        (folder / _NAMES[0], folder / _NAMES[1]),
    )


def write(brought: ServiceBundle, folder: Path) -> None:
    """Write the files into a folder that is not there yet.

    Raises:
        CsitError: A path leads out of the folder, or something cannot be written.
    """
    try:
        folder.mkdir(mode=0o755, parents=True)
        for file in brought.files:
            path = folder / file.path
            if ".." in path.parts or not path.is_relative_to(folder):
                raise CsitError(f"'{file.path}' leads out of {folder}")
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            path.touch(mode=0o600, exist_ok=False)
            path.write_bytes(file.content)
            path.chmod(file.mode)
    except OSError as error:
        raise CsitError(f"{error.filename or folder} cannot be written: {error.strerror}") from error
