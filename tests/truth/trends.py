"""False alarm rate and power of step detection in trends, on synthetic series with fixed seeds.

A series has 30 nights of noise with a standard deviation of 1 around a level of 100, unless its kind says otherwise.
FD.io CSIT's jumpavg, where it is installed, gets the same series; its false alarm rate cannot be set.
`python -m tests.truth.trends` prints the tables of docs/statistics.md.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec

import numpy as np

from csit_utils.analysis.trends.history import Findings, look
from csit_utils.analysis.trends.trend import ALPHA
from tests.truth.known_truth import BoundedQuantity, share

NIGHTS = 30
SERIES = 500
CELLS = 500
"""Series of the dataset that a series is one of: its false alarm rate is `ALPHA / CELLS`."""
LEVEL = 100.0
SIZES = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
"""Of steps, in standard deviations of the noise."""
AFTER = (2, 3, 4, 5, 6, 8, 10, 15)
"""Nights since the step."""

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


def _look(values: Sequence[float], alpha: float, resolution: float = 0.0) -> Findings:
    return look(values, [_FIRST + timedelta(days=night) for night in range(len(values))], resolution, alpha)


def false_alarms(series: int) -> dict[str, dict[str, float]]:
    """Return by kind the share of series with a step: at `ALPHA` (`alone`), and as one of `CELLS` (`one_of_many`).

    `two_bands`, `drift` and `suspected` are the shares of series with these findings, `jumpavg` that of series in which
    jumpavg finds more than one level.
    """
    found: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        drawn = _drawn(kind, series)
        alone = [_look(values, ALPHA) for values in drawn]
        crowd = [_look(values, ALPHA / CELLS) for values in drawn]
        found[kind] = {
            "alone": sum(bool(each.steps) for each in alone) / series,
            "one_of_many": sum(bool(each.steps) for each in crowd) / series,
            "two_bands": sum(each.bands is not None for each in crowd) / series,
            "drift": sum(each.drift is not None for each in alone) / series,
            "suspected": sum(each.suspected is not None for each in crowd) / series,
        }
        if (peer := _jumpavg(drawn)) is not None:
            found[kind]["jumpavg"] = peer
    return found


def _drawn(kind: str, series: int) -> list[Sequence[float]]:
    """Return series of a kind, the same in every run."""
    rng = np.random.default_rng(tuple(KINDS).index(kind))
    return [KINDS[kind](rng) for _ in range(series)]


def _jumpavg(drawn: Sequence[Sequence[float]]) -> float | None:
    """Share of series in which jumpavg finds more than one group; None where it is not installed."""
    if find_spec("jumpavg") is None:
        return None
    from jumpavg import classify

    return sum(len(classify([value * 1e4 for value in values])) > 1 for values in drawn) / len(drawn)


def power(series: int, sizes: Sequence[float] = SIZES) -> dict[float, dict[int, float]]:
    """Return the share of steps down found within a night of their place, by size and nights since the step.

    The false alarm rate is that of one series of `CELLS`.
    """
    found: dict[float, dict[int, float]] = {}
    for size in sizes:
        found[size] = {}
        for after in AFTER:
            rng = np.random.default_rng(1000 * after + int(10 * size))
            hits = 0
            for _ in range(series):
                values = [
                    value - size * (night >= NIGHTS - after) for night, value in enumerate(_gaussian(rng))
                ]  # fmt: skip
                steps = _look(values, ALPHA / CELLS).steps
                hits += any(step.change < 0 and abs(step.index - NIGHTS + after) <= 1 for step in steps)
            found[size][after] = hits / series
    return found


def table(studies: int) -> list[BoundedQuantity]:
    """Return the shares of series with a false alarm, and with a missed step of 12 standard deviations."""
    found = {kind: [bool(_look(each, ALPHA).steps) for each in _drawn(kind, 5 * studies)] for kind in NO_STEP}
    return [
        *(share(f"false alarm, {kind}", alarms, 100 * ALPHA, "series") for kind, alarms in found.items()),
        *(
            BoundedQuantity(f"step missed after {after} nights", 100 * (1 - hit), 5, "% of series")
            for after, hit in power(studies, sizes=(12.0,))[12.0].items()
            if after > AFTER[0]
        ),
    ]


def tables(series: int = SERIES) -> str:
    """Return the tables of false alarms and of power in Markdown."""
    alarms = false_alarms(series)
    heads = ["alone", "one_of_many", "two_bands", "drift", "suspected", "jumpavg"]
    lines = [f"| noise | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    for kind, row in alarms.items():
        lines.append(f"| {kind} | {' | '.join(f'{row[head]:.2%}' if head in row else '' for head in heads)} |")
    lines += ["", f"| size | {' | '.join(map(str, AFTER))} |", f"|---|{'---:|' * len(AFTER)}"]
    for size, shares in power(series // 10).items():
        lines.append(f"| {size:g} | {' | '.join(f'{share:.0%}' for share in shares.values())} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(tables())
