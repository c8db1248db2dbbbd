"""What the tests of TRex share: a plan, and a client that runs for real against a stand-in for TRex's library."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.generators.trex.client import Client
from resources.libraries.python.drivers.generators.trex.client_process import LIBRARY
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of, shipped

B64 = Frame(name="64B", parts=(FramePart(frame_bytes=64),))
IMIX = Frame(
    name="IMIX", parts=tuple(FramePart(frame_bytes=size, weight=n) for size, n in ((64, 7), (570, 4), (1518, 1)))
)


def plan(service_type: str = "CSC", rows: int = 1, columns: int = 1, *, cpus: int = 64) -> Plan:
    """A cell of the local testbed with TRex, on a machine of so many CPUs."""
    cell = cell_of(service_type, rows, columns, nf_kinds=() if service_type == "VSC" else (NfKind("linux_router"),))
    topology = shipped("local-trex")
    return make_plan(topology, cell, layout((cpu, cpu, 0, 0) for cpu in range(cpus)))


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
        """What the library was asked."""
        file = self._package / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@contextmanager
def running(folder: Path, python: str = sys.executable, server_problem: str = "") -> Iterator[Client]:
    """A client's process."""
    client = Client(python, folder / "client.log", None, lambda: server_problem)
    client.start()
    try:
        yield client
    finally:
        client.stop()
