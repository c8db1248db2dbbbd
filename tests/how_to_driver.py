"""Drivers of docs/how-to/add-a-driver.md, written as the page says into a folder of their own."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from resources.libraries.python.drivers import functions, vswitches
from resources.libraries.python.paths import LOCAL_TOPOLOGY
from tests.how_to_pages import ADD_A_DRIVER, files_of

DRIVERS = "resources/libraries/python/drivers/"
_ROLES = (vswitches, functions)


@contextmanager
def added_drivers(folder: Path, change: Callable[[str], str] = str) -> Iterator[None]:
    """Add the packages to those that are searched for drivers, with a change of their files."""
    files = {folder / name.removeprefix(DRIVERS): text for name, text in files_of(ADD_A_DRIVER).items()}
    for target, text in files.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(change(text), encoding="utf-8")
    added = {target.parent.name for target in files}
    for role in _ROLES:
        role.__path__.append(str(folder / role.__name__.rpartition(".")[2]))
    try:
        yield
    finally:
        for role in _ROLES:
            role.__path__.pop()
            for package in added:
                for name in [name for name in sys.modules if name.startswith(f"{role.__name__}.{package}")]:
                    del sys.modules[name]
                vars(role).pop(package, None)


def with_bridge(folder: Path, isolated: str = "true") -> Path:
    """Write the testbed `local` with the vSwitch of the page; return its file."""
    chosen = f"vswitch: learning_bridge\n    learning_bridge: {{isolated: {isolated}}}"
    file = folder / "learning-bridge.yaml"
    text = LOCAL_TOPOLOGY.read_text(encoding="utf-8").replace("vswitch: linux_bridge", chosen)
    file.write_text(text, encoding="utf-8")
    return file
