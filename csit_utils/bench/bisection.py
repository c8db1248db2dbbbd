"""Wrong answers and trials of bisections on simulated histories, against FD.io CSIT's way.

The simulation is not the model of the analysis: every revision moves the level a little, noise has heavier tails than a
normal distribution, the two bands are not on the grid, and rates are whole packets of trials of 1 s. CSIT's way
measures each revision by 60 trials of one deployment, and jumpavg decides whether the middle one groups with the
earlier or the later one. It always names one culprit: where there are two, either counts as right.
"""

import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import count
from math import log
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta

from csit_utils.analysis.bisection import BisectionAnswer, BisectionQuestion, look

REVISIONS = 64
BISECTIONS = 1000
PROMISED = 0.01
CSIT_TRIALS = 60
_RATE_PPS = 800_000.0
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class PlantedChanges:
    """Noise and planted changes of a history."""

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
    """A simulated history of revisions and its measurement.

    Args:
        scenario: What is planted.
        seed: Of everything random.
    """

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
        """Return the rate of a new deployment."""
        low = self._rng.random() < self._scenario.low_share
        return float(self._rates_pps[revision]) * (1 - self._scenario.gap * low)

    def trial(self, rate_pps: float) -> int:
        """Return the packets received in a trial of 1 s."""
        noise = self._scenario.noise * self._rng.standard_t(6) / 1.5**0.5
        return int(self._rng.poisson(max(rate_pps * (1 + noise), 1.0)))


class BisectionOutcome(NamedTuple):
    """Cost of one bisection."""

    right: bool
    decided: bool
    trials: int


def bisect(scenario: PlantedChanges, seed: int) -> BisectionOutcome:
    """Find the planted changes by this project's bisection."""
    history, values = SimulatedHistory(scenario, seed), dict[int, list[float]]()
    question = BisectionQuestion(REVISIONS, wrong=PROMISED)
    for trials in count():
        found = look(values, frozenset(), question)
        if found.next is None:
            named = [(each.first, each.last) for each in found.culprits]
            right = (
                named == [(place, place) for place in history.culprits]
                and found.answer is not BisectionAnswer.UNDECIDED
            )
            return BisectionOutcome(right, found.answer is not BisectionAnswer.UNDECIDED, trials)
        packets = history.trial(history.deploy(found.next))
        values.setdefault(found.next, []).append(log(packets))
    raise AssertionError


def bisect_as_csit(scenario: PlantedChanges, seed: int) -> BisectionOutcome:
    """Find one change by halving, with 60 trials of each revision and jumpavg's bit counts."""
    from jumpavg import AvgStdevStats, BitCountingGroupList  # noqa: PLC0415 - optional

    history, trials = SimulatedHistory(scenario, seed), 0

    def measured(revision: int) -> list[float]:
        nonlocal trials
        trials += CSIT_TRIALS
        rate_pps = history.deploy(revision)
        return [float(history.trial(rate_pps)) for _ in range(CSIT_TRIALS)]

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
    return BisectionOutcome(high in history.culprits, decided=True, trials=trials)


class BisectionLine(NamedTuple):
    """A scenario, of one way."""

    scenario: str
    way: str
    wrong: float
    """Share of wrong answers in %."""
    wrong_below: float
    """Upper limit of that share with 95 % confidence (Clopper and Pearson), in %."""
    undecided: float
    """Share in %."""
    trials: float
    """Mean."""
    trials_p95: float


def measure(bisections: int = BISECTIONS) -> dict[str, Any]:
    """Return wrong answers and trials of all scenarios; `failed` where too many answers are wrong."""
    ways = {"ours": bisect} | ({"CSIT's": bisect_as_csit} if find_spec("jumpavg") is not None else {})
    lines: list[BisectionLine] = []
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for name, scenario in SCENARIOS.items():
            for way, run in ways.items():
                outcomes = list(pool.map(partial(run, scenario), range(bisections), chunksize=max(1, bisections // 50)))
                lines.append(_line(name, way, outcomes))
    ours = [line for line in lines if line.way == "ours"]
    theirs = [line for line in lines if line.way != "ours"]
    worst = max(ours, key=lambda line: line.wrong)
    beyond = [line.scenario for line in ours if line.wrong > 100 * allowed(bisections)]
    trials = fmean(line.trials for line in ours)
    peer = fmean(line.trials for line in theirs) if theirs else None
    row: dict[str, Any] = {
        "name": "bisect",
        "ours": trials,
        "peer": peer,
        "ratio": trials / peer if peer else None,
        "unit": "trials",
        "detail": [line._asdict() for line in lines],
        "table": (("scenario", "way", "wrong %", "95 % below", "undecided %", "trials", "p95"), lines),
        "note": f"{bisections} bisections of {REVISIONS} revisions each; peer: CSIT's way, 60 trials and jumpavg; "
        f"most wrong answers: {worst.wrong:g} % with {worst.scenario}, at most {100 * PROMISED:g} % promised",
    }
    return {**row, "failed": f"more than {100 * PROMISED:g} % wrong: {', '.join(beyond)}"} if beyond else row


def allowed(bisections: int) -> float:
    """Return the promised share of wrong answers, plus three standard errors for fewer than `BISECTIONS`."""
    errors = 0.0 if bisections >= BISECTIONS else 3 * (PROMISED * (1 - PROMISED) / bisections) ** 0.5
    return PROMISED + errors


def _line(name: str, way: str, outcomes: list[BisectionOutcome]) -> BisectionLine:
    wrong = sum(each.decided and not each.right for each in outcomes)
    total = len(outcomes)
    limit = 1.0 if wrong == total else float(beta.ppf(_CONFIDENCE, wrong + 1, total - wrong))
    trials = [each.trials for each in outcomes]
    undecided = 100 * sum(not each.decided for each in outcomes) / total
    p95 = float(np.percentile(trials, 95))
    return BisectionLine(name, way, 100 * wrong / total, 100 * limit, undecided, fmean(trials), p95)
