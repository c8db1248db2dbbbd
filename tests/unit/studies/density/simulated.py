"""Density tests of one cell on the simulated testbed, with what is planted in it."""

from typing import Any

from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM


def measured(test_type: TestType, searched: str = "quick", **planted: Any) -> DensityTest:
    """A cell of one NF, measured with a search profile and removed."""
    topology = SIM.model_copy(update={"simulation": {**(SIM.simulation or {}), **planted}})
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1, nf_sizes=("1c",), vs_dtc=1)
    asked = MeasurementRequest(test_type=test_type, cell=cell, frame=frame("64B"), profile=profile(searched))
    test = DensityTest(topology, SimulatedTestbed(topology), asked, fingerprint())
    test.deploy()
    try:
        if test_type is TestType.MRR:
            test.mrr()
        else:
            test.search(["NDR", "PDR"])
    finally:
        test.remove()
    return test
