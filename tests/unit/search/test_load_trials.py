"""MRR and latency: trials at given loads."""

import pytest

from resources.libraries.python.model.measurements.trial import Direction, FlowCount, Trial, TrialResult
from resources.libraries.python.search.load_trials import measure_at_rate, measure_latency, measure_receive_rate
from resources.libraries.python.search.profiles import LADDER
from tests.unit.search.search_fakes import FRAME, LINE_PPS, Bench, capped


@pytest.mark.parametrize(("rates", "stdev_pps"), [((6e6,), None), ((5e6, 7e6), 2**0.5 * 1e6)])
def test_mrr_is_what_comes_back_at_the_highest_load(rates: tuple[float, ...], stdev_pps: float | None) -> None:
    capacities = iter(rates)
    bench = Bench(lambda _, duration_s: (round(LINE_PPS), round(next(capacities) * duration_s)))
    profile = LADDER.model_copy(update={"mrr_trials": len(rates)})
    mrr, _ = measure_receive_rate(bench.measure, profile, FRAME, LINE_PPS)
    assert (mrr.receive_rates_pps, mrr.mean_pps) == (pytest.approx(rates), pytest.approx(6e6))
    assert mrr.stdev_pps == (stdev_pps and pytest.approx(stdev_pps))
    assert mrr.offered_pps == pytest.approx(LINE_PPS)
    assert {(trial.load_pps, trial.purpose) for trial in bench.asked} == {(LINE_PPS, "mrr")}


@pytest.mark.parametrize("goal", ["PDR", "SOAK"])
def test_latency_is_measured_at_shares_of_pdr_or_of_a_soak_rate(goal: str) -> None:
    bench = Bench(capped(6e6))
    rows, results = measure_latency(bench.measure, LADDER, FRAME, 5e6, goal)
    loads = {f"{goal}{percent}": percent * 5e4 for percent in (0, 10, 50, 90)}
    assert [(row.label, row.load_pps) for row in rows] == list(loads.items())
    assert [result.trial for result in results] == bench.asked
    assert {trial.duration_s for trial in bench.asked} == {5.0}
    assert {trial.probe_pps for trial in bench.asked} == {1000.0}
    for unknown in (None, 0.0):
        rows, _ = measure_latency(bench.measure, LADDER, FRAME, unknown)
        assert [(row.label, row.load_pps) for row in rows] == [("PDR0", 0.0)]


@pytest.mark.parametrize(
    ("load_pps", "ndr", "pdr", "trials"), [(5.9e6, True, True, 7), (6.02e6, False, True, 8), (6.1e6, False, False, 8)]
)
def test_trials_at_a_rate_decide_each_goal(*, load_pps: float, ndr: bool, pdr: bool, trials: int) -> None:
    bench = Bench(capped(6e6))
    found, latency, results = measure_at_rate(bench.measure, LADDER, FRAME, load_pps, bench.clock.now)
    assert found.sustained == {"NDR": ndr, "PDR": pdr}
    assert {trial.load_pps for trial in bench.asked} == {latency.load_pps} == {load_pps}
    # More than half of 21 s decides against a goal, half for it; a trial of 1 s with its overhead is 1.5 s of it.
    assert found.trials == len(results) - 1 == trials
    assert (results[-1].trial.probe_pps, results[-1].trial.duration_s) == (1000.0, 5.0)


def test_a_rate_is_not_sustained_where_one_instance_bears_the_losses() -> None:
    bench = Bench(capped(6e6))

    def unfair(trial: Trial) -> TrialResult:
        found = bench.measure(trial)
        counts = [FlowCount(instance=n, direction=Direction.FORWARD, sent=1000, received=1000) for n in range(1, 10)]
        starved = FlowCount(instance=10, direction=Direction.FORWARD, sent=1000, received=960)
        return found.model_copy(update={"flows": (*counts, starved)})

    found, _, _ = measure_at_rate(unfair, LADDER, FRAME, 1e4, bench.clock.now)
    assert found.sustained == {"NDR": False, "PDR": False}, "0.4 % of all packets, 4 % of one instance's"


def test_a_generator_that_falls_short_decides_nothing() -> None:
    bench = Bench(lambda load_pps, duration_s: (round(load_pps * duration_s / 2),) * 2)
    found, _, _ = measure_at_rate(bench.measure, LADDER, FRAME, 5e6, bench.clock.now)
    assert (found.sustained, found.trials) == ({}, 2)
    assert "2.50 Mpps of 5.00 Mpps" in found.note or "offered" in found.note
