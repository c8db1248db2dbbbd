"""Predictions of a cell by the cells that a run has measured before it."""

from typing import Any

import pytest

from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.goal import Algorithm, SearchRecord
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.studies.density.model.record import DensityRecord
from resources.libraries.python.studies.density.search_priors import MeasuredCells
from tests.unit.csit_utils.builders import result as record_of

CELLS = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 4), (4, 1))


def rate_pps(instances: int, nfs: int) -> float:
    return 1e6 / (0.2 + 0.1 * (nfs - 1)) / (1.0 if instances == 1 else 1.1)


def asked(instances: int, nfs: int, service_type: ServiceType = ServiceType.CSC) -> MeasurementRequest:
    cell = Cell(service_type=service_type, nf_chains=instances, nf_nodes=nfs)
    return record_of().asked.model_copy(update={"cell": cell, "test_type": TestType.NDRPDR, "profile": LADDER})


def measured(instances: int, nfs: int, **changes: Any) -> DensityRecord:
    record = record_of()
    pps = rate_pps(instances, nfs)
    goal = {"lower_pps": pps, "upper_pps": pps * 1.005, "complete": True}
    search = SearchRecord(
        algorithm=Algorithm.LADDER, trials=30, aborted_trials=9, elapsed_s=40.0, overload_pps=(pps * 0.9, pps * 0.9)
    )
    fields = {
        "passed": True,
        "asked": asked(instances, nfs),
        "search": search,
        "ndr": record.ndr.model_copy(update={**goal, "goal": LADDER.goals[0]}),
        "pdr": record.pdr.model_copy(update={**goal, "goal": LADDER.goals[1]}),
    }
    return record.model_copy(update=fields | changes)


def cells(*records: DensityRecord) -> MeasuredCells:
    found = MeasuredCells()
    for record in records:
        found.add(record)
    return found


def test_cells_of_the_matrix_predict_both_goals_with_an_interval() -> None:
    found = cells(*(measured(*cell) for cell in CELLS)).predict(asked(2, 4))
    assert [goal.goal for goal in found.goals] == ["NDR", "PDR"]
    for goal in found.goals:
        assert goal.cells == len(CELLS)
        assert goal.low_pps < goal.pps < goal.high_pps
        assert goal.pps == pytest.approx(rate_pps(2, 4), rel=0.01)
    assert found.prior.cells == len(CELLS)
    assert found.prior.lower_pps == {goal.goal: goal.pps for goal in found.goals}


def test_less_than_three_cells_predict_nothing_but_what_overload_means() -> None:
    found = cells(measured(1, 1)).predict(asked(1, 2))
    assert (found.goals, found.prior) == ((), None)
    hint_pps = rate_pps(1, 1) * 0.9
    assert found.overload.throughput_pps("NDR", hint_pps) == pytest.approx(rate_pps(1, 1))
    assert found.overload.throughput_pps("NDR", 2 * hint_pps) == pytest.approx(2 * rate_pps(1, 1))


def test_cells_of_other_matrices_and_failed_tests_do_not_predict() -> None:
    records = [measured(*cell) for cell in CELLS]
    assert cells(*records).predict(asked(2, 4, ServiceType.CSP)).goals == ()
    assert cells(*(measured(*cell, passed=False) for cell in CELLS)).predict(asked(2, 4)).goals == ()
    short = [record.ndr.model_copy(update={"upper_pps": None}) for record in records if record.ndr]
    bound = [record.model_copy(update={"ndr": ndr}) for record, ndr in zip(records, short, strict=True)]
    found = cells(*bound).predict(asked(2, 4))
    assert [goal.goal for goal in found.goals] == ["PDR"]
    assert found.prior is None
