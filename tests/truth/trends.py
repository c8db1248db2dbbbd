"""False alarm rate and power of step detection in trends, on synthetic series with fixed seeds.

A series has 30 nights of noise with a standard deviation of 1 around a level of 100, unless its kind says otherwise.
FD.io CSIT's jumpavg, where it is installed, gets the same series; its false alarm rate cannot be set.
`python -m tests.truth.trends` prints the tables of docs/statistics.md.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from statistics import fmean, median

import numpy as np

from csit_utils.analysis.trends.events import CHANCE
from csit_utils.analysis.trends.steps import noise, split_chance
from csit_utils.analysis.trends.trend import ALPHA, Findings, look
from tests.truth.known_truth import BoundedQuantity, print_table, share

NIGHTS = 30
CELLS = 500
"""Series of the dataset that a series is one of: its false alarm rate is `ALPHA / CELLS`."""
LEVEL = 100.0
SIZES = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
"""Of steps, in standard deviations of the noise."""
AFTER = (2, 3, 4, 5, 6, 8, 10, 15)
"""Nights since the step."""
_LARGE = 6.0
"""Least size of steps that are promised to be found."""

_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
_Rng = np.random.Generator
_Draw = Callable[[_Rng], Sequence[float]]


def _gaussian(rng: _Rng) -> Sequence[float]:
    return [float(value) for value in rng.normal(LEVEL, 1, NIGHTS)]


def _student(freedom: float) -> _Draw:
    return lambda rng: [float(LEVEL + value) for value in rng.standard_t(freedom, NIGHTS)]


def _two_bands(share: float, gap: float) -> _Draw:
    return lambda rng: [
        float(value - gap * low) for value, low in zip(_gaussian(rng), rng.random(NIGHTS) < share, strict=True)
    ]


def _drifting(total: float) -> _Draw:
    return lambda rng: [value + total * night / (NIGHTS - 1) for night, value in enumerate(_gaussian(rng))]


def _dependent(rng: _Rng) -> Sequence[float]:
    """An autoregressive series with a coefficient of 0.5 and a standard deviation of 1."""
    values = [float(rng.normal())]
    for value in rng.normal(0, np.sqrt(0.75), NIGHTS - 1):
        values.append(0.5 * values[-1] + float(value))
    return [LEVEL + value for value in values]


def _outliers(rng: _Rng) -> Sequence[float]:
    """Each night is an outlier of 30 standard deviations with a probability of 5 %."""
    return [value - 30 * (rng.random() < 0.05) for value in _gaussian(rng)]


KINDS: Mapping[str, _Draw] = {
    "Gaussian": _gaussian,
    "heavy tails (Student's t, 3 degrees of freedom)": _student(3),
    "very heavy tails (Student's t, 2 degrees of freedom)": _student(2),
    "rounded to whole standard deviations": lambda rng: [float(round(value)) for value in _gaussian(rng)],
    "5 % of nights wrong by 30": _outliers,
    "two bands, 10 apart, 25 % low": _two_bands(0.25, 10),
    "two bands, 10 apart, 40 % low": _two_bands(0.4, 10),
    "two bands, 6 apart, 25 % low": _two_bands(0.25, 6),
    "autocorrelated, coefficient 0.5": _dependent,
    "drift by a total of 3": _drifting(3),
    "drift by a total of 10": _drifting(10),
}
NO_STEP = tuple(KINDS)[:6]
"""Kinds for which the false alarm rate is promised."""


def _look(values: Sequence[float], alpha: float) -> Findings:
    return look(values, [_FIRST + timedelta(days=night) for night in range(len(values))], 0.0, alpha)


def table(series: int) -> Iterator[BoundedQuantity]:
    """Yield the share of so many series of each kind with a step that is none, and of a tenth with a missed step.

    `one of 500` are steps at `ALPHA / CELLS`, as are bands, suspicions and missed steps.
    """
    for number, (kind, draw) in enumerate(KINDS.items()):
        rng = np.random.default_rng(number)
        drawn = [draw(rng) for _ in range(series)]
        alone, crowd = ([_look(values, alpha) for values in drawn] for alpha in (ALPHA, ALPHA / CELLS))
        others = {
            "one of 500": [bool(each.steps) for each in crowd],
            "two bands": [each.bands is not None for each in crowd],
            "drift": [each.drift is not None for each in alone],
            "suspected": [each.suspected is not None for each in crowd],
            "probable": [_is_probable(values, NIGHTS // 2) for values in drawn],
            "jumpavg": [_is_step_by_jumpavg(values) for values in drawn],
        }
        note = ", ".join(f"{name} {100 * fmean(row):.1f} %" for name, row in others.items())
        most = 100 * ALPHA if kind in NO_STEP else 100.0
        yield share(f"false alarm, {kind}", [bool(each.steps) for each in alone], most, "series", note)
    for size in SIZES:
        missed = {after: 1 - _power(size, after, series // 10) for after in AFTER}
        note = ", ".join(f"{after} nights {100 * part:.0f} %" for after, part in missed.items())
        for after in AFTER[1:]:
            known = [_is_probable(values, NIGHTS - after) for values in _fallen(size, after, series)]
            note += f", {after} at a known place {100 * (1 - fmean(known)):.0f} %"
        most = 5.0 if size >= _LARGE else 100.0
        yield BoundedQuantity(f"step of {size:g} missed", 100 * missed[AFTER[-1]], most, "% of series", note)


def _is_probable(values: Sequence[float], place: int) -> bool:
    """Whether a fall at a place is probable, if others have a step there."""
    before, after = values[:place], values[place:]
    return median(after) < median(before) and split_chance(before, after, noise(values)) / 2 <= CHANCE


def _is_step_by_jumpavg(values: Sequence[float]) -> bool:
    """Whether jumpavg finds more than one group; no where it is not installed."""
    if find_spec("jumpavg") is None:
        return False
    from jumpavg import classify

    return len(classify([value * 1e4 for value in values])) > 1


def _fallen(size: float, after: int, series: int) -> Iterator[Sequence[float]]:
    rng = np.random.default_rng(1000 * after + int(10 * size))
    for _ in range(series):
        yield [value - size * (night >= NIGHTS - after) for night, value in enumerate(_gaussian(rng))]


def _power(size: float, after: int, series: int) -> float:
    """Share of steps down that are found within a night of their place so many nights later."""
    hits = 0
    for values in _fallen(size, after, series):
        steps = _look(values, ALPHA / CELLS).steps
        hits += any(step.change < 0 and abs(step.index - NIGHTS + after) <= 1 for step in steps)
    return hits / series


if __name__ == "__main__":
    print_table(table, 500)
