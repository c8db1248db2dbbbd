"""Search time against MLRsearch 1.2.1 with FD.io CSIT's settings, on six simulated systems, in virtual time.

The promised ratio is the *warm* one: mean time of our search that starts from the result of an earlier one of the same
system, over MLRsearch's mean time. The earlier search is a cold one of ours with other random numbers, errors included.

Ours is `search_throughput` with its `ladder` profile. All searches count the overhead of a trial towards the evidence
at its load, and an aborted trial as if it had run to its end.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, log
from random import Random
from statistics import fmean, quantiles, stdev
from typing import Any

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.models import make_model
from resources.libraries.python.drivers.sim.simulation import LINE_RATE_64B_PPS, ModelName, Simulation
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.model.request.goal import Prior
from resources.libraries.python.search.neighbours import Overload
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.search.throughput import search_throughput
from tests.benchmarks import sides
from tests.truth.held_out_systems import HeldOut, Memoryless, SearchedSystem, held_out

OVERHEAD_S = 0.5
LINE_PPS = 2 * LINE_RATE_64B_PPS
_FRAME = Frame(name="64B", parts=(FramePart(frame_bytes=64),))


@dataclass(frozen=True, slots=True)
class SearchRun:
    """The outcome of one search."""

    elapsed_s: float
    trials: int
    ndr_pps: float
    pdr_pps: float
    """Relevant lower bounds, aggregate."""
    overload_pps: tuple[float, ...] = ()
    """Rates forwarded in the trials at the highest load."""


MakeSystem = Callable[[], SearchedSystem]
"""Makes a system as it is before a search."""
Search = Callable[[MakeSystem, Random, Random], SearchRun]
"""Arguments: a system, its random numbers, and those of an earlier search of the same system."""


def measurer(system: SearchedSystem, rng: Random, clock: VirtualClock) -> Callable[[Trial], TrialResult]:
    """Return a `measure` function on a simulated system; each trial advances the clock."""

    def measure(trial: Trial) -> TrialResult:
        done = system.trial(trial.load_pps, trial.duration_s, rng, trial.abort_loss_ratio)
        started_at = clock.timestamp()
        clock.advance(done.duration_s + OVERHEAD_S)
        return TrialResult(
            trial=trial,
            started_at=started_at,
            offered_duration_s=done.duration_s,
            total_duration_s=done.duration_s + OVERHEAD_S,
            flows=(FlowCount(instance=1, direction=Direction.FORWARD, sent=done.sent, received=done.received),),
            aborted=done.aborted,
        )

    return measure


def cold(make: MakeSystem, rng: Random, _: Random) -> SearchRun:
    """Run our search without a prior."""
    return with_prior(make, rng, None)


def warm(make: MakeSystem, rng: Random, earlier: Random) -> SearchRun:
    """Run our search with the result of a cold one on the same system, with other random numbers, as prior."""
    return with_prior(make, rng, prior_of(cold(make, earlier, earlier)))


def with_prior(make: MakeSystem, rng: Random, prior: Prior | None, from_overload: Overload | None = None) -> SearchRun:
    """Run our search with a given prior."""
    clock = VirtualClock()
    outcome = search_throughput(
        measurer(make(), rng, clock), LADDER, _FRAME, LINE_PPS, clock.now, prior=prior, from_overload=from_overload
    )
    ndr_pps, pdr_pps = ((found and found.lower_pps) or 0.0 for found in (outcome.ndr, outcome.pdr))
    return SearchRun(outcome.elapsed_s, len(outcome.trials), ndr_pps, pdr_pps, outcome.record.overload_pps)


def prior_of(run: SearchRun, factor: float = 1.0) -> Prior:
    """Return the prior that a search leaves to the next one, distorted by a factor."""
    loads = {"NDR": run.ndr_pps * factor, "PDR": run.pdr_pps * factor}
    return Prior(test_id="earlier", started_at="2000-01-01T00:00:00.000+00:00", lower_pps=loads)


def plain_mlrsearch(make: MakeSystem, rng: Random, _: Random) -> SearchRun:
    """Run MLRsearch as CSIT does (TrafficGenerator.perform_mlr_search, performance_utils.robot)."""
    system, taken_s = make(), list[float]()

    class PeerMeasurer(AbstractMeasurer):  # type: ignore[misc]
        def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
            taken_s.append(intended_duration + OVERHEAD_S)
            done = system.trial(2 * intended_load, intended_duration, rng)
            return MeasurementResult(
                intended_duration,
                intended_load,
                offered_count=done.sent,
                loss_count=done.sent - done.received,
                duration_with_overheads=taken_s[-1],
            )

    # Explicit even where the library has the same default, which may change.
    common = {
        "exceed_ratio": 0.5,
        "relative_width": 0.005,
        "initial_trial_duration": 1.0,
        "final_trial_duration": 1.0,
        "duration_sum": 21.0,
        "preceding_targets": 2,
        "expansion_coefficient": 2,
        "fail_fast": True,
    }
    goals = [SearchGoal(loss_ratio=loss_ratio, **common) for loss_ratio in _GOALS.values()]
    config = Config()
    config.goals = goals
    config.max_load, config.min_load = LINE_PPS / 2, 9001.0
    config.search_duration_max = 1200.0
    config.warmup_duration = 0.0
    found = MultipleLossRatioSearch(config).search(PeerMeasurer())
    ndr_pps, pdr_pps = (2 * float(found[goal].relevant_lower_bound) for goal in goals)
    return SearchRun(sum(taken_s), len(taken_s), ndr_pps, pdr_pps)


SEEDS = 100
"""Searches of each kind per model at random capacities, and as many at a fixed capacity."""
_CAPACITY_RANGE = (0.05, 0.95)
_FIXED_CAPACITY = 0.4
_GOALS = {"ndr": 0.0, "pdr": 0.005}
"""Loss ratios."""
_NOISE_RANGE = (0.01, 0.03)

_SEARCHES: Mapping[str, Search] = {"ours": warm, "cold": cold, "peer": plain_mlrsearch}


def measure(seeds: int = SEEDS) -> dict[str, Any]:
    """Compare mean search times; `detail` has figures by model for warm (`ours`), cold and MLRsearch (`peer`).

    Times are virtual seconds at random capacities. Spreads are standard deviations over means at a fixed capacity,
    errors are relative to the truth, both in percent.
    """
    detail = {
        name.value: {
            who: figures(search, name, seeds) | spreads_percent(search, name, seeds)
            for who, search in _SEARCHES.items()
        }
        for name in ModelName
    }
    ours, cold_s, peer = (fmean(row[who]["mean_s"] for row in detail.values()) for who in _SEARCHES)
    note = f"peer is MLRsearch; ours is warm; cold {cold_s:.1f} s, ratio {cold_s / peer:.3f}; {seeds} searches of each "
    note += "kind and system, virtual time"
    table = (_HEADS, [_line(name, row) for name, row in detail.items()])
    return sides.figures(ours, peer, "s", note, cold=cold_s, cold_ratio=cold_s / peer, detail=detail, table=table)


_HEADS = ("system", "warm s", "cold s", "MLRsearch s", "p95 s", "spread NDR/PDR %", "MLRsearch %", "bias NDR/PDR %")


def _line(name: str, row: Mapping[str, Mapping[str, float]]) -> tuple[str | float, ...]:
    ours, peer = row["ours"], row["peer"]
    return (
        name,
        *(row[who]["mean_s"] for who in _SEARCHES),
        "/".join(f"{row[who]['p95_s']:.0f}" for who in _SEARCHES),
        *("/".join(f"{each[f'{goal}_spread_percent']:.2f}" for goal in _GOALS) for each in (ours, peer)),
        "/".join(f"{ours[f'{goal}_error_percent']:+.2f}" for goal in _GOALS),
    )


def figures(search: Search, name: ModelName, seeds: int) -> dict[str, float]:
    """Return time, trials and error of one search at random capacities of one kind of system."""
    runs = [_run(search, name, seed, None) for seed in range(seeds)]
    times = [run.elapsed_s for run, _ in runs]
    found = {
        "mean_s": fmean(times),
        "p95_s": quantiles(times, n=20, method="inclusive")[-1],
        "trials": fmean(run.trials for run, _ in runs),
    }
    for goal, loss_ratio in _GOALS.items():
        errors = [100 * (_pps(run, goal) / system.truth_pps(loss_ratio) - 1) for run, system in runs]
        found[f"{goal}_error_percent"] = fmean(errors)
        found[f"{goal}_rms_error_percent"] = fmean(each**2 for each in errors) ** 0.5
    return found


def spreads_percent(search: Search, name: ModelName, seeds: int) -> dict[str, float]:
    """Return the spread of the bounds that so many searches find at one capacity of one kind of system."""
    runs = [_run(search, name, seed, _FIXED_CAPACITY)[0] for seed in range(seeds)]
    rates = {goal: [_pps(run, goal) for run in runs] for goal in _GOALS}
    return {f"{goal}_spread_percent": 100 * stdev(row) / fmean(row) for goal, row in rates.items()}


def _pps(run: SearchRun, goal: str) -> float:
    return run.ndr_pps if goal == "ndr" else run.pdr_pps


def _run(search: Search, name: ModelName, seed: int, capacity: float | None) -> tuple[SearchRun, SearchedSystem]:
    """Run one search; with the same seed, all searches get the same system and random numbers."""
    rng = Random(f"{name}/{seed}/{capacity}")
    low, high = _CAPACITY_RANGE
    share = exp(rng.uniform(log(low), log(high))) if capacity is None else capacity
    noise = rng.uniform(*_NOISE_RANGE) if capacity is None else fmean(_NOISE_RANGE)
    make = maker(name, share * LINE_PPS, {"noise": noise})
    earlier = Random(f"earlier/{name}/{seed}/{capacity}")
    return search(make, rng, earlier), make()


def maker(name: ModelName | HeldOut, capacity_pps: float, parameters: Mapping[str, float]) -> MakeSystem:
    """Return what makes systems of a kind and capacity; `parameters` are those of a simulation."""
    if isinstance(name, HeldOut):
        return lambda: held_out(name, capacity_pps)
    simulation = Simulation.model_validate({"model": name, **parameters})
    return lambda: Memoryless(make_model(simulation, capacity_pps))
