"""PLRsearch finds critical loads that are known, with a deviation that covers its error where its functions fit."""

from math import erf, exp, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from resources.libraries.python.drivers.sim.models import make_model
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation
from resources.libraries.python.search.algorithms import plrsearch
from resources.libraries.python.search.algorithms.plrsearch import FUNCTIONS, CriticalLoad, Observation, bell, stretch
from resources.libraries.python.search.profiles import SOAK_GOAL, profile
from resources.libraries.python.search.throughput import MIN_LOAD_PPS
from tests.unit.examples import share
from tests.unit.search.search_fakes import LINE_PPS, Bench, capped, found, generator_bound, of_model, search

CAPACITY_PPS = 0.4 * LINE_PPS
_RATIO = 1e-3
LONG_ENOUGH = profile(f"soak,loss={_RATIO},time=480")
"""After 120 s (18 trials) the estimate for a soft knee has not converged, and depends on rounding."""


def of_noisy(noise: float) -> float:
    """The load at which a capacity that is normally distributed makes this mean loss ratio, by halving."""

    def mean_loss_ratio(load: float) -> float:
        z = (load - 1) / noise
        tail = exp(-z * z / 2) / sqrt(2 * pi)
        return (noise * tail + (load - 1) * (1 + erf(z / sqrt(2))) / 2) / load

    low, high = 0.5, 1.5
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if mean_loss_ratio(middle) > _RATIO else (middle, high)
    return low * CAPACITY_PPS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "truth_pps"),
    [
        (ModelName.NOISY, of_noisy(Simulation(model=ModelName.NOISY).noise)),
        (ModelName.KNEE, make_model(Simulation(model=ModelName.KNEE), CAPACITY_PPS).truth_pps(_RATIO)),
        (ModelName.SHARP, CAPACITY_PPS / (1 - _RATIO)),
        (ModelName.SAG, make_model(Simulation(model=ModelName.SAG), CAPACITY_PPS).truth_pps(_RATIO)),
    ],
)
def test_a_known_critical_load_is_found(name: ModelName, truth_pps: float) -> None:
    model = make_model(Simulation(model=name), CAPACITY_PPS)
    outcome = search(Bench(of_model(model, 3)), profile=LONG_ENOUGH)
    lower, upper = found(outcome.goal(SOAK_GOAL))
    mean, deviation = (lower + upper) / 2, (upper - lower) / 2
    assert 0 < deviation < 0.1 * truth_pps
    # The functions are smooth: around a sharp edge they are off by a percent or two, whatever the deviation says.
    assert abs(mean - truth_pps) < max(3 * deviation, 0.02 * truth_pps)
    assert not generator_bound(outcome)
    assert outcome.elapsed_s <= LONG_ENOUGH.duration_max_s
    durations = [each.trial.duration_s for each in outcome.trials]
    assert durations == pytest.approx([5.1 + 0.1 * number for number in range(len(durations))])


def test_a_system_that_loses_nothing_is_generator_bound_and_one_that_always_loses_below_range() -> None:
    outcome = search(Bench(capped(2 * LINE_PPS)), profile=profile("soak,time=60"))
    assert generator_bound(outcome)
    (result,) = outcome.goals
    assert result.complete and result.upper_pps is None
    assert 0 < (result.lower_pps or 0.0) <= LINE_PPS
    assert any(each.text.startswith("SOAK: loss ratio 1e-07 was still met") for each in outcome.findings)
    (result,) = search(Bench(capped(0.0)), profile=profile("soak,time=60")).goals
    assert (result.lower_pps, result.lowest_tried_pps) == (None, MIN_LOAD_PPS)


@settings(max_examples=share(15))
@given(m=st.floats(10.0, 1e6), spread=st.floats(0.1, 1.0), share=st.floats(0.05, 3.0))
def test_the_functions_are_integrals_of_what_they_are_named_after(m: float, spread: float, share: float) -> None:
    """Mean loss rate is the integral of the share of packets lost, as the draft derives both."""
    a, load = m**spread, share * m
    steep = [x for x in (m - 9 * a, m - a, m, m + a, m + 9 * a) if 0 < x < load] or None
    logistic = quad(lambda x: 1 / (1 + exp(min(700.0, (m - x) / a))), 0, load, points=steep, limit=400)[0]
    erfs = quad(lambda x: 1 + erf((x - m) / a), 0, load, points=steep, limit=400)[0]
    for function, wanted in ((stretch, logistic * (1 + exp(-m / a))), (bell, erfs / (1 + erf(m / a)))):
        found = float(np.exp(function(np.array([load]), np.array([m]), np.array([a])))[0])
        assert found == pytest.approx(wanted, rel=1e-4, abs=1e-9 * load)


@settings(max_examples=share(30))
@given(m=st.floats(2.0, 1e8), spread=st.floats(0.0, 1.0))
def test_the_functions_are_finite_and_increase_at_any_load(m: float, spread: float) -> None:
    loads = np.geomspace(1.0, 1e9, 60)
    for function in FUNCTIONS:
        rates = function(loads, np.full(60, m), np.full(60, m**spread))
        assert np.isfinite(rates).all()
        assert (np.diff(rates) > -1e-6).all()
        assert rates[-1] <= np.log(2 * loads[-1])


class Told:
    """An estimate that stays what it is."""

    def __init__(self, *_: object) -> None:
        self.seen: list[Observation] = []

    def add(self, seen: Observation) -> CriticalLoad:
        self.seen.append(seen)
        return CriticalLoad(mean_pps=1000.0, stdev_pps=1.0)


def above(load_pps: float, duration_s: float) -> tuple[int, int]:
    """Loads up to 2000 pps lose nothing, of higher ones 1500 pps come back."""
    sent = round(load_pps * duration_s)
    return sent, sent if load_pps <= 2000 else round(1500 * duration_s)


def test_loads_are_chosen_as_the_draft_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials without loss draw the load towards the lowest that lost, the more of them there are the closer.

    A load that lost counts four times for each trial without loss before it and once more; each of these uses up three.
    """
    monkeypatch.setattr(plrsearch, "Inference", Told)
    bench = Bench(above)
    search(bench, 10_000.0, profile=profile(f"soak,loss={_RATIO},time=100"))
    after_loss = 1000.0
    assert [trial.load_pps for trial in bench.asked][:13] == pytest.approx(
        [
            *(5050, 10_000, 1500 / 0.999, 1500 / 0.999**2),
            (5050 + 1000 / 2) / 1.5,
            *(after_loss, (3700 + 1000) / 2),
            *(after_loss, (2350 + 1000) / 2, (2350 + 1000 / 2) / 1.5, (2350 + 1000 / 4) / 1.25),
            *(after_loss, (2080 + 1000) / 2),
        ],
        rel=1e-3,
    )
