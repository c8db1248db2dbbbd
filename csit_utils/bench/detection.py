"""How often noise is called a step, and which steps are found: measured on synthetic series with seeds.

Series are 30 nights of noise with a standard deviation of 1 around a level of 100, or what the kind says. The peer is
FD.io CSIT's jumpavg, where it is installed, on the same series; it has no rate of false alarms that could be set.

`python -m csit_utils.bench.detection` prints the tables of docs/statistics.md.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any

import numpy as np

from csit_utils.analysis.history import Findings, look
from csit_utils.analysis.trend import ALPHA

NIGHTS = 30
SERIES = 500
CELLS = 500
"""Of the dataset that a single series is taken from: it gets `ALPHA / CELLS`."""
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
    """Each night remembers half of the one before; the standard deviation is 1."""
    values = [float(rng.normal())]
    for value in rng.normal(0, np.sqrt(0.75), NIGHTS - 1):
        values.append(0.5 * values[-1] + float(value))
    return [LEVEL + value for value in values]


def _outliers(rng: _Rng) -> Sequence[float]:
    """Each night goes wrong with 5 %, and then by 30 standard deviations."""
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
    "each night remembers half of the last": _dependent,
    "drift by 3 in all": _drifting(3),
    "drift by 10 in all": _drifting(10),
}
NO_STEP = tuple(KINDS)[:6]
"""Kinds for which the promised rate of false alarms is to hold."""


def _look(values: Sequence[float], alpha: float, resolution: float = 0.0) -> Findings:
    return look(values, [_FIRST + timedelta(days=night) for night in range(len(values))], resolution, alpha)


def false_alarms(series: int) -> dict[str, dict[str, float]]:
    """Share of series of each kind in which a step is found, at `ALPHA` for one series and as one of `CELLS`."""
    found: dict[str, dict[str, float]] = {}
    for number, (kind, draw) in enumerate(KINDS.items()):
        rng = np.random.default_rng(number)
        drawn = [draw(rng) for _ in range(series)]
        alone = [_look(values, ALPHA) for values in drawn]
        crowd = [_look(values, ALPHA / CELLS) for values in drawn]
        found[kind] = {
            "alone": sum(bool(each.steps) for each in alone) / series,
            "one_of_many": sum(bool(each.steps) for each in crowd) / series,
            "two_bands": sum(each.bands is not None for each in crowd) / series,
            "drift": sum(each.drift is not None for each in alone) / series,
            "suspected": sum(each.suspected is not None for each in crowd) / series,
        }
        peer = _jumpavg(drawn)
        if peer is not None:
            found[kind]["jumpavg"] = peer
    return found


def _jumpavg(drawn: Sequence[Sequence[float]]) -> float | None:
    """Share of series in which the peer sees more than one group; None without it."""
    if find_spec("jumpavg") is None:
        return None
    from jumpavg import classify  # noqa: PLC0415 - a peer that need not be there

    return sum(len(classify([value * 1e4 for value in values])) > 1 for values in drawn) / len(drawn)


def power(series: int) -> dict[float, dict[int, float]]:
    """Share of steps down that are found within a night of their place, as one of `CELLS`, by size and nights since."""
    found: dict[float, dict[int, float]] = {}
    for size in SIZES:
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


def measure(series: int = SERIES) -> dict[str, Any]:
    """The worst rate of false alarms of noise that has no step, against what is promised.

    Told under `failed` where it is above the promise by more than three standard errors.
    """
    detail = false_alarms(series)
    kind, worst = max(((kind, detail[kind]["alone"]) for kind in NO_STEP), key=lambda each: each[1])
    most = ALPHA + 3 * (ALPHA * (1 - ALPHA) / series) ** 0.5
    row: dict[str, Any] = {
        "name": "trend_false_alarms",
        "ours": worst,
        "peer": ALPHA,
        "ratio": worst / ALPHA,
        "unit": "share of series",
        "series": series,
        "detail": detail,
        "note": f"peer is the promise; worst of {len(NO_STEP)} kinds of noise: {kind}",
    }
    return {**row, "failed": f"{worst:.2%} of series without a step have one"} if worst > most else row


def tables(series: int = SERIES) -> str:
    """Both tables in Markdown."""
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
