"""The searches that `bench.search` compares, on one simulated system, in virtual time.

Ours is `search_throughput` with its `ladder` profile, cold and warm. The peer is the library with FD.io CSIT's
settings, called the way CSIT calls it. All count a trial with its overhead towards a load's evidence, an aborted one
as if it had run to its end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from resources.libraries.python.drivers.sim.abort import forward
from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.models import Model
from resources.libraries.python.drivers.sim.simulation import LINE_RATE_64B_PPS
from resources.libraries.python.model.cell import Frame, FramePart
from resources.libraries.python.model.goal import Prior
from resources.libraries.python.model.trial import Direction, FlowCount, Trial, TrialResult
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.search.throughput import search_throughput

OVERHEAD_S = 0.5
LINE_PPS = 2 * LINE_RATE_64B_PPS
_FRAME = Frame(name="64B", parts=(FramePart(frame_bytes=64),))


@dataclass(frozen=True, slots=True)
class SearchRun:
    """One search."""

    elapsed_s: float
    trials: int
    ndr_pps: float
    pdr_pps: float
    """Relevant lower bounds, aggregate."""


Search = Callable[[Model, Random, Random], SearchRun]
"""A system, its random numbers, and other ones for an earlier search of the same system."""


def measurer(model: Model, rng: Random, clock: VirtualClock, overhead_s: float) -> Callable[[Trial], TrialResult]:
    """A `measure` function on a simulated system."""

    def measure(trial: Trial) -> TrialResult:
        done = forward(model, trial.load_pps, trial.duration_s, rng, trial.abort_loss_ratio)
        started_at = clock.timestamp()
        clock.advance(done.duration_s + overhead_s)
        return TrialResult(
            trial=trial,
            started_at=started_at,
            offered_duration_s=done.duration_s,
            total_duration_s=done.duration_s + overhead_s,
            flows=(FlowCount(instance=1, direction=Direction.FORWARD, sent=done.sent, received=done.received),),
            aborted=done.aborted,
        )

    return measure


def cold(model: Model, rng: Random, _: Random) -> SearchRun:
    """Our search of a system that is seen for the first time."""
    return with_prior(model, rng, None)


def warm(model: Model, rng: Random, earlier: Random) -> SearchRun:
    """Our search from what a cold one has found on the same system with other random numbers."""
    found = with_prior(model, earlier, None)
    return with_prior(model, rng, prior_of(found))


def with_prior(model: Model, rng: Random, prior: Prior | None) -> SearchRun:
    """Our search from any prior."""
    clock = VirtualClock()
    outcome = search_throughput(
        measurer(model, rng, clock, OVERHEAD_S), LADDER, _FRAME, LINE_PPS, clock.now, prior=prior
    )
    ndr, pdr = outcome.ndr, outcome.pdr
    return SearchRun(
        elapsed_s=outcome.elapsed_s,
        trials=len(outcome.trials),
        ndr_pps=(ndr and ndr.lower_pps) or 0.0,
        pdr_pps=(pdr and pdr.lower_pps) or 0.0,
    )


def prior_of(run: SearchRun, factor: float = 1.0) -> Prior:
    """What a search leaves to the next one; wrong by a factor, to see what that costs."""
    loads = {"NDR": run.ndr_pps * factor, "PDR": run.pdr_pps * factor}
    return Prior(test_id="earlier", started_at="2000-01-01T00:00:00.000+00:00", lower_pps=loads)


def plain_mlrsearch(model: Model, rng: Random, _: Random) -> SearchRun:
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
    config.max_load, config.min_load = LINE_PPS / 2, 9001.0
    config.search_duration_max = 1200.0
    config.warmup_duration = 0.0
    found = MultipleLossRatioSearch(config).search(Measurer())
    ndr_pps, pdr_pps = (2 * float(found[goal].relevant_lower_bound) for goal in goals)
    return SearchRun(elapsed_s, trials, ndr_pps, pdr_pps)
