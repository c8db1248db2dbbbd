"""Which machines of a testbed switch SMT off, and when: before all else, those with a DUT."""

import pytest

from resources.libraries.python.drivers.host.cpu.smt import SmtOff
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.kinds.machine import TestbedMachine
from tests.unit.planning.labs import lab

CELL = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)


def share(topology: Topology, node: str | None, smt: bool | None) -> Parts:
    asked = MeasurementRequest(test_type=TestType.MRR, cell=CELL, frame=frame("64B"), profile=QUICK)
    return TestbedMachine(topology, node).share(make_plan(topology, CELL, {}, smt=smt), asked)


def switches(topology: Topology, node: str | None, smt: bool | None = False) -> list[int]:
    """Places among the cables, in the order in which they are started, of what switches SMT off."""
    parts = share(topology, node, smt).cables
    return [place for place, part in enumerate(parts) if isinstance(part, SmtOff)]


@pytest.fixture
def testbed() -> Topology:
    return lab(1, vswitch="linux_bridge", containers="linux_router", generator="ring", smt=True, cores=16)


def test_the_dut_switches_it_off_before_its_links_are_made(testbed: Topology) -> None:
    assert switches(testbed, "DUT1") == [0]


def test_the_generator_keeps_it(testbed: Topology) -> None:
    assert switches(testbed, "TG") == []


def test_other_cells_leave_it_alone(testbed: Topology) -> None:
    assert switches(testbed, "DUT1", smt=None) == switches(testbed, "DUT1", smt=True) == []
