"""Sentences of a density test on the console."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from robot.api import SkipExecution

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.studies.density.DensityLibrary import DensityLibrary, result_in_words
from resources.libraries.python.studies.density.planning.matrix import cell_key, journal_name
from tests.unit.csit_utils import builders
from tests.unit.csit_utils.builders import result, soaked


def test_a_soak_is_reported_with_its_verdict() -> None:
    assert result_in_words(soaked()) == "SOAK 200 kpps [unstable]"
    assert "SOAK" not in result_in_words(result(histograms=False))


def test_every_test_of_a_matrix_has_a_name_of_its_own() -> None:
    asked = result(histograms=False).asked
    cell, others = asked.cell, []
    for change in ({"nf_chains": 2}, {"nf_nodes": 2}, {"nf_sizes": ("0.5c",)}, {"vs_dtc": 2}, {"nf_kinds": ("sim",)}):
        others.append(asked.model_copy(update={"cell": type(cell).model_validate({**cell.model_dump(), **change})}))
    assert len({cell_key(each.cell) for each in (asked, *others)}) == 6
    others.append(asked.model_copy(update={"test_type": "MRR"}))
    others.append(asked.model_copy(update={"frame": builders.IMIX}))
    assert len({journal_name(each.cell, each.frame.name, each.test_type) for each in (asked, *others)}) == 8


def test_a_test_is_skipped_where_the_generator_cannot_send_its_flows() -> None:
    def verify_traffic() -> None:
        raise Unsupported("flows: 24, at most 16 are possible")

    library = DensityLibrary()
    library._test = cast(Any, SimpleNamespace(verify_traffic=verify_traffic))
    with pytest.raises(SkipExecution, match="24, at most 16"):
        library.verify_traffic()
