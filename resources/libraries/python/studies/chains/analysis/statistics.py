"""From seconds to a mean and a standard deviation of each chain, owner, workload and feature (Probius, Table 1)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import fsum, isfinite, sqrt
from statistics import quantiles

from resources.libraries.python.studies.chains.model.record import CHAIN, ChainRun
from resources.libraries.python.studies.chains.model.spec import Chain, Workload
from resources.libraries.python.studies.chains.model.statistic import Statistic

THROUGHPUT, LOSS, LATENCY = "throughput_bps", "loss_ratio", "latency_s"
IDLE_LATENCY = "idle_latency_s"
"""It does not depend on the workload."""
CPU = "cpu_percent"
PERFORMANCE = (THROUGHPUT, LOSS, LATENCY)
"""Features of a chain from end to end: a value for each run, not for each second."""

_Key = tuple[Chain, str, Workload, str]
REACH = 1.5
"""Interquartile ranges below the first and above the third quartile that still count (Tukey's fences)."""
LEAST_VALUES = 4
"""Fewest samples in which an outlier can be identified."""


def statistics(runs: Sequence[ChainRun]) -> tuple[Statistic, ...]:
    """Means and standard deviations (n - 1) without extraordinary seconds, in the order of the runs.

    Runs that failed have none. Runs of the same chain under the same workload are put together.
    """
    values: dict[_Key, list[float | None]] = defaultdict(list)
    for run in runs:
        if run.failed is None:
            for owner, feature, more in _features(run):
                values[run.chain, owner, run.workload, feature].extend(more)
    return tuple(_each(values))


def _each(values: dict[_Key, list[float | None]]) -> Iterator[Statistic]:
    for (chain, owner, workload, feature), seconds in values.items():
        kept, filtered = ordinary(seconds)
        if kept:
            mean = fsum(kept) / len(kept)
            yield Statistic(
                chain=chain,
                owner=owner,
                workload=workload,
                feature=feature,
                mean=mean,
                stdev=sqrt(fsum((value - mean) ** 2 for value in kept) / (len(kept) - 1)) if len(kept) > 1 else 0.0,
                samples=len(kept),
                filtered=filtered,
            )


def _features(run: ChainRun) -> Iterator[tuple[str, str, Sequence[float | None]]]:
    yield CHAIN, THROUGHPUT, (run.throughput_bps,)
    yield CHAIN, LOSS, (run.loss_ratio,)
    yield CHAIN, LATENCY, (run.latency_s,)
    yield CHAIN, IDLE_LATENCY, (run.idle_latency_s,)
    for series in run.series:
        yield series.owner, series.feature, series.values


def ordinary(values: Sequence[float | None]) -> tuple[list[float], int]:
    """The values inside the fences, in their order, and how many were outside.

    Quartiles are interpolated linearly. Unknown values count neither as the one nor as the other.
    """
    known = [value for value in values if value is not None and isfinite(value)]
    if len(known) < LEAST_VALUES:
        return known, 0
    first, _, third = quantiles(known, method="inclusive")
    reach = REACH * (third - first)
    kept = [value for value in known if first - reach <= value <= third + reach]
    return kept, len(known) - len(kept)
