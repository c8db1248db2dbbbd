"""Density tests of one cell on the simulated testbed, with what is planted in it."""

from typing import Any

from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.studies.density.run import DensityTest
from tests.unit.search.density_tests import deployed, planted


def measured(test_type: TestType = TestType.NDRPDR, searched: str = "quick", **simulation: Any) -> DensityTest:
    """A cell of one NF, measured with a search profile and removed."""
    test = deployed(planted(**simulation), searched=searched, test_type=test_type)
    try:
        if test_type is TestType.MRR:
            test.mrr()
        else:
            test.search(["NDR", "PDR"])
    finally:
        test.remove()
    return test
