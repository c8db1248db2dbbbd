"""Density tests on the simulated testbed."""

from typing import Any

from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.builders import NOWHERE, SIM

ONE_NF = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)


def planted(**simulation: object) -> Topology:
    """The simulated testbed with other parameters."""
    return SIM.model_copy(update={"simulation": {**(SIM.simulation or {}), **simulation}})


def deployed(
    topology: Topology = SIM,
    cell: Cell = ONE_NF,
    searched: str = "ladder",
    test_type: TestType = TestType.NDRPDR,
    **known: Any,
) -> DensityTest:
    """A test that is ready to measure.

    `known`: What else it is given, such as the noise floor.
    """
    asked = MeasurementRequest(test_type=test_type, cell=cell, frame=frame("64B"), profile=profile(searched))
    test = DensityTest(topology, make_testbed(topology), asked, NOWHERE, **known)
    test.deploy()
    return test
