"""Priors of a search: the newest result that agrees in all that matters, and predictions by measured cells."""

import os
from itertools import starmap
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import ServiceType, TestType
from resources.libraries.python.model.request.goal import Algorithm, Prior, SearchRecord
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.recording.writer import write_record
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.studies.density.planning.matrix import journal_name
from resources.libraries.python.studies.density.search_priors import MeasuredCells, PriorBook, newest_run
from tests.builders import cell_of
from tests.unit.csit_utils import builders
from tests.unit.csit_utils.builders import result as record_of

EARLIER = builders.result(ServiceType.CSC, 2, 1)


def asked_for(result: DensityRecord, folder: Path) -> Prior | None:
    return PriorBook(folder).prior(
        result.asked, world=result.world, testbed=result.testbed, drivers=result.drivers, simulation=result.simulation,
        environment=result.environment,
    )  # fmt: skip


def changed(result: DensityRecord, path: str, value: Any) -> DensityRecord:
    """A copy with a value at a dotted path changed."""
    first, _, rest = path.partition(".")
    now = changed(getattr(result, first), rest, value) if rest else value
    return result.model_copy(update={first: now})


def test_both_bounds_of_the_same_cell_are_found_in_the_newest_run_below_a_folder(tmp_path: Path) -> None:
    write_record(EARLIER, tmp_path / "b")
    found = asked_for(EARLIER, tmp_path)
    assert found.lower_pps == {"NDR": EARLIER.ndr.lower_pps, "PDR": EARLIER.pdr.lower_pps}
    assert (found.test_id, found.started_at) == (EARLIER.test_id, EARLIER.started_at)
    newer = EARLIER.model_copy(update={"started_at": "2027-01-01T00:00:00.000+00:00", "test_id": "newer"})
    write_record(newer, tmp_path / "a")
    assert asked_for(EARLIER, tmp_path).test_id == "newer"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("environment.cpu_model", "another"), ("environment.microcode", "0x1"), ("environment.cpus_online", 99),
        ("environment.kernel", "another"), ("environment.command_line", "isolcpus=1"),
        ("environment.virtualization", "another"), ("environment.versions", {"vpp": "1"}),
        ("environment.settings", {"/sys/x": "1"}), ("testbed", "another"), ("drivers", {"vswitch": "another"}),
        ("simulation", {"seed": 2}), ("asked.cell.vs_dtc", 4), ("asked.cell.nf_chains", 4),
        ("asked.frame.name", "another"), ("passed", False), ("ndr", None), ("ndr.complete", False),
        ("ndr.goal.relative_width", 0.02), ("ndr.goal.loss_ratio", 0.001),
    ],
)  # fmt: skip
def test_what_differs_is_no_prior(tmp_path: Path, path: str, value: Any) -> None:
    write_record(changed(EARLIER, path, value), tmp_path)
    found = asked_for(EARLIER, tmp_path)
    assert found is None or "NDR" not in found.lower_pps


def test_what_does_not_decide_a_rate_may_differ(tmp_path: Path) -> None:
    other = EARLIER
    for path in ("environment.hostname", "environment.git_revision", "environment.python"):
        other = changed(other, path, "another")
    write_record(other, tmp_path / "other")
    (tmp_path / "other" / "results" / "broken.json").write_text("{", encoding="utf-8")  # no result: it is passed over
    assert asked_for(EARLIER, tmp_path / "other")
    simulated = builders.result(ServiceType.CSC, 2, 1, simulated=True)
    write_record(changed(simulated, "environment.cpu_model", "another"), tmp_path / "simulated")
    assert asked_for(simulated, tmp_path / "simulated")


def test_the_newest_run_beside_a_run_has_results_and_no_folder_has_none(tmp_path: Path) -> None:
    assert newest_run(tmp_path / "now") is None
    for index, name in enumerate(("old", "new", "now")):
        write_record(EARLIER, tmp_path / name)
        os.utime(tmp_path / name / "results", (index + 1, index + 1))
    (tmp_path / "empty" / "results").mkdir(parents=True)
    assert newest_run(tmp_path / "now") == tmp_path / "new"
    with pytest.raises(ConfigError, match="no such folder of earlier results"):
        PriorBook(tmp_path / "none")


def test_a_test_takes_as_long_as_its_newest_result(tmp_path: Path) -> None:
    older = EARLIER.model_copy(update={"finished_at": EARLIER.started_at})
    newer = {"started_at": "2027-01-01T00:00:00.000+00:00", "finished_at": "2027-01-01T00:00:47.500+00:00"}
    write_record(older, tmp_path / "a")
    write_record(EARLIER.model_copy(update=newer), tmp_path / "b")
    elsewhere = {"started_at": "2028-01-01T00:00:00.000+00:00", "testbed": "another"}
    write_record(EARLIER.model_copy(update=elsewhere), tmp_path / "c")
    name = journal_name(EARLIER.cell, EARLIER.asked.frame.name, EARLIER.asked.test_type)
    assert PriorBook(tmp_path).durations_s(EARLIER.testbed) == {(name, EARLIER.asked.profile.name): 47.5}


CELLS = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 4), (4, 1))


def rate_pps(instances: int, nfs: int) -> float:
    return 1e6 / (0.2 + 0.1 * (nfs - 1)) / (1.0 if instances == 1 else 1.1)


def asked(instances: int, nfs: int, service_type: str = "CSC") -> MeasurementRequest:
    cell = cell_of(service_type, instances, nfs)
    return record_of().asked.model_copy(update={"cell": cell, "test_type": TestType.NDRPDR, "profile": LADDER})


def measured(instances: int, nfs: int) -> DensityRecord:
    record, pps = record_of(), rate_pps(instances, nfs)
    found = {"lower_pps": pps, "upper_pps": pps * 1.005, "complete": True}
    ndr, pdr = (record.ndr.model_copy(update={**found, "goal": goal}) for goal in LADDER.goals)
    search = SearchRecord(
        algorithm=Algorithm.LADDER, trials=30, aborted_trials=9, elapsed_s=40.0, overload_pps=(pps * 0.9,) * 2
    )
    fields = {"passed": True, "asked": asked(instances, nfs), "search": search, "ndr": ndr, "pdr": pdr}
    return record.model_copy(update=fields)


def predicted(request: MeasurementRequest, *records: DensityRecord) -> Any:
    found = MeasuredCells()
    for record in records:
        found.add(record)
    return found.predict(request)


def test_cells_of_the_matrix_predict_both_goals_with_an_interval() -> None:
    found = predicted(asked(2, 4), *starmap(measured, CELLS))
    assert [goal.goal for goal in found.goals] == ["NDR", "PDR"]
    for goal in found.goals:
        assert goal.cells == len(CELLS)
        assert goal.low_pps < goal.pps < goal.high_pps
        assert goal.pps == pytest.approx(rate_pps(2, 4), rel=0.01)
    assert found.prior.cells == len(CELLS)
    assert found.prior.lower_pps == {goal.goal: goal.pps for goal in found.goals}


def test_less_than_three_cells_predict_nothing_but_what_overload_means() -> None:
    found = predicted(asked(1, 2), measured(1, 1))
    assert (found.goals, found.prior) == ((), None)
    hint_pps = rate_pps(1, 1) * 0.9
    assert found.overload.throughput_pps("NDR", hint_pps) == pytest.approx(rate_pps(1, 1))
    assert found.overload.throughput_pps("NDR", 2 * hint_pps) == pytest.approx(2 * rate_pps(1, 1))


def test_cells_of_other_matrices_and_failed_tests_do_not_predict() -> None:
    records = list(starmap(measured, CELLS))
    assert predicted(asked(2, 4, "CSP"), *records).goals == ()
    assert predicted(asked(2, 4), *(changed(each, "passed", False) for each in records)).goals == ()
    found = predicted(asked(2, 4), *(changed(each, "ndr.upper_pps", None) for each in records))
    assert [goal.goal for goal in found.goals] == ["PDR"]
    assert found.prior is None
