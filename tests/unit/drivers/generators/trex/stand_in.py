"""What the tests of TRex share: a plan, and a client that runs for real against a stand-in for TRex's library."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.generators.trex.client_process import LIBRARY
from resources.libraries.python.drivers.generators.trex.driver import Client
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from tests.builders import cpus, plan_of

B64, IMIX = frame("64B"), frame("IMIX")


def plan(service_type: str = "CSC", rows: int = 1, columns: int = 1) -> Plan:
    """A cell of the local testbed with TRex, on a machine of 64 CPUs."""
    kinds = () if service_type == "VSC" else (NfKind("linux_router"),)
    return plan_of("local-trex", service_type, rows, columns, cpus(64), nf_kinds=kinds)


class StandIn:
    """A folder that looks like TRex's."""

    def __init__(self, folder: Path, **scenario: Any) -> None:
        self.directory = folder
        library = folder.joinpath(*LIBRARY, "trex")
        self._package = package = library / "stl"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        shutil.copy(Path(__file__).with_name("stand_in_api.py"), package / "api.py")
        (package / "scenario.json").write_text(json.dumps(scenario))
        (library / "__init__.py").write_text("")

    def calls(self) -> list[dict[str, Any]]:
        file = self._package / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@contextmanager
def running(folder: Path, python: str = sys.executable, server_problem: str = "") -> Iterator[Client]:
    client = Client(python, folder / "client.log", None, lambda: server_problem)
    client.start()
    try:
        yield client
    finally:
        client.stop()
