"""False alarm rate and power of step detection in trends, on synthetic series with fixed seeds.

A series has 30 nights of noise with a standard deviation of 1 around a level of 100, unless its kind says otherwise.
FD.io CSIT's jumpavg and Apache Otava, where they are installed, get the same series. The false alarm rate of jumpavg
cannot be set; Otava has its defaults: E-divisive in windows of 50 values, changes by Student's t-test at 0.1 %.

`python -m csit_utils.bench.studies.trends` prints the tables of docs/statistics.md.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from csit_utils.analysis.trends.history import Findings, look
from csit_utils.analysis.trends.trend import ALPHA
from csit_utils.bench.studies.known_truth import BoundedQuantity
from resources.libraries.python.errors import CommandFailed

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
    jumpavg finds more than one level, `otava` that of series in which Otava finds a change point.
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
        for name, peer in (("jumpavg", _jumpavg(drawn)), ("otava", _otava(drawn))):
            if peer is not None:
                found[kind][name] = peer
    return found


def _drawn(kind: str, series: int) -> list[Sequence[float]]:
    """Return series of a kind, the same in every run."""
    rng = np.random.default_rng(tuple(KINDS).index(kind))
    return [KINDS[kind](rng) for _ in range(series)]


def _jumpavg(drawn: Sequence[Sequence[float]]) -> float | None:
    """Share of series in which jumpavg finds more than one group; None where it is not installed."""
    if find_spec("jumpavg") is None:
        return None
    from jumpavg import classify  # noqa: PLC0415 - optional

    return sum(len(classify([value * 1e4 for value in values])) > 1 for values in drawn) / len(drawn)


_OTAVA = Path(sys.prefix) / "otava" / "bin" / "python"
"""Has packages of its own, see requirements-otava.txt; `./csit bench` installs them."""
_OTAVA_PROGRAM = """
import json, sys
from otava.analysis import compute_change_points
print(sum(bool(compute_change_points(values)[0]) for values in json.load(sys.stdin)))
"""


def _otava(drawn: Sequence[Sequence[float]]) -> float | None:
    """Share of series in which Apache Otava finds a change point; None where it is not installed."""
    if not _OTAVA.exists():
        return None
    argv = [str(_OTAVA), "-c", _OTAVA_PROGRAM]
    done = subprocess.run(argv, input=json.dumps(drawn), capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr.strip()[-300:])
    return int(done.stdout) / len(drawn)


def power(series: int) -> dict[float, dict[int, float]]:
    """Return the share of steps down found within a night of their place, by size and nights since the step.

    The false alarm rate is that of one series of `CELLS`.
    """
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


def table(studies: int) -> list[BoundedQuantity]:
    """Return the worst false alarm rate of noise without a step.

    Its bound is the promised rate plus three standard errors.

    Args:
        studies: A fifth of the number of series of each kind, which is at least 20.
    """
    series = max(20, 5 * studies)
    shares = {kind: sum(bool(_look(each, ALPHA).steps) for each in _drawn(kind, series)) / series for kind in NO_STEP}
    kind, worst = max(shares.items(), key=lambda each: each[1])
    most = ALPHA + 3 * (ALPHA * (1 - ALPHA) / series) ** 0.5
    note = f"promised {100 * ALPHA:g} %, three standard errors more here; worst of {len(NO_STEP)} kinds: {kind}"
    return [BoundedQuantity("trend: false alarms", 100 * worst, 100 * most, "% of series", note)]


def tables(series: int = SERIES) -> str:
    """Return the tables of false alarms and of power in Markdown."""
    alarms = false_alarms(series)
    heads = ["alone", "one_of_many", "two_bands", "drift", "suspected", "jumpavg", "otava"]
    lines = [f"| noise | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    for kind, row in alarms.items():
        lines.append(f"| {kind} | {' | '.join(f'{row[head]:.2%}' if head in row else '' for head in heads)} |")
    lines += ["", f"| size | {' | '.join(map(str, AFTER))} |", f"|---|{'---:|' * len(AFTER)}"]
    for size, shares in power(series // 10).items():
        lines.append(f"| {size:g} | {' | '.join(f'{share:.0%}' for share in shares.values())} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(tables())
