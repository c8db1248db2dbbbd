"""The functions of scipy.special, which is imported when the first of them is called.

The import takes 0.3 s of CPU time, and most starts of a program call none of them. Import this module, not its names.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:  # noqa: ANN401 - scipy has no types
    return globals().setdefault(name, getattr(import_module("scipy.special"), name))  # the next call finds it here
