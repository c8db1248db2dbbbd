"""Energy of a density test: what a node without a meter leaves in the record."""

from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.builders import NOWHERE, SIM


def test_a_node_without_a_meter_is_a_warning_and_has_no_power() -> None:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
    asked = MeasurementRequest(test_type=TestType.NDRPDR, cell=cell, frame=frame("64B"), profile=profile("quick"))
    topology = SIM.model_copy(update={"simulation": {**(SIM.simulation or {}), "power": {"platform_w": 0.0}}})
    test = DensityTest(topology, make_testbed(topology), asked, NOWHERE)
    test.idle_energy(1.0)
    test.deploy()
    found = test.energy(1.0)
    test.remove()
    assert list(found.unmetered) == ["DUT1"] and not any(row.nodes for row in found.loads)
    assert found.watts("PDR0") is None and found.joules_per_packet("PDR0") is None
    (line,) = [line for line in test.draft.warnings if line.startswith("energy of ")]
    assert line == f"energy of DUT1: {found.unmetered['DUT1']}"
