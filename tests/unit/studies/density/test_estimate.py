"""The time estimate: what it adds up, and that it grows with what it is given."""

import pytest

from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.search.profiles import LADDER, QUICK, REFERENCE, RFC2544, SOAK
from resources.libraries.python.studies.density.planning.extras import Extras, estimate_s


@pytest.mark.parametrize(
    ("test_type", "seconds"),
    [
        (TestType.MRR, 0.7 + 10 * 1.5),
        (TestType.LATENCY, 0.7 + 1.5 * 21 + 4 * 5.5),
        (TestType.NDRPDR, 0.7 + 1.5 * 21 + 0.5 * 21 + 4 * 5.5),
    ],
)
def test_what_a_test_of_the_csit_profile_takes(test_type: TestType, seconds: float) -> None:
    assert estimate_s(LADDER, test_type, trial_overhead_s=0.5, deploy_s=0.0) == pytest.approx(seconds)


@pytest.mark.parametrize("test_type", list(TestType))
def test_overhead_deployment_and_a_longer_profile_cost_time(test_type: TestType) -> None:
    base = estimate_s(QUICK, test_type, trial_overhead_s=0.0, deploy_s=0.0)
    assert estimate_s(QUICK, test_type, trial_overhead_s=0.1, deploy_s=0.0) > base
    assert estimate_s(QUICK, test_type, trial_overhead_s=0.0, deploy_s=3.0) == pytest.approx(base + 3.0)
    assert estimate_s(LADDER, test_type, trial_overhead_s=0.0, deploy_s=0.0) > base


def test_plain_mlrsearch_takes_longer() -> None:
    asked = {"test_type": TestType.NDRPDR, "trial_overhead_s": 0.0, "deploy_s": 0.0}
    own, plain = (estimate_s(profile, **asked) for profile in (LADDER, REFERENCE))  # type: ignore[arg-type]
    assert plain - own == pytest.approx((1.8 + 0.6 - 1.5 - 0.5) * 21)


@pytest.mark.parametrize(("profile", "search_s"), [(RFC2544, (2.1 + 3.1) * 60), (SOAK, 1800)])
def test_long_searches_are_reported_as_long(profile: SearchProfile, search_s: float) -> None:
    seconds = estimate_s(profile, TestType.NDRPDR, trial_overhead_s=0.5, deploy_s=0.0)
    assert seconds == pytest.approx(0.7 + search_s + 4 * 5.5)
    assert estimate_s(profile, TestType.LATENCY, trial_overhead_s=0.5, deploy_s=0.0) > 100


def test_a_search_ends_at_its_time_limit() -> None:
    short = LADDER.model_copy(update={"duration_max_s": 10.0})
    assert estimate_s(short, TestType.NDRPDR, trial_overhead_s=0.0, deploy_s=0.0) == pytest.approx(0.2 + 10 + 20)


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
