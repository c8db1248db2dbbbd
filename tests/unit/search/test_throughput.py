"""The search finds the known truth, and says what it knows where it cannot."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.models import make_model
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.result import VerdictKind
from resources.libraries.python.quantities import rate
from resources.libraries.python.search.findings.verdict import of_bounds
from resources.libraries.python.search.profiles import LADDER, QUICK, REFERENCE, RFC2544
from resources.libraries.python.search.throughput import MIN_LOAD_PPS, Progress
from tests.unit.examples import share
from tests.unit.search.search_fakes import LINE_PPS, Bench, capped, found, generator_bound, of_model, search

ALL = pytest.mark.parametrize("profile", [LADDER, REFERENCE, RFC2544], ids=lambda each: each.name)
STEADY = (ModelName.SHARP, ModelName.KNEE, ModelName.SAG)


@ALL
@pytest.mark.parametrize("name", ModelName)
@pytest.mark.parametrize("share", [0.06, 0.37, 0.9])
def test_the_truth_of_each_model_is_found(profile: SearchProfile, name: ModelName, share: float) -> None:
    if profile is RFC2544 and name not in STEADY:
        return  # one trial decides, so an unsteady system may have any result
    model = make_model(Simulation(model=name), share * LINE_PPS)
    outcome = search(Bench(of_model(model)), profile=profile)
    # Random systems: a load is decided wrongly now and then, by chance of 14 trials.
    slack = {ModelName.NOISY: 0.025, ModelName.TWO_BAND: 0.1}.get(name, 0.0)
    for result in outcome.goals:
        lower, upper = found(result)
        assert result.complete
        assert result.throughput_pps is not None
        assert lower >= upper * (1 - result.goal.relative_width) * (1 - 1e-9)
        assert lower * (1 - slack) <= model.truth_pps(result.goal.loss_ratio) * (1 + 1e-6)
        assert upper * (1 + slack) >= model.truth_pps(result.goal.loss_ratio) * (1 - 1e-6)
        assert lower * (1 - result.goal.loss_ratio) * (1 - 1e-9) <= result.throughput_pps <= lower
    assert outcome.ndr is not None
    assert outcome.pdr is not None
    assert found(outcome.ndr)[0] <= found(outcome.pdr)[0]
    assert not generator_bound(outcome)
    assert outcome.findings == ()


def test_the_reference_takes_the_trials_that_mlrsearch_is_known_to_take() -> None:
    """21 s of 1 s trials with 0.5 s overhead are 14; a sharp system takes 25 trials, 37.5 s."""
    outcome = search(Bench(capped(0.4 * LINE_PPS)), profile=REFERENCE)
    assert len(outcome.trials) == 25
    assert outcome.elapsed_s == pytest.approx(37.5)
    assert all(result.trial.abort_loss_ratio is None for result in outcome.trials)
    assert (outcome.record.algorithm, outcome.record.prior, outcome.record.aborted_trials) == ("mlrsearch", None, 0)


@ALL
def test_a_system_that_always_loses_is_below_range(profile: SearchProfile) -> None:
    outcome = search(Bench(capped(0.0)), profile=profile)
    for result in outcome.goals:
        assert (result.lower_pps, result.throughput_pps, result.complete) == (None, None, True)
        assert result.lowest_tried_pps == pytest.approx(MIN_LOAD_PPS) == pytest.approx(2 * 9001)
    assert not generator_bound(outcome)
    slow = search(Bench(capped(0.0)), max_load_pps=75e3, profile=profile)
    assert [result.lowest_tried_pps for result in slow.goals] == pytest.approx([750.0] * 2), (
        "a hundredth of the highest"
    )


def test_one_lost_packet_per_trial_ends_ndr_and_not_pdr() -> None:
    def forward(load_pps: float, duration_s: float) -> tuple[int, int]:
        sent, received = capped(1e6)(load_pps, duration_s)
        return sent, min(received, sent - 1)

    outcome = search(Bench(forward))
    assert outcome.ndr is not None and outcome.ndr.lower_pps is None
    lower, upper = found(outcome.pdr)
    assert lower <= 1e6 / 0.995 <= upper


@ALL
def test_a_system_faster_than_the_line_is_generator_bound(profile: SearchProfile) -> None:
    outcome = search(Bench(capped(40e6)), profile=profile)
    assert generator_bound(outcome)
    for result in outcome.goals:
        assert (result.lower_pps, result.upper_pps, result.complete) == (LINE_PPS, None, True)
    assert any(each.numbers == ("NDR",) and rate(LINE_PPS) in each.text for each in outcome.findings)
    outcome = search(Bench(capped(0.998 * LINE_PPS)))
    assert generator_bound(outcome) and found(outcome.ndr)[0] < LINE_PPS, "PDR alone can be bound by the line"
    assert outcome.pdr is not None and outcome.pdr.upper_pps is None
    assert not any("NDR" in each.numbers for each in outcome.findings)


def test_progress_narrows_and_ends() -> None:
    seen: list[Progress] = []
    outcome = search(Bench(capped(4e6)), on_progress=seen.append)
    assert [each.trials for each in seen] == list(range(1, len(outcome.trials) + 1))
    assert seen[-1].elapsed_s == outcome.elapsed_s
    assert seen[-1].remaining_s == 0.0
    assert max(each.remaining_s for each in seen) <= LADDER.duration_max_s
    for result in outcome.goals:
        assert seen[-1].bounds[result.goal.name] == (result.lower_pps, result.upper_pps)


LAX = RFC2544.goals[0].model_copy(update={"exceed_ratio": 0.5})


@pytest.mark.parametrize(
    ("highest_pps", "profile", "why"),
    [
        (0.0, LADDER, "highest load"),
        (-1.0, LADDER, "highest load"),
        (1e6, LADDER.model_copy(update={"goals": ()}), "no goals"),
        (1e6, RFC2544.model_copy(update={"goals": (LAX,)}), "NDR: in a binary search one trial decides"),
    ],
)
def test_what_cannot_be_searched_is_refused(highest_pps: float, profile: SearchProfile, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        search(Bench(capped(1e6)), highest_pps, profile)


@settings(max_examples=share(40))
@given(
    seed=st.integers(0, 2**32),
    max_load_pps=st.floats(100.0, 1e8),
    share=st.floats(1e-4, 1.5),
    noise=st.floats(0.0, 0.3),
    lossy=st.floats(0.0, 1.0),
)
def test_whatever_the_system_does_the_outcome_is_consistent(
    seed: int, max_load_pps: float, share: float, noise: float, lossy: float
) -> None:
    rng = Random(seed)

    def forward(load_pps: float, duration_s: float) -> tuple[int, int]:
        sent, received = capped(max_load_pps * share * max(0.0, rng.gauss(1.0, noise)))(load_pps, duration_s)
        return sent, max(0, received - (rng.randrange(3) if rng.random() < lossy else 0))

    bench = Bench(forward, overhead_s=0.1)
    outcome = search(bench, max_load_pps, QUICK)
    assert outcome.elapsed_s <= QUICK.duration_max_s
    assert len(outcome.trials) == len(bench.asked)
    for result in outcome.goals:
        for bound in (result.lower_pps, result.upper_pps, result.lowest_tried_pps):
            assert bound is None or 0 < bound <= max_load_pps * (1 + 1e-9)
        if result.lower_pps is not None and result.upper_pps is not None:
            assert result.lower_pps < result.upper_pps
            narrow = result.lower_pps >= result.upper_pps * (1 - result.goal.relative_width)
            assert narrow or not result.complete
        assert (result.lower_pps is None) == (result.throughput_pps is None)


@pytest.mark.parametrize(
    ("chosen", "limit_s"),
    [*((LADDER, limit_s) for limit_s in (1.0, 10.0, 20.0, 30.0)), (REFERENCE, 30.0), (RFC2544, 150.0)],
)
def test_a_search_that_is_cut_short_keeps_what_it_knows(chosen: SearchProfile, limit_s: float) -> None:
    profile = chosen.model_copy(update={"duration_max_s": limit_s})
    outcome = search(Bench(capped(4e6)), profile=profile)
    assert outcome.elapsed_s <= max(limit_s, 1.5)
    assert any("time limit" in each.text for each in outcome.findings)
    assert not generator_bound(outcome)
    for result in outcome.goals:
        assert result.upper_pps is not None and result.upper_pps >= 4e6
        if result.lower_pps is None:
            assert result.lowest_tried_pps is not None
        else:
            assert result.lower_pps <= 4e6 / (1 - result.goal.loss_ratio)
            assert result.throughput_pps is not None
    assert not all(result.complete for result in outcome.goals)
    profile = LADDER.model_copy(update={"duration_max_s": search(Bench(capped(4e6))).elapsed_s - 1.0})
    outcome = search(Bench(capped(4e6)), profile=profile)
    assert sorted(result.complete for result in outcome.goals) == [False, True], "one was proven before"


SHORT = RFC2544.model_copy(update={"duration_max_s": 700.0})
"""Ends in the middle of many searches."""


@pytest.mark.parametrize("profile", [RFC2544, SHORT, QUICK], ids=["rfc2544", "cut short", "quick"])
@pytest.mark.parametrize("name", [ModelName.NOISY, ModelName.TWO_BAND, ModelName.STALL])
@pytest.mark.parametrize("seed", [1, 2])
def test_pdr_is_not_below_ndr(profile: SearchProfile, name: ModelName, seed: int) -> None:
    settings = Simulation(model=name, noise=0.03, stall_hz=0.02, low_band=0.98, low_band_share=0.2)
    model = make_model(settings, (0.1 + seed % 7 / 10) * LINE_PPS)
    outcome = search(Bench(of_model(model, seed)), profile=profile)
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


CAPACITY = 0.4 * LINE_PPS


def test_a_lower_bound_has_passed_a_trial_of_full_length() -> None:
    """A stall every 5 s: of trials of 10 s one in eight passes, of those of 60 s none. RFC 2544 reports nothing."""
    model = make_model(Simulation(model=ModelName.STALL, stall_hz=0.2), CAPACITY)
    outcome = search(Bench(of_model(model, seed=3)), profile=RFC2544)
    ndr = outcome.ndr
    assert ndr is not None and ndr.lower_pps is None
    passed = {each.trial.duration_s for each in outcome.trials if each.loss_ratio == 0}
    assert passed == {10.0}
    assert found(outcome.pdr)[0] > 0.99 * CAPACITY
    outcome = search(Bench(capped(CAPACITY)), profile=RFC2544)
    for result in outcome.goals:
        full = [each for each in outcome.trials if each.trial.load_pps == result.lower_pps and not each.aborted]
        assert max(each.trial.duration_s for each in full) == 60.0
    assert max(each.trial.duration_s for each in outcome.trials if each.aborted) == 10.0
    assert outcome.elapsed_s < 400
