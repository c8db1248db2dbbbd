"""The time estimate: what it adds up, and that it grows with what it is given."""

import pytest

from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.search.profiles import LADDER, QUICK, REFERENCE, RFC2544, SOAK
from resources.libraries.python.studies.density.planning.extras import Extras, estimate_s


@pytest.mark.parametrize(
    ("profile", "test_type", "seconds"),
    [
        (LADDER, TestType.MRR, 0.7 + 10 * 1.5),
        (LADDER, TestType.LATENCY, 0.7 + 1.5 * 21 + 4 * 5.5),
        (LADDER, TestType.NDRPDR, 0.7 + 1.5 * 21 + 0.5 * 21 + 4 * 5.5),
        (REFERENCE, TestType.NDRPDR, 0.7 + (1.8 + 0.6) * 21 + 4 * 5.5),  # plain MLRsearch
        (RFC2544, TestType.NDRPDR, 0.7 + (2.1 + 3.1) * 60 + 4 * 5.5),
        (SOAK, TestType.NDRPDR, 0.7 + 1800 + 4 * 5.5),
        (LADDER.model_copy(update={"duration_max_s": 10.0}), TestType.NDRPDR, 0.7 + 10 + 4 * 5.5),
    ],
)
def test_what_a_test_takes(profile: SearchProfile, test_type: TestType, seconds: float) -> None:
    assert estimate_s(profile, test_type, trial_overhead_s=0.5, deploy_s=0.0) == pytest.approx(seconds)
    assert estimate_s(profile, test_type, trial_overhead_s=0.5, deploy_s=3.0) == pytest.approx(seconds + 3.0)


@pytest.mark.parametrize("test_type", list(TestType))
def test_overhead_and_a_longer_profile_cost_time(test_type: TestType) -> None:
    base = estimate_s(QUICK, test_type, trial_overhead_s=0.0, deploy_s=0.0)
    assert estimate_s(QUICK, test_type, trial_overhead_s=0.1, deploy_s=0.0) > base
    assert estimate_s(LADDER, test_type, trial_overhead_s=0.0, deploy_s=0.0) > base


@pytest.mark.parametrize(
    ("extras", "seconds"),
    [
        (Extras(), 0.0),
        (Extras(loss_trial_s=1.0), 3 * 1.5),
        (Extras(energy_trial_s=10.0), 5 * 10.5),
        (Extras(stacks_trial_s=10.0), 10.0 + 0.5 + 1.5),
        (Extras(bursts=50), 50 * 14 * 0.5),
    ],
)
def test_measurements_that_variables_ask_for_cost_time(extras: Extras, seconds: float) -> None:
    def took_s(test_type: TestType, more: Extras) -> float:
        return estimate_s(QUICK, test_type, trial_overhead_s=0.5, deploy_s=0.0, extras=more)

    assert took_s(TestType.NDRPDR, extras) - took_s(TestType.NDRPDR, Extras()) == pytest.approx(seconds)
    for other in (TestType.MRR, TestType.LATENCY):
        assert took_s(other, extras) == took_s(other, Extras())
