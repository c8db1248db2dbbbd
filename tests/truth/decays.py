"""Searches of systems that lose capacity while they are searched, and of steady ones, on which no search may end early.

A decaying system is any of the simulated ones whose rates, of what is asked and of what comes back, shrink together
with time: the law of decay is not one that the search fits.
"""

from collections.abc import Iterator
from functools import partial
from random import Random

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.simulation import ModelName
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.search.throughput import search_throughput
from tests.benchmarks.search_time import LINE_PPS, maker, measurer
from tests.truth.held_out_systems import HeldOut
from tests.truth.known_truth import BoundedQuantity, each_of, print_table, share

PER_MINUTE = 0.05
_WANDERING = (HeldOut.DRIFT, HeldOut.SLOW_WANDER, HeldOut.WARM_UP)
"""Not steady: their capacity moves by itself for minutes."""
_BLUNT = (ModelName.NOISY, ModelName.KNEE, HeldOut.CORRELATED, HeldOut.STAIRS, *_WANDERING)
"""Systems on which single trials say little about the capacity, so that a slow decay is not seen within a search."""
_FRAME = Frame(name="64B", parts=(FramePart(frame_bytes=64),))
System = ModelName | HeldOut


def decay_found(per_minute: float, asked: tuple[System, int]) -> bool:
    """Whether a search of a system that loses so much in a minute ends as that of a decaying one."""
    name, seed = asked
    rng, clock = Random(f"decay/{name}/{seed}"), VirtualClock()
    make = maker(name, rng.uniform(0.05, 0.95) * LINE_PPS, {"noise": rng.uniform(0.01, 0.03)})
    system = measurer(make(), rng, clock)

    def measure(trial: Trial) -> TrialResult:
        left = (1 - per_minute) ** (clock.now() / 60)
        done = system(trial.model_copy(update={"load_pps": trial.load_pps / left}))
        flows = [
            flow.model_copy(update={"sent": round(flow.sent * left), "received": round(flow.received * left)})
            for flow in done.flows
        ]
        return done.model_copy(update={"trial": trial, "flows": tuple(flows)})

    return search_throughput(measure, LADDER, _FRAME, LINE_PPS, clock.now).decays


def table(studies: int) -> Iterator[BoundedQuantity]:
    every: tuple[System, ...] = (*ModelName, *HeldOut)
    steady = [(name, seed) for name in every if name not in _WANDERING for seed in range(studies)]
    found = each_of(partial(decay_found, 0.0), steady)
    yield share("steady searches that end as decaying", found, 1, of="searches")
    sharp = [(name, seed) for name in every if name not in _BLUNT for seed in range(studies)]
    missed = [not each for each in each_of(partial(decay_found, PER_MINUTE), sharp)]
    yield share(f"decays of {PER_MINUTE:.0%} a minute that are missed", missed, 10, of="searches")


if __name__ == "__main__":
    print_table(table)
