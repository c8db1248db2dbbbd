"""Containers on a machine's record, and their end."""

import os
import shutil
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.containers import engine as engines
from resources.libraries.python.drivers.containers.engine import Engine
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.base import Frozen

_WITHIN_S = 120.0


class Contained(Frozen):
    """A container of a run."""

    engine: Engine
    name: str

    def __str__(self) -> str:
        return f"{self.engine.name} container {self.name}"


def call(engine: Engine, argv: Sequence[str], *, within_s: float = _WITHIN_S, fed: bytes = b"") -> str:
    """Run a command of an engine; what it printed.

    Raises:
        CommandFailed: It failed; has the end of what it printed.
        NotReady: It did not end in time.
        CsitError: It cannot be run.
    """
    return completed(argv, within_s, stdin=fed, environment={**os.environ, **engine.environment}).stdout


def remove(containers: Iterable[Contained]) -> list[str]:
    """Remove those that are there and have our label, and what Podman leaves of them; a sentence for each container.

    Raises:
        CsitError: An engine does not remove one; the others were removed.
    """
    every = tuple(containers)
    used = dict.fromkeys(each.engine for each in every)
    return take_all((*(partial(_remove, each) for each in every), *(partial(remove_layers, each) for each in used)))


def _remove(container: Contained) -> list[str]:
    if not (found := call(container.engine, engines.ours(container.engine, container.name)).split()):
        return []
    call(container.engine, engines.remove(container.engine, found))
    return [f"removed {container}"]


def remove_layers(engine: Engine) -> None:
    """Unmount and remove the layers of containers that are gone, in a store of our own.

    Podman keeps the folders of every layer on top of a root folder for good. A removal that is cut short, or that
    finds a mount in use, leaves the mount too, and no later command of Podman's knows it.

    Raises:
        CsitError: Podman does not list its containers, or a layer cannot be unmounted.
    """
    if engine.store is None:
        return
    # Folders first: a container is listed before its layer is made.
    if not (layers := [each for parent in engines.layers_of(engine.store) for each in _folders(parent)]):
        return
    kept = set(call(engine, engines.all_of(engine)).split())
    gone = [layer for layer in layers if layer.name not in kept]
    for place in _mounted_below(gone):
        # Lazily, as a process may still have files open there: the mount goes when it exits.
        call(engine, ["umount", "--lazy", str(place)])
    if left := _mounted_below(gone):
        raise CsitError(f"{left[0]} cannot be unmounted")
    for layer in gone:
        shutil.rmtree(layer, ignore_errors=True)


def _folders(parent: Path) -> list[Path]:
    try:
        return [each for each in parent.iterdir() if each.is_dir()]
    except FileNotFoundError:
        return []


def _mounted_below(folders: Sequence[Path]) -> list[Path]:
    rows = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    wanted = set(folders)
    # The innermost first.
    return [place for place in (Path(row.split()[1]) for row in reversed(rows)) if wanted.intersection(place.parents)]
