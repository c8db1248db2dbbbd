"""Wrong answers and trials of bisections on simulated histories, beside FD.io CSIT's way.

The simulation is not the model of the analysis: every revision moves the level a little, noise has heavier tails than a
normal distribution, the two bands are not on the grid, and rates are whole packets of trials of 1 s. CSIT's way
measures each revision by 60 trials of one deployment, and jumpavg decides whether the middle one groups with the
earlier or the later one. It always names one culprit: where there are two, either counts as right.
"""

from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from itertools import count
from math import log
from statistics import fmean
from typing import NamedTuple

import numpy as np

from csit_utils.analysis.bisection import BisectionAnswer, BisectionQuestion, look
from tests.truth.known_truth import BoundedQuantity, each_of, print_table, share

REVISIONS = 64
_PROMISED = 0.01
_CSIT_TRIALS = 60
_RATE_PPS = 800_000.0


class PlantedChanges(NamedTuple):
    noise: float
    """Relative standard deviation of a trial."""
    steps: tuple[float, ...] = (-0.05,)
    """Relative changes, at random revisions."""
    low_share: float = 0.0
    """Share of deployments in the lower of two bands."""
    gap: float = 0.0
    """Relative distance of the bands."""


SCENARIOS: Mapping[str, PlantedChanges] = {
    "noise 1 %": PlantedChanges(0.01),
    "noise 2 %": PlantedChanges(0.02),
    "noise 3 %": PlantedChanges(0.03),
    "two bands": PlantedChanges(0.01, low_share=0.3, gap=0.085),
    "two culprits": PlantedChanges(0.02, (-0.04, -0.05)),
    "no change": PlantedChanges(0.02, ()),
}


class SimulatedHistory:
    def __init__(self, scenario: PlantedChanges, seed: int) -> None:
        self._scenario = scenario
        self._rng = np.random.default_rng(seed)
        self.culprits = sorted(
            int(place) for place in self._rng.choice(np.arange(1, REVISIONS), len(scenario.steps), replace=False)
        )
        factors = np.ones(REVISIONS)
        for place, step in zip(self.culprits, scenario.steps, strict=True):
            factors[place:] *= 1 + step
        self._rates_pps = _RATE_PPS * factors * (1 + self._rng.uniform(-0.0015, 0.0015, REVISIONS))

    def deploy(self, revision: int) -> float:
        low = self._rng.random() < self._scenario.low_share
        return float(self._rates_pps[revision]) * (1 - self._scenario.gap * low)

    def trial(self, rate_pps: float) -> int:
        noise = self._scenario.noise * self._rng.standard_t(6) / 1.5**0.5
        return int(self._rng.poisson(max(rate_pps * (1 + noise), 1.0)))


class BisectionOutcome(NamedTuple):
    """Cost of one bisection; one without a decision is not wrong."""

    wrong: bool
    decided: bool
    trials: int


def bisect(scenario: PlantedChanges, seed: int) -> BisectionOutcome:
    """Find the planted changes by this project's bisection."""
    history, values = SimulatedHistory(scenario, seed), dict[int, list[float]]()
    question = BisectionQuestion(REVISIONS, wrong=_PROMISED)
    for trials in count():
        found = look(values, frozenset(), question)
        if found.next is None:
            named = [(each.first, each.last) for each in found.culprits]
            decided = found.answer is not BisectionAnswer.UNDECIDED
            return BisectionOutcome(
                decided and named != [(place, place) for place in history.culprits], decided, trials
            )
        packets = history.trial(history.deploy(found.next))
        values.setdefault(found.next, []).append(log(packets))
    raise AssertionError


def bisect_as_csit(scenario: PlantedChanges, seed: int) -> BisectionOutcome:
    """Find one change by halving, with 60 trials of each revision and jumpavg's bit counts."""
    from jumpavg import AvgStdevStats, BitCountingGroupList

    history, measured_revisions = SimulatedHistory(scenario, seed), 0

    def measured(revision: int) -> list[float]:
        nonlocal measured_revisions
        measured_revisions += 1
        rate_pps = history.deploy(revision)
        return [float(history.trial(rate_pps)) for _ in range(_CSIT_TRIALS)]

    def bits(*groups: list[float]) -> float:
        highest = max(map(max, groups))
        listed = BitCountingGroupList(max_value=highest, unit=highest / (2.0**13 - 1))
        for group in groups:
            listed.append_group_of_runs([AvgStdevStats.for_runs(group)])
        return float(listed.bits)

    low, high = 0, REVISIONS - 1
    early, late = measured(low), measured(high)
    while high - low > 1:
        middle = (low + high) // 2
        found = measured(middle)
        if bits(early + found, late) < bits(early, found + late):
            low, early = middle, found
        else:
            high, late = middle, found
    return BisectionOutcome(high not in history.culprits, decided=True, trials=_CSIT_TRIALS * measured_revisions)


def table(studies: int) -> list[BoundedQuantity]:
    """Return the share of wrong answers of so many histories of each scenario."""
    ways = {"ours": bisect} | ({"CSIT's way": bisect_as_csit} if find_spec("jumpavg") is not None else {})
    lines = []
    for name, scenario in SCENARIOS.items():
        for way, run in ways.items():
            outcomes = each_of(partial(run, scenario), range(studies))
            trials = [each.trials for each in outcomes]
            note = f"{sum(not each.decided for each in outcomes)} undecided; {fmean(trials):.0f} trials on average, "
            note += f"95 % up to {np.percentile(trials, 95):.0f}"
            bound = 100 * _PROMISED if way == "ours" else 100.0
            lines.append(share(f"wrong, {name}, {way}", [each.wrong for each in outcomes], bound, "answers", note))
    return lines


if __name__ == "__main__":
    print_table(table, 1000)
