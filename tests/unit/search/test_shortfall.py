"""A generator that falls short of a load ends no search, and makes no bound of the system under test."""

import re
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.search.profiles import LADDER, QUICK, REFERENCE, RFC2544
from resources.libraries.python.search.session import charged, judged
from tests.builders import finished
from tests.unit.search.search_fakes import (
    FRAME,
    LINE_PPS,
    Bench,
    Forward,
    capped,
    found,
    generator_bound,
    search,
    trial_result,
)

ALL = pytest.mark.parametrize("chosen", [LADDER, REFERENCE, RFC2544], ids=lambda each: each.name)


class Short(Bench):
    """A generator that leaves a share of some trials unsent, and says so or not."""

    def __init__(self, forward: Forward, share: Callable[[float], float], *, honest: bool = True) -> None:
        super().__init__(forward)
        self._share = share
        self._honest = honest

    def measure(self, trial: Trial) -> TrialResult:
        share = self._share(trial.load_pps)
        result = super().measure(trial.model_copy(update={"load_pps": trial.load_pps * (1 - share)}))
        return result.model_copy(update={"trial": trial, "generator_limited": share > 0 and self._honest})


def reach(reach_pps: float) -> Callable[[float], float]:
    """Offers no more than this."""
    return lambda load_pps: max(0.0, 1 - reach_pps / load_pps)


def sporadic(seed: int, chance: float, share: float = 0.015) -> Callable[[float], float]:
    """Falls short now and then, at any load."""
    rng = Random(seed)
    return lambda _: share if rng.random() < chance else 0.0


@ALL
@pytest.mark.parametrize("honest", [True, False])
def test_what_was_not_sent_is_not_lost(chosen: SearchProfile, honest: bool) -> None:
    """A system faster than the generator: bounded by the generator, never by loss, and proven up to what it offered."""
    outcome = search(Short(capped(10e6), reach(5e6), honest=honest), profile=chosen)
    assert generator_bound(outcome)
    for result in outcome.goals:
        assert result.upper_pps is None
        assert result.complete
        assert result.lower_pps is not None
        # The first load above the reach is charged with up to a step; a silent shortfall is seen from 1 % on.
        above = max(result.goal.loss_ratio, 0.0 if honest else 0.01)
        assert 5e6 * (1 - 1.1 * result.goal.relative_width) <= result.lower_pps <= 5e6 / (1 - above)
        (line,) = [each.text for each in outcome.findings if each.numbers == (result.goal.name,)]
        assert "the generator fell short" in line
        shown = re.search(r" at (.+), also .*offered (.+) in the best", line)
        assert shown and shown[1] != shown[2] in ("5.00 Mpps", "5,000,000 pps"), line


@ALL
@pytest.mark.parametrize("chance", [0.05, 0.2])
def test_a_generator_that_falls_short_now_and_then_changes_no_bound(chosen: SearchProfile, chance: float) -> None:
    """CSIT's charge alone would fail a load for every trial that is short; repeated trials do not."""
    known = search(Bench(capped(4e6)), profile=chosen)
    for seed in range(3):
        outcome = search(Short(capped(4e6), sporadic(seed, chance)), profile=chosen)
        assert not generator_bound(outcome)
        # After a load was charged the library may narrow from another side of its grid.
        for result, other in zip(outcome.goals, known.goals, strict=True):
            assert result.complete
            lower, upper = found(result)
            assert lower <= 4e6 / (1 - result.goal.loss_ratio) <= upper
            assert lower == pytest.approx(other.lower_pps, rel=result.goal.relative_width)


@given(
    seed=st.integers(0, 2**32),
    capacity_pps=st.floats(0.01 * LINE_PPS, 1.2 * LINE_PPS),
    reach_pps=st.floats(0.005 * LINE_PPS, 1.2 * LINE_PPS),
    chance=st.floats(0.0, 0.9),
    share=st.floats(0.0005, 0.02),
    chosen=st.sampled_from([QUICK, LADDER, RFC2544]),
)
def test_whatever_falls_short_no_bound_is_wrong(  # noqa: PLR0917 - drawn by name
    seed: int, capacity_pps: float, reach_pps: float, chance: float, share: float, chosen: SearchProfile
) -> None:
    """A deterministic system: what is proven holds, and an upper bound is the system's own."""
    limit, now_and_then = reach(reach_pps), sporadic(seed, chance, share)
    outcome = search(
        Short(capped(capacity_pps), lambda load_pps: max(limit(load_pps), now_and_then(load_pps))), profile=chosen
    )
    for result in outcome.goals:
        truth_pps = capacity_pps / (1 - result.goal.loss_ratio)
        if result.lower_pps is not None:
            assert result.lower_pps <= truth_pps * (1 + 1e-5)
        if result.upper_pps is not None:
            assert result.upper_pps >= truth_pps * (1 - 1e-5)
        if result.complete and result.upper_pps is None:
            assert generator_bound(outcome)
            assert result.lower_pps is not None
        else:
            assert (
                result.complete
                or generator_bound(outcome)
                or any("time limit" in each.text for each in outcome.findings)
            )


@ALL
def test_a_generator_that_is_always_short_proves_nothing(chosen: SearchProfile) -> None:
    """No load was ever offered: no figure, and not one of the system under test."""
    outcome = search(Short(capped(4e6), lambda _: 0.015), profile=chosen)
    assert generator_bound(outcome)
    for result in outcome.goals:
        assert (result.lower_pps, result.upper_pps, result.lowest_tried_pps) == (None, None, None)
        assert not result.complete


def test_a_charged_trial_says_what_was_not_sent() -> None:
    outcome = search(Short(capped(10e6), reach(5e6)))
    short = [trial for trial in outcome.trials if trial.unsent is not None]
    assert short
    for trial in short:
        assert trial.unsent == round(trial.trial.load_pps) - trial.sent
        assert f"{trial.unsent:,} packets that the generator did not send" in (trial.note or "")
        assert trial.charged_loss_ratio == pytest.approx(1 - 5e6 / trial.trial.load_pps, abs=1e-6)
        assert trial.loss_ratio == 0
    repeated = [trial for trial in outcome.trials if trial.generator_limited and trial.unsent is None]
    loads = [trial.trial.load_pps for trial in repeated]
    assert loads == sorted(set(loads), reverse=True), "only where no load as low was charged before"


def test_a_percent_less_than_the_load_is_still_the_load_and_a_stretched_trial_is_charged_by_its_rate() -> None:
    """One packet of each flow may be lost to rounding; all packets are sent, in a fiftieth more time."""
    for sent, limited in ((9_950, False), (9_900, False), (9_890, True)):
        assert judged(trial_result(10_000, sent=sent)).generator_limited is limited
    trial = Trial(load_pps=1000, duration_s=1.0, frame=FRAME)
    result = judged(finished(trial, (1000, 1000), offered_duration_s=1.02, total_duration_s=1.02))
    assert result.generator_limited
    assert charged(result).unsent == 20


def test_a_generator_that_sends_nothing_is_given_up_at_once() -> None:
    bench = Bench(lambda *_: (0, 0))
    outcome = search(bench)
    assert generator_bound(outcome)
    assert len(bench.asked) == 2
    assert not outcome.record.prior_refuted
    assert any("offered nothing" in each.text for each in outcome.findings)
