"""Requirements of TRex, on this machine and on nodes before an agent runs there."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.generators.trex.client_process import LIBRARY
from resources.libraries.python.drivers.generators.trex.config import PROGRAM
from resources.libraries.python.drivers.generators.trex.interpreters import interpreter
from resources.libraries.python.drivers.generators.trex.registration import Trex
from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.model.check_finding import CheckFinding, ok, problem
from resources.libraries.python.model.driver import InstalledProgram
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


class TrexFacts(InstalledProgram):
    """An installation of TRex, as `trex_facts` reports it."""

    directory: str
    client: bool
    """It has its own client library."""


def check(place: str, _: TgNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    """Yield findings about an installation on a node."""
    trex = TrexFacts.model_validate(answer)
    if not trex.there:
        text = f"{trex.directory} has no TRex that can be run"
        fix = "unpack a release there (https://trex-tgn.cisco.com/trex/release), or say trex.directory"
        yield problem(f"{place}.trex.directory", "TRex", text, fix)
    elif not trex.client:
        text = f"{trex.directory} has a TRex without its client library (automation/trex_control_plane/interactive)"
        yield problem(f"{place}.trex.directory", "TRex", text, "unpack the whole release")
    else:
        version = trex.version or "of an unknown version"
        yield ok(place, "TRex", f"{version} in {trex.directory}, with its client library")
