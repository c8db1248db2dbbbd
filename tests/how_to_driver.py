"""The driver of docs/how-to/add-a-driver.md, written as the page says into a folder of its own."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers import vswitches

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "add-a-driver.md"
_FOLDER = "resources/libraries/python/drivers/vswitches/"
_FILES = re.compile(r"^`(\S+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


@contextmanager
def added_driver(folder: Path) -> Iterator[Path]:
    """Add the package to those that are searched for vSwitches; yield its topology."""
    files = dict(_FILES.findall(PAGE.read_text(encoding="utf-8")))
    for name, text in files.items():
        target = folder / name.removeprefix(_FOLDER)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    vswitches.__path__.append(str(folder))
    driver_registry.forget()
    try:
        yield folder / next(name for name in files if name.endswith(".yaml"))
    finally:
        vswitches.__path__.remove(str(folder))
        for name in [name for name in sys.modules if name.startswith(f"{vswitches.__name__}.learning_bridge")]:
            del sys.modules[name]
        vars(vswitches).pop("learning_bridge", None)
        driver_registry.forget()
