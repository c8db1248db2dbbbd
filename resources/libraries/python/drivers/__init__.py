"""Drivers, a package per product; product words stay inside."""

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec


def _defer(package: str) -> None:
    """Execute the `__init__` of a package when something first asks for a name that is none of its modules."""
    if package in sys.modules or (spec := find_spec(package)) is None or (loader := spec.loader) is None:
        return
    module = module_from_spec(spec)

    def executed(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        vars(module).pop("__getattr__", None)
        loader.exec_module(module)
        return getattr(module, name)

    vars(module)["__getattr__"] = executed
    sys.modules[package] = module


_defer("pyroute2")  # it imports all of its protocols, for 0.1 s of CPU time in each start; drivers use message classes
