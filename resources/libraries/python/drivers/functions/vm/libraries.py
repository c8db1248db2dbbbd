"""Shared libraries of programs, as the system's own loader finds them (ldd)."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from resources.libraries.python.errors import CommandFailed, Unsupported

_FOUND = re.compile(r"^\s+(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_LOST = re.compile(r"^\s+(\S+) => not found$", re.MULTILINE)
_WITHIN_S = 30.0


def libraries(programs: Sequence[Path]) -> tuple[Path, ...]:
    """Libraries that programs load, the loader among them, each where it is looked for.

    Raises:
        Unsupported: There is no ldd, or a library is nowhere.
        CommandFailed: One is no program.
    """
    argv = ("ldd", *map(str, programs))
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    except FileNotFoundError as error:
        raise Unsupported("there is no ldd here, which finds what programs need inside of a guest") from error
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr)
    return parse(done.stdout)


def parse(shown: str) -> tuple[Path, ...]:
    """Read what ldd shows.

    Raises:
        Unsupported: A library is nowhere.
    """
    if lost := _LOST.findall(shown):
        raise Unsupported(f"programs of a guest need libraries that are not here: {', '.join(dict.fromkeys(lost))}")
    return tuple(Path(path) for path in dict.fromkeys(_FOUND.findall(shown)))
