"""Search time against plain MLRsearch, on six simulated systems, in virtual time.

Ours is `search_throughput` with its `csit` profile. The peer is the library with FD.io CSIT's settings, called the way
CSIT calls it. Both meet the same systems with the same random numbers, at the same overhead per trial, and count a
trial with its overhead towards a load's evidence. As long as our search is the library's, the ratio is 1.0.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import exp, log
from random import Random
from statistics import fmean, quantiles, stdev
from typing import Any

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.models import Model, make_model
from resources.libraries.python.drivers.sim.simulation import LINE_RATE_64B_PPS, ModelName, Simulation
from resources.libraries.python.model.cell import Frame, FramePart
from resources.libraries.python.model.trial import Direction, FlowCount, Trial, TrialResult
from resources.libraries.python.search.profiles import CSIT
from resources.libraries.python.search.throughput import search_throughput

OVERHEAD_S = 0.5
SEEDS = 40
"""Searches of each kind per model: as many at random capacities as at a fixed one."""
_LINE_PPS = 2 * LINE_RATE_64B_PPS
_CAPACITY_RANGE = (0.05, 0.95)
_FIXED_CAPACITY = 0.4
_NOISE_RANGE = (0.01, 0.03)
_FRAME = Frame(name="64B", parts=(FramePart(frame_bytes=64),))


@dataclass(frozen=True, slots=True)
class Run:
    """One search."""

    elapsed_s: float
    trials: int
    ndr_pps: float
    pdr_pps: float
    """Relevant lower bounds, aggregate."""


Search = Callable[[Model, Random], Run]


def measure(seeds: int = SEEDS) -> dict[str, Any]:
    """Compare mean search times; the detail has figures by model for both.

    Times are virtual seconds at random capacities. Spreads are standard deviation over mean at a fixed capacity, and
    errors relative to the truth, both in percent.
    """
    detail = {
        name.value: {who: _figures(search, name, seeds) for who, search in _SEARCHES.items()} for name in ModelName
    }
    ours, peer = (fmean(row[who]["mean_s"] for row in detail.values()) for who in _SEARCHES)
    return {
        "name": "search_time",
        "ours": ours,
        "peer": peer,
        "ratio": ours / peer,
        "unit": "s",
        "overhead_s": OVERHEAD_S,
        "seeds": seeds,
        "detail": detail,
    }


def ours(model: Model, rng: Random) -> Run:
    """Search as this project does."""
    clock = VirtualClock()

    def trial_result(trial: Trial) -> TrialResult:
        sent, received = model.forward(trial.load_pps, trial.duration_s, rng)
        started_at = clock.timestamp()
        clock.advance(trial.duration_s + OVERHEAD_S)
        return TrialResult(
            trial=trial,
            started_at=started_at,
            offered_duration_s=trial.duration_s,
            total_duration_s=trial.duration_s + OVERHEAD_S,
            flows=(FlowCount(instance=1, direction=Direction.FORWARD, sent=sent, received=received),),
        )

    outcome = search_throughput(trial_result, CSIT, _FRAME, _LINE_PPS, clock.now)
    ndr, pdr = outcome.ndr, outcome.pdr
    return Run(
        elapsed_s=outcome.elapsed_s,
        trials=len(outcome.trials),
        ndr_pps=(ndr and ndr.lower_pps) or 0.0,
        pdr_pps=(pdr and pdr.lower_pps) or 0.0,
    )


def plain_mlrsearch(model: Model, rng: Random) -> Run:
    """Search as CSIT does (TrafficGenerator.perform_mlr_search, performance_utils.robot)."""
    trials = 0
    elapsed_s = 0.0

    class Measurer(AbstractMeasurer):  # type: ignore[misc]
        def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
            nonlocal trials, elapsed_s
            trials += 1
            elapsed_s += intended_duration + OVERHEAD_S
            sent, received = model.forward(2 * intended_load, intended_duration, rng)
            return MeasurementResult(
                intended_duration,
                intended_load,
                offered_count=sent,
                loss_count=sent - received,
                duration_with_overheads=intended_duration + OVERHEAD_S,
            )

    # Most are the library's defaults as well; a default that changes must not matter here.
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
    goals = [SearchGoal(loss_ratio=loss_ratio, **common) for loss_ratio in (0.0, 0.005)]
    config = Config()
    config.goals = goals
    config.max_load, config.min_load = _LINE_PPS / 2, 9001.0
    config.search_duration_max = 1200.0
    config.warmup_duration = 0.0
    found = MultipleLossRatioSearch(config).search(Measurer())
    ndr_pps, pdr_pps = (2 * float(found[goal].relevant_lower_bound) for goal in goals)
    return Run(elapsed_s, trials, ndr_pps, pdr_pps)


_SEARCHES: Mapping[str, Search] = {"ours": ours, "peer": plain_mlrsearch}


def _figures(search: Search, name: ModelName, seeds: int) -> dict[str, float]:
    random = [_run(search, name, seed, None) for seed in range(seeds)]
    fixed = [_run(search, name, seed, _FIXED_CAPACITY) for seed in range(seeds)]
    times = [run.elapsed_s for run, _ in random]
    return {
        "mean_s": fmean(times),
        "p95_s": quantiles(times, n=20, method="inclusive")[-1],
        "trials": fmean(run.trials for run, _ in random),
        "ndr_spread_percent": _spread(run.ndr_pps for run, _ in fixed),
        "pdr_spread_percent": _spread(run.pdr_pps for run, _ in fixed),
        "ndr_error_percent": 100 * fmean(run.ndr_pps / model.truth_pps(0.0) - 1 for run, model in random),
        "pdr_error_percent": 100 * fmean(run.pdr_pps / model.truth_pps(0.005) - 1 for run, model in random),
    }


def _run(search: Search, name: ModelName, seed: int, capacity: float | None) -> tuple[Run, Model]:
    """One search; the same seed gives every search the same system and the same random numbers."""
    rng = Random(f"{name}/{seed}/{capacity}")  # noqa: S311 (reproducible, not secret)
    low, high = _CAPACITY_RANGE
    share = exp(rng.uniform(log(low), log(high))) if capacity is None else capacity
    noise = rng.uniform(*_NOISE_RANGE) if capacity is None else fmean(_NOISE_RANGE)
    model = make_model(Simulation(model=name, noise=noise), share * _LINE_PPS)
    return search(model, rng), model


def _spread(values: Iterable[float]) -> float:
    """Standard deviation over mean in percent."""
    row = list(values)
    return 100 * stdev(row) / fmean(row)
