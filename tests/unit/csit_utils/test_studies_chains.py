"""The benchmark of chain studies: it finds what is planted, and notices an analysis that does not look."""

import pytest

from csit_utils.bench.studies.chains import PLACES, PlannedFault, study_outcome
from resources.libraries.python.studies.chains.analysis import study
from resources.libraries.python.studies.chains.analysis.prediction import Judged

BLIND = Judged((), {}, (), 0, repeated=False)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_chains_with_a_fault_and_its_cause_are_found_and_no_others(place: str) -> None:
    found = study_outcome(PlannedFault(place, 0))
    assert (found.found, found.missed, found.false, found.cause) == (True, 0, 0, True)


@pytest.mark.slow
def test_a_study_without_a_fault_raises_no_alarm() -> None:
    found = study_outcome(PlannedFault(None, 0))
    assert (found.missed, found.false) == (0, 0)


@pytest.mark.slow
def test_an_analysis_that_does_not_compare_with_predictions_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "judge", lambda _: BLIND)
    found = study_outcome(PlannedFault("function", 0))
    assert found.missed > 0
    assert not found.cause
