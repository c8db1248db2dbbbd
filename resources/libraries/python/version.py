"""Version of the program, which pyproject.toml defines."""

import tomllib
from contextlib import suppress
from functools import cache

from resources.libraries.python.paths import PROJECT


@cache
def program_version() -> str | None:
    """Return the version; None on a node of a lab, which has a part of the project only."""
    with suppress(OSError, tomllib.TOMLDecodeError, KeyError):
        return str(tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    return None
