"""Trials of one search: kept, limited in time, and repeated where the generator failed."""

from collections.abc import Callable

from resources.libraries.python.model.trial import Trial, TrialResult
from resources.libraries.python.search.bounds import effective_s, overhead_s

OFFERED_TOLERANCE = 0.01
"""A trial that offered less than its load by more than this share says nothing about the system under test, whether its
driver noticed or not: known generators have stretched trials and left packets unsent in silence."""
_REPEATS = 1
_REPEATS_WITHIN_REACH = 3
"""Where as high a load has been offered before, the generator was disturbed: patience is cheaper than a restart."""


class TimeUp(Exception):
    """The next trial would end after the search's time limit."""


class GeneratorTooSlow(Exception):
    """The generator could not offer a load, not even when asked again."""

    def __init__(self, intended_pps: float, offered_pps: float, attempts: int) -> None:
        self.reachable_pps = offered_pps * (1 - OFFERED_TOLERANCE)
        """What it can surely offer: a little less than its best."""
        super().__init__(
            f"the generator offered {offered_pps:.0f} pps of {intended_pps:.0f} pps in the best of {attempts} attempts"
        )


class Session:
    """Runs the trials of a search.

    Args:
        measure: Runs one trial.
        clock: Seconds.
        limit_s: Time that all trials together may take.
        report: Told of every trial.
    """

    def __init__(
        self,
        measure: Callable[[Trial], TrialResult],
        clock: Callable[[], float],
        limit_s: float,
        report: Callable[[TrialResult], None],
    ) -> None:
        self._measure = measure
        self._clock = clock
        self._report = report
        self._started_s = clock()
        self._reached_pps = 0.0
        self._overhead_s = 0.0
        self.limit_s = limit_s
        self.trials: list[TrialResult] = []

    @property
    def elapsed_s(self) -> float:
        """Time since the search began."""
        return self._clock() - self._started_s

    def run(self, trial: Trial) -> tuple[TrialResult, float]:
        """Run a trial until the generator has offered its load.

        Returns:
            The result, and the seconds that it counts towards a duration sum.

        Raises:
            TimeUp: There is no time for it.
            GeneratorTooSlow: The load cannot be offered.
        """
        attempts = 0
        best_pps = 0.0
        while True:
            result = self._once(trial)
            if not result.generator_limited:
                self._reached_pps = max(self._reached_pps, trial.load_pps)
                return result, effective_s(result)
            attempts += 1
            best_pps = max(best_pps, result.offered_pps)
            within_reach = self._reached_pps >= trial.load_pps
            if attempts > (_REPEATS_WITHIN_REACH if within_reach else _REPEATS):
                raise GeneratorTooSlow(trial.load_pps, best_pps, attempts)

    def _once(self, trial: Trial) -> TrialResult:
        if self.trials and self.elapsed_s + trial.duration_s + self._overhead_s > self.limit_s:
            raise TimeUp(
                f"the search was ended after {self.elapsed_s:.1f} s and {len(self.trials)} trials by its time limit of "
                f"{self.limit_s:g} s"
            )
        result = judged(self._measure(trial))
        # The last overhead, not the mean: it follows a machine that gets slower.
        self._overhead_s = overhead_s(result)
        self.trials.append(result)
        self._report(result)
        return result


def judged(result: TrialResult) -> TrialResult:
    """The result, marked where less was offered than intended."""
    trial = result.trial
    # Each flow may round its share of the packets down.
    slack_pps = len(result.flows) / ((result.aborted and result.offered_duration_s) or trial.duration_s)
    if result.generator_limited or result.offered_pps + slack_pps >= trial.load_pps * (1 - OFFERED_TOLERANCE):
        return result
    note = f"offered {result.offered_pps:.0f} pps of {trial.load_pps:.0f} pps"
    return result.model_copy(update={"generator_limited": True, "note": "; ".join(filter(None, [result.note, note]))})
