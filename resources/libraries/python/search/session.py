"""Trials of one search: kept, limited in time, repeated and then charged where the generator fell short."""

from collections.abc import Callable
from math import inf

from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.quantities import rate, rates
from resources.libraries.python.search.algorithms.bounds import effective_s, overhead_s

OFFERED_TOLERANCE = 0.01
"""A trial that offered less than its load by more than this share says nothing about the system under test, whether its
driver noticed or not: known generators have stretched trials and left packets unsent in silence."""
_REPEATS = 1
_REPEATS_WITHIN_REACH = 3
"""Attempts if a load as high has been offered before: the generator was only disturbed."""


class TimeUp(Exception):
    """The next trial would end after the search's time limit."""


class NothingOffered(Exception):
    """The generator sent no packet, not even when asked again."""


class Session:
    """Runs the trials of a search.

    `limit_s`: Time that all trials together may take.
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
        self._charged_pps = inf
        self._overhead_s = 0.0
        self.limit_s = limit_s
        self.trials: list[TrialResult] = []

    @property
    def elapsed_s(self) -> float:
        """Time since the search began."""
        return self._clock() - self._started_s

    def run(self, trial: Trial) -> tuple[TrialResult, float]:
        """Run a trial, again where the generator fell short of its load; the last attempt is charged.

        A charged trial counts what was not sent as lost, as FD.io CSIT does. So a search ends also where the generator
        cannot offer a load; `from_generator` marks an upper bound due to charges only.

        Returns:
            The result, and the seconds that it counts towards a duration sum.

        Raises:
            TimeUp: There is no time for it.
            NothingOffered: The generator sends nothing.
        """
        repeats = self._repeats(trial.load_pps)
        for left in reversed(range(repeats + 1)):
            result = self._once(trial, charge=not left)
            if not result.generator_limited:
                self._reached_pps = max(self._reached_pps, trial.load_pps)
                break
        else:
            if not result.sent:
                raise NothingOffered(
                    f"the generator offered nothing of {rate(trial.load_pps)} in {repeats + 1} attempts"
                )
            self._charged_pps = min(self._charged_pps, trial.load_pps)
        return result, effective_s(result)

    def _repeats(self, load_pps: float) -> int:
        """Number of repetitions of a short trial before it is charged."""
        if load_pps <= self._reached_pps:
            return _REPEATS_WITHIN_REACH
        # Above a load that was charged already, another attempt would be charged as well.
        return 0 if load_pps >= self._charged_pps else _REPEATS

    def _once(self, trial: Trial, *, charge: bool) -> TrialResult:
        if self.trials and self.elapsed_s + trial.duration_s + self._overhead_s > self.limit_s:
            raise TimeUp(
                f"the search was stopped after {self.elapsed_s:.1f} s and {len(self.trials)} trials by its "
                f"time limit of {self.limit_s:g} s"
            )
        result = judged(self._measure(trial))
        if charge and result.generator_limited and result.sent:
            result = charged(result)
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
    note = f"offered {' of '.join(rates(result.offered_pps, trial.load_pps))}"
    return result.model_copy(update={"generator_limited": True, "note": "; ".join(filter(None, [result.note, note]))})


def charged(result: TrialResult) -> TrialResult:
    """The result of a trial that fell short, with what was not sent of the intended load charged as lost."""
    trial = result.trial
    # A generator that stretches a trial sends all of its packets, at a lower rate.
    sending_s = result.offered_duration_s if result.aborted else max(trial.duration_s, result.offered_duration_s)
    unsent = max(0, round(trial.load_pps * sending_s) - result.sent)
    note = f"{unsent:,} packets that the generator did not send are charged as lost"
    return result.model_copy(update={"unsent": unsent, "note": "; ".join(filter(None, [result.note, note]))})
