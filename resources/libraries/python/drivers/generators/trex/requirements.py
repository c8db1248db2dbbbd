"""What a machine lacks for TRex."""

from collections.abc import Iterator
from pathlib import Path

from resources.libraries.python.drivers.generators.trex.client_process import LIBRARY
from resources.libraries.python.drivers.generators.trex.config import PROGRAM
from resources.libraries.python.drivers.generators.trex.interpreters import interpreter
from resources.libraries.python.drivers.generators.trex.registration import Trex
from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.model.nodes import TgNode

_API = Path("trex", "stl", "api.py")


def missing(settings: Trex) -> Iterator[Problem]:
    """Yield missing requirements, each with a fix."""
    directory = Path(settings.directory)
    fix = "unpack a release from https://trex-tgn.cisco.com/trex/release there, or say where it is by trex.directory"
    for path in (directory / PROGRAM, directory.joinpath(*LIBRARY, _API)):
        if not path.is_file():
            yield Problem(f"TRex is not at trex.directory {directory} (no {path})", fix)
            return
    if interpreter(settings.python) is None:
        yield Problem(
            f"no Python for TRex's client library (trex.python: {settings.python})",
            "install a Python from 3.6 to 3.12, or the package legacy-cgi for a later one, and name it by trex.python",
        )


def missing_on(node: TgNode) -> Iterator[Problem]:
    """What this machine lacks for the generator of a node."""
    return missing(node.settings(Trex))
