"""What watching costs: throughput of the same trial, by turns watched and not watched."""

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import isfinite, log, sqrt
from typing import Any

from scipy.stats import t as student

from csit_utils.bench.nf_under_load import Service, service
from resources.libraries.python.drivers.sampler.features import LinuxFeatureSampler
from resources.libraries.python.drivers.tracer.driver import KernelTracer
from resources.libraries.python.errors import CsitError

_GOAL = 0.01
_PAIRS = 40
_TRIAL_S = 1.0
_LOAD_PPS = 600e3
"""More than a chain of the local world forwards on few cores: then what watching takes is missing at the receiver."""

Watcher = Callable[[Service], AbstractContextManager[None]]


@contextmanager
def tracing(here: Service) -> Iterator[None]:
    """The tracer as a chain study uses it."""
    tracer = KernelTracer(lambda: here.threads, here.lock)
    tracer.start()
    try:
        yield
    finally:
        tracer.stop()
    # A busy NF may have no CPU in a window: no events are no defect, but to trace none is.
    if "window" not in tracer.facts():
        raise CsitError(f"the tracer does not trace: {tracer.facts()}")


@contextmanager
def sampling(here: Service) -> Iterator[None]:
    """The feature sampler as a chain study uses it."""
    sampler = LinuxFeatureSampler(here.plan, here.fabric)
    sampler.start()
    try:
        yield
    finally:
        series = sampler.stop()
    if not series:
        raise CsitError(f"the sampler read nothing: {sampler.facts()}")


WATCHERS: Sequence[Watcher] = (tracing, sampling)
"""All at once, as in a study."""


def measure(pairs: int = _PAIRS, trial_s: float = _TRIAL_S) -> dict[str, Any]:
    """Packets received in pairs of trials, one watched and one not, by chance which comes first.

    Args:
        pairs: Of trials.
        trial_s: Length of one, in seconds. Watching begins before it and ends after it.

    Returns:
        `ours`: what watching takes, as a share of the throughput; no peer, `ratio` is to the goal. `detail` has the
        95 % interval (Student's t of the logarithm of the ratio within each pair), and the same of two trials of which
        none is watched: what this machine's noise makes of nothing.

    Raises:
        Unsupported: This machine cannot run the local world.
        CsitError: The tracer saw nothing.
    """
    with service() as here:
        watched, plain = _trials(here, pairs, trial_s)
    cost, spread = _mean([log(other / one) for one, other in zip(watched, plain, strict=True)])
    nothing, noise = _mean([log(one / other) for one, other in zip(plain[::2], plain[1::2], strict=False)])
    return {
        "name": "watching_cost",
        "ours": cost,
        "peer": None,
        "goal": _GOAL,
        "ratio": round(cost / _GOAL, 2),
        "unit": "ratio",
        "note": f"{cost:.2%} +- {spread:.2%} of {statistics.median(plain) / trial_s / 1e3:.0f} kpps, 95 % interval of "
        f"{pairs} pairs of {trial_s:g} s; two unwatched trials differ by {nothing:.2%} +- {noise:.2%}",
        "detail": {"interval": _interval(cost, spread), "noise": _interval(nothing, noise)},
    }


def _trials(here: Service, pairs: int, trial_s: float) -> tuple[list[int], list[int]]:
    """Packets received in watched and in unwatched trials."""
    chance = random.Random(1)  # noqa: S311 - the order of trials
    watched: list[int] = []
    plain: list[int] = []
    for _ in range(pairs):
        for with_watchers in chance.sample((True, False), 2):
            (watched if with_watchers else plain).append(_trial(here, trial_s, WATCHERS if with_watchers else ()))
    return watched, plain


def _trial(here: Service, trial_s: float, watchers: Sequence[Watcher]) -> int:
    """Packets received in one trial; all watch from before until after it, as in a study."""
    if watchers:
        with watchers[0](here):
            return _trial(here, trial_s, watchers[1:])
    return here.send(_LOAD_PPS, trial_s).received


def _interval(mean: float, half: float) -> list[float] | None:
    """None of a single value, which has none."""
    return [mean - half, mean + half] if isfinite(half) else None


def _mean(logarithms: Sequence[float]) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval; the latter infinite for a single value."""
    if len(logarithms) < 2:
        return logarithms[0], float("inf")
    error = statistics.stdev(logarithms) / sqrt(len(logarithms))
    return statistics.fmean(logarithms), error * float(student.ppf(0.975, len(logarithms) - 1))
