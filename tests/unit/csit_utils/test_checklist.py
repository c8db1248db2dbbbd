"""The checklist of RFC 9971: every requirement once, with the deviations of the record and numbers of its trials."""

import pytest

from csit_utils.studies.density.analysis.checklist import CheckedRequirement, checklist
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.search.algorithms.conformance import REQUIREMENTS
from resources.libraries.python.search.profiles import LADDER, REFERENCE
from tests.unit.csit_utils.builders import result
from tests.unit.search.search_fakes import Bench, capped, search


def checked(profile: SearchProfile, capacity_pps: float = 4e6) -> dict[str, CheckedRequirement]:
    found = search(Bench(capped(capacity_pps)), profile=profile)
    record = result(ndr=found.ndr, pdr=found.pdr, search=found.record, trials=tuple(found.trials))
    return {each.key: each for each in checklist(record)}


@pytest.mark.parametrize("profile", [LADDER, REFERENCE], ids=lambda each: each.name)
def test_all_requirements_are_there_and_each_has_evidence_or_a_deviation(profile: SearchProfile) -> None:
    found = checked(profile)
    assert list(found) == list(REQUIREMENTS)
    assert all(each.evidence or each.deviations for each in found.values())


def test_deviations_of_the_record_are_not_met_and_the_others_are() -> None:
    found = checked(REFERENCE)
    assert [key for key, each in found.items() if not each.met] == ["trial", "trial-forwarding-ratio"]


def test_evidence_has_the_numbers_of_the_result() -> None:
    found = checked(REFERENCE)
    assert found["relevant-lower-bound"].evidence.startswith("NDR 3.99 Mpps, upper bound 4.0")
    assert found["goal-width"].evidence.startswith("NDR 0.") and "0.5 % asked" in found["goal-width"].evidence
    assert found["irregular-result"].evidence == "NDR regular; PDR regular"
    assert "exceed ratio 50 %" in found["attributes"].evidence


def test_a_result_without_an_upper_bound_is_irregular() -> None:
    found = checked(REFERENCE, 40e6)
    assert found["irregular-result"].evidence == "NDR irregular; PDR irregular"
    assert "no load was an upper bound" in found["goal-width"].deviations[0]


def test_records_without_a_search_have_no_checklist() -> None:
    assert checklist(result(search=None)) == ()
