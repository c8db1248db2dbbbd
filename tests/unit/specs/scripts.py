"""Loads scripts of shipped specifications as modules; their names are no names of modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

SPECS = Path(__file__).parents[2] / "characterization" / "specs"


def load(path: str) -> ModuleType:
    """The script at a path below the specifications, with the modules beside it."""
    file = SPECS / path
    name = f"shipped_{file.parent.name}_{file.stem}".replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module
