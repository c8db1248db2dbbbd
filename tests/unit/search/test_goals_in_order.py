"""Goals of one search against each other: NDR is not above PDR, whatever the system and the algorithm."""

from itertools import product

import pytest

from resources.libraries.python.drivers.sim.models import make_model
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.result import VerdictKind
from resources.libraries.python.search.findings.verdict import of_bounds
from resources.libraries.python.search.profiles import LADDER, QUICK, REFERENCE, RFC2544
from resources.libraries.python.search.throughput import SearchOutcome
from tests.unit.search.search_fakes import LINE_PPS, Bench, of_model, search

UNSTEADY = (ModelName.NOISY, ModelName.TWO_BAND, ModelName.STALL)
SHORT = RFC2544.model_copy(update={"duration_max_s": 700.0})
"""Ends in the middle of many searches."""


def outcome_of(profile: SearchProfile, name: ModelName, seed: int) -> SearchOutcome:
    settings = Simulation(model=name, noise=0.03, stall_hz=0.02, low_band=0.98, low_band_share=0.2)
    return search(Bench(of_model(make_model(settings, (0.1 + seed % 7 / 10) * LINE_PPS), seed)), profile=profile)


def check_order(profile: SearchProfile, name: ModelName, seed: int) -> None:
    outcome = outcome_of(profile, name, seed)
    ndr, pdr = outcome.ndr, outcome.pdr
    assert ndr is not None
    assert pdr is not None
    for result in outcome.goals:
        assert result.upper_pps is None or (result.lower_pps or 0.0) < result.upper_pps
    said = [each for each in of_bounds(outcome) if "which permits more loss" in each.text]
    assert (ndr.lower_pps is not None and (pdr.lower_pps or 0.0) < ndr.lower_pps) == bool(said)
    if profile is RFC2544:
        assert not said
        assert pdr.upper_pps is None or (ndr.upper_pps or LINE_PPS) <= pdr.upper_pps
        assert (pdr.throughput_pps or 0.0) >= (ndr.throughput_pps or 0.0)


@pytest.mark.parametrize(("name", "seed"), list(product(UNSTEADY, (1, 2))))
def test_pdr_is_not_below_ndr(name: ModelName, seed: int) -> None:
    for profile in (RFC2544, SHORT, QUICK):
        check_order(profile, name, seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "name"),
    list(product((RFC2544, SHORT, QUICK, LADDER, REFERENCE), ModelName)),
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_pdr_is_not_below_ndr_of_200_systems(profile: SearchProfile, name: ModelName) -> None:
    for seed in range(34):
        check_order(profile, name, seed)


def test_a_trial_that_contradicts_an_upper_bound_is_reported() -> None:
    """A system in a low band for its first seconds: NDR is searched there, PDR above it."""
    spent_s = 0.0

    def forward(load_pps: float, duration_s: float) -> tuple[int, int]:
        nonlocal spent_s
        spent_s += duration_s
        sent = round(load_pps * duration_s)
        return sent, min(sent, round((6e6 if spent_s < 150 else 8e6) * duration_s))

    outcome = search(Bench(forward), profile=RFC2544)
    (found,) = of_bounds(outcome)
    assert (found.kind, found.numbers) == (VerdictKind.UNSTABLE, ("NDR",))
    assert found.text.startswith("NDR: a trial of 10 s at 7.")
    assert found.text.endswith("failed at 6.00 Mpps: the system was unsteady, and another search may find another rate")
