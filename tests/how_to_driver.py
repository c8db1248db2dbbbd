"""Drivers of docs/how-to/add-a-driver.md, written as the page says into a folder of their own."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from resources.libraries.python.drivers import functions, vswitches
from tests.how_to_pages import ADD_A_DRIVER, files_of

_DRIVERS = "resources/libraries/python/drivers/"
_ROLES = (vswitches, functions)


@contextmanager
def added_drivers(folder: Path) -> Iterator[Mapping[str, Path]]:
    """Add the packages to those that are searched for drivers; yield the topologies of the page by name."""
    texts = files_of(ADD_A_DRIVER)
    files = {name: folder / name.removeprefix(_DRIVERS) for name in texts}
    for name, target in files.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(texts[name], encoding="utf-8")
    added = [target.parent.name for target in files.values() if target.name == "__init__.py"]
    for role in _ROLES:
        role.__path__.append(str(folder / role.__name__.rpartition(".")[2]))
    try:
        yield {target.stem: target for target in files.values() if target.suffix == ".yaml"}
    finally:
        for role in _ROLES:
            role.__path__.pop()
            for package in added:
                for name in [name for name in sys.modules if name.startswith(f"{role.__name__}.{package}")]:
                    del sys.modules[name]
                vars(role).pop(package, None)
