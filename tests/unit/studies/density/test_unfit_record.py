"""A record says whether planning refused the cell."""

import pytest

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.builders import NOWHERE, SIM


def test_only_a_cell_that_planning_refuses_is_unfit() -> None:
    tests = []
    for rows in (1, 40):
        cell = Cell(service_type=ServiceType.CSC, nf_chains=rows, nf_nodes=1)
        asked = MeasurementRequest(cell=cell, frame=frame("64B"), test_type=TestType.MRR, profile=LADDER)
        tests.append(DensityTest(SIM, make_testbed(SIM), asked, NOWHERE))
    small, large = tests
    small.plan()
    with pytest.raises(PlanError):
        large.plan()
    assert (small.draft.unfit, large.draft.unfit) == (False, True)
