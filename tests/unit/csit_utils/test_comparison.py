"""Two selections side by side: change, interval, outcome."""

from math import inf, sqrt
from random import Random
from typing import Any

import pytest
from scipy.stats import false_discovery_control

from csit_utils.analysis.comparisons.comparison import Change, Method, Outcome, compare
from csit_utils.analysis.comparisons.gate import decide
from csit_utils.dataset.rows import PDR, TestRow
from tests.unit.csit_utils.histories import nights, row

RATE = 5e6


def runs(rates: list[float], cell: tuple[str, int, int] = ("CSC", 1, 1), **changes: Any) -> list[TestRow]:
    """Tests of one cell without a search's width, so that figures are those given."""
    return [row(rate, night, cell=cell, ndr_lower_pps=None, ndr_upper_pps=None, pdr_upper_pps=rate, **changes)
            for night, rate in enumerate(rates)]  # fmt: skip


def pdr(a: list[TestRow], b: list[TestRow], **options: bool) -> Change:
    (found,) = (each for each in compare(a, b, **options).changes if each.metric == PDR)
    return found


def test_several_runs_are_judged_by_welch() -> None:
    """Means 20 and 22, variances 4 and 4/3, 5 and 4 runs: t is 1.88 with 6.5 degrees of freedom."""
    a = [18.0, 18.0, 20.0, 22.0, 22.0]
    b = [21.0, 21.0, 23.0, 23.0]
    found = pdr(runs(a), runs(b))
    variance_b = 4 / 3
    error = sqrt(4 / 5 + variance_b / 4)
    freedom = error**4 / ((4 / 5) ** 2 / 4 + (variance_b / 4) ** 2 / 3)
    assert found.method is Method.RUNS
    assert found.change == pytest.approx(0.1)
    assert found.probability == pytest.approx(two_sided(2 / error, freedom), abs=0.002)
    assert (found.low + found.high) / 2 == pytest.approx(found.change)
    assert found.outcome is Outcome.NO_CHANGE


def two_sided(t: float, freedom: float, steps: int = 200_000) -> float:
    """Student's t by summing its density: independent of the library."""
    from math import gamma, pi

    norm = gamma((freedom + 1) / 2) / (sqrt(freedom * pi) * gamma(freedom / 2))
    width = 2 * t / steps
    inside = sum(norm * (1 + (i * width - t) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps)) * width
    return float(1 - inside)


def test_a_clear_fall_is_a_regression_and_a_clear_rise_a_progression() -> None:
    fall = pdr(nights(5, lambda _: RATE), nights(5, lambda _: 0.95 * RATE))
    assert (fall.outcome, fall.method) == (Outcome.REGRESSION, Method.RUNS)
    assert fall.low < -0.05 < fall.high < 0
    rise = pdr(nights(5, lambda _: 0.95 * RATE), nights(5, lambda _: RATE))
    assert rise.outcome is Outcome.PROGRESSION


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng, held = Random(1), 0
    for _ in range(300):
        a, b = ([rng.gauss(rate, 0.01 * RATE) for _ in range(4)] for rate in (RATE, 0.97 * RATE))
        found = pdr(runs(a), runs(b))
        held += found.low <= -0.03 <= found.high
    assert 0.92 <= held / 300 <= 0.98


def test_one_run_on_either_side_is_judged_by_bounds_only() -> None:
    apart = pdr([row(RATE)], [row(0.98 * RATE)])
    assert (apart.method, apart.outcome, apart.probability) == (Method.BOUNDS, Outcome.REGRESSION, None)
    overlapping = pdr([row(RATE)], [row(0.997 * RATE)])
    assert overlapping.outcome is Outcome.CANNOT_TELL
    assert overlapping.low < 0 < overlapping.high


@pytest.mark.parametrize("width", [0.0, 0.005])
def test_two_figures_that_differ_by_noise_only_are_seldom_called_changed(width: float) -> None:
    """Two runs that differ by 0.3 %, of which a search gives bounds on a grid of its width."""
    rng, called = Random(3), 0
    for _ in range(500):
        rates = [RATE * rng.gauss(1.0, 0.003) for _ in range(2)]
        lows = [rate - rate % (width * RATE) if width else rate for rate in rates]
        a, b = ([row(low, pdr_upper_pps=low + width * RATE, ndr_lower_pps=None, ndr_upper_pps=None)] for low in lows)
        called += pdr(a, b).outcome is not Outcome.CANNOT_TELL
    assert called <= 25


PLACES = [("CSC", chains, nodes) for chains in (1, 2, 4) for nodes in (1, 2, 4, 6)]


def one_run(rng: Random, rates: dict[tuple[str, int, int], float] | None = None) -> list[TestRow]:
    """A run of twelve cells whose rates vary by 1 % from run to run."""
    factors = rates or {}
    return [row(rng.gauss(1.0, 0.01) * RATE * factors.get(cell, 1.0), cell=cell) for cell in PLACES]


def test_single_runs_of_many_cells_are_judged_by_how_differently_cells_changed() -> None:
    rng = Random(5)
    fallen = {PLACES[3]: 0.85}
    found = [each for each in compare(one_run(rng), one_run(rng, fallen)).changes if each.metric == PDR]
    assert {each.method for each in found} == {Method.SPREAD}
    assert [each.outcome is Outcome.REGRESSION for each in found] == [
        (each.service_type, *each.dimensions) == PLACES[3] for each in found
    ]
    everything = compare(one_run(rng), one_run(rng, dict.fromkeys(PLACES, 0.9)))
    assert {each.outcome for each in everything.changes} == {Outcome.REGRESSION}


@pytest.mark.slow
def test_single_runs_that_differ_by_noise_only_are_seldom_called_changed() -> None:
    """Bounds are 0.5 % apart and runs 1 %: bounds alone would call most of them."""
    rng, called = Random(7), 0
    for _ in range(100):
        called += bool(compare(one_run(rng), one_run(rng)).of(Outcome.REGRESSION, Outcome.PROGRESSION))
    assert called <= 12


def test_one_run_against_several_takes_their_variation() -> None:
    found = pdr(nights(10, lambda _: RATE), [row(0.9 * RATE, 20)])
    assert (found.method, found.outcome) == (Method.ONE_RUN, Outcome.REGRESSION)
    assert pdr(nights(10, lambda _: RATE), [row(0.993 * RATE, 20)]).outcome is Outcome.NO_CHANGE


def test_runs_that_agree_by_rounding_are_not_without_variation() -> None:
    a, b = ([row(rate, night) for night in range(2)] for rate in (RATE, 0.998 * RATE))
    assert pdr(a, b).outcome is Outcome.NO_CHANGE


def test_a_lower_limit_says_so_and_has_no_upper_end() -> None:
    found = pdr([row(RATE)], [row(0.99 * RATE, pdr_upper_pps=None)])
    assert found.high == inf
    assert found.outcome is Outcome.CANNOT_TELL
    assert any("lower bound" in remark for remark in found.remarks)


def test_unlike_figures_are_compared_only_on_request() -> None:
    measured, simulated = nights(3, lambda _: RATE), nights(3, lambda _: 0.5 * RATE, world="sim", simulated=True)
    found = pdr(measured, simulated)
    assert found.outcome is Outcome.UNLIKE
    assert any("simulated" in remark for remark in found.remarks)
    assert pdr(measured, simulated, insist=True).outcome is Outcome.REGRESSION


def test_the_same_testbed_is_compared_with_itself_and_a_lone_one_with_the_other() -> None:
    both = [*nights(3, lambda _: RATE), *nights(3, lambda _: 2 * RATE, testbed="lab-b")]
    changes = [each for each in compare(both, both).changes if each.metric == PDR]
    assert [each.change for each in changes] == [0.0, 0.0]
    other = pdr(nights(3, lambda _: RATE), nights(3, lambda _: 2 * RATE, testbed="lab-b"))
    assert other.change > 0.9
    assert other.outcome is Outcome.HIGHER, "another testbed is no progression"


def test_cells_of_one_side_are_reported() -> None:
    found = compare([row(RATE), row(RATE, cell=("CSC", 2, 1))], [row(RATE), row(RATE, cell=("CSP", 1, 1))])
    assert {cell.dimensions.instances for cell in found.only_a} == {2}
    assert {cell.series.service_type for cell in found.only_b} == {"CSP"}


def test_where_nothing_changed_hardly_any_of_many_cells_is_called_changed() -> None:
    a, b = (
        [each for chains in range(1, 101) for each in nights(4, lambda _: RATE, bed, ("CSC", chains, 1))]
        for bed in ("lab-a", "lab-b")
    )
    found = compare(a, b)
    assert len(found.changes) == 200
    alone = [each for each in found.changes if each.probability is not None and each.probability <= 0.05]
    assert alone, "some of 200 differ by chance when looked at alone"
    assert all("among this many" in each.remarks[-1] for each in alone)
    others = [each for each in found.changes if each not in alone]
    assert not any("among this many" in remark for each in others for remark in each.remarks)
    assert {each.outcome for each in found.changes} == {Outcome.NO_CHANGE}


def test_probabilities_are_adjusted_for_how_many_cells_there_are() -> None:
    a, b = (
        [each for chains in range(1, 9) for each in nights(4, lambda _: RATE, bed, ("CSC", chains, 1))]
        for bed in ("lab-a", "lab-b")
    )
    b += nights(4, lambda _: 0.7 * RATE, "lab-b", ("CSC", 9, 1))
    a += nights(4, lambda _: RATE, "lab-a", ("CSC", 9, 1))
    changes = compare(a, b).changes
    expected = false_discovery_control([each.probability for each in changes])
    assert [each.adjusted for each in changes] == pytest.approx(list(expected))
    called = [each for each in changes if each.outcome is Outcome.LOWER]
    assert {each.dimensions.instances for each in called} == {9}


def test_bounds_that_lie_apart_upwards_are_a_progression() -> None:
    found = pdr([row(RATE)], [row(1.02 * RATE)])
    assert (found.method, found.outcome) == (Method.BOUNDS, Outcome.PROGRESSION)


def test_a_gate_counts_what_fell_what_kept_and_what_it_could_not_judge() -> None:
    baseline = [
        *nights(6, lambda _: RATE),
        *nights(6, lambda _: RATE, cell=("CSC", 2, 1)),
        *nights(6, lambda _: RATE, cell=("CSC", 4, 1)),
    ]
    candidate = [
        *nights(6, lambda _: 0.9 * RATE),
        *nights(6, lambda _: RATE, cell=("CSC", 2, 1)),
        row(None, cell=("CSC", 4, 1)),
    ]
    found = decide(compare(baseline, candidate), candidate)
    assert {each.dimensions.instances for each in found.fallen} == {1}
    assert {each.dimensions.instances for each in found.kept} == {2}
    assert found.judged == 4
    assert [each.reason for each in found.unjudged] == ["the candidate's test ended with FAIL: no traffic at hop 2"] * 2
    tolerant = decide(compare(baseline, candidate), candidate, tolerance=0.15)
    assert not tolerant.fallen
    assert tolerant.judged == 4
