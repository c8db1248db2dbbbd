"""A cell of the service type CSC, as benchmarks ask for it, and its drivers on this machine."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, Dimensions, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.paths import LOCAL_TOPOLOGY
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.kinds.machine import TestbedMachine


class LocalCell(NamedTuple):
    """A cell that can be deployed."""

    plan: Plan
    lock: MachineLock
    """Of the machine; held."""
    parts: Callable[[], Parts]
    """Makes the drivers of a deployment."""


def request(side: int = 1, profile_text: str = "quick") -> MeasurementRequest:
    """Return the request for a throughput test of so many instances with as many NFs each."""
    cell = Cell(service_type=ServiceType.CSC, **Dimensions(side, side).columns)
    return MeasurementRequest(test_type=TestType.NDRPDR, cell=cell, frame=frame("64B"), profile=profile(profile_text))


@contextmanager
def local_cell(side: int = 1) -> Iterator[LocalCell]:
    """Take this machine for a cell.

    Raises:
        Unsupported: The machine lacks something.
    """
    topology, asked = load_topology(LOCAL_TOPOLOGY), request(side)
    here = TestbedMachine(topology)
    plan = make_plan(topology, asked.cell, here.layout)
    with closing(here):
        here.open()
        yield LocalCell(plan, here._lock, lambda: here.share(plan, asked))
