"""Whether two testbeds give the same figures: paired rounds of the same cells, with stated chances of error.

The figures of a cell are compared as logarithms of their ratio, by Student's t over rounds. A difference is called
where the interval of a cell, at a level shared by all cells (Bonferroni), does not contain zero; equality where all
intervals lie within the margin (two one-sided tests, Schuirmann 1987). Each is wrong with at most the stated
probability.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, inf, log, sqrt
from statistics import fmean, variance

from scipy.stats import t as student

MARGIN = 0.02
"""Difference below which figures count as the same."""
ERROR = 0.05
MIN_ROUNDS = 3


class TwinVerdict(StrEnum):
    """Outcome over all cells."""

    SAME = "same"
    DIFFERENT = "different"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class CellChange:
    """Change of a cell from A to B, as a share of A."""

    cell: str
    a_pps: float
    """Geometric mean, as the next."""
    b_pps: float
    change: float
    low: float
    high: float
    """Bounds of the change at the level of all cells; infinite with too few figures."""

    @property
    def differs(self) -> bool:
        """Whether the interval excludes equality."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class TwinComparison:
    """All cells, with the verdict."""

    verdict: TwinVerdict
    cells: tuple[CellChange, ...]


def paired(cells: Mapping[str, Sequence[tuple[float, float]]]) -> TwinComparison:
    """Compare figures of A and B in pps that were measured in alternate rounds."""
    changes = []
    for cell, rounds in cells.items():
        a, b = ([log(pair[side]) for pair in rounds] for side in (0, 1))
        shifts = [after - before for before, after in zip(a, b, strict=True)]
        error = sqrt(variance(shifts) / len(shifts)) if len(shifts) > 1 else inf
        changes.append(_change(cell, a, b, error, len(shifts) - 1, len(cells)))
    return _verdict(changes)


def unpaired(cells: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> TwinComparison:
    """Compare figures of A and B in pps that were measured at other times; one of the sides may have a single one.

    Both sides are taken to spread alike.
    """
    changes = []
    for cell, sides in cells.items():
        a, b = ([log(pps) for pps in side] for side in sides)
        freedom = len(a) + len(b) - 2
        squares = sum((len(side) - 1) * variance(side) for side in (a, b) if len(side) > 1)
        error = sqrt(squares / freedom * (1 / len(a) + 1 / len(b))) if freedom > 0 else inf
        changes.append(_change(cell, a, b, error, freedom, len(cells)))
    return _verdict(changes)


def _change(  # noqa: PLR0917 - both sides, and what their difference is known by
    cell: str, a: Sequence[float], b: Sequence[float], error: float, freedom: int, cells: int
) -> CellChange:
    shift = fmean(b) - fmean(a)
    reach = error * float(student.ppf(1 - ERROR / 2 / cells, freedom)) if freedom > 0 else inf
    low, high = (exp(shift + side * reach) - 1 if reach < inf else side * inf for side in (-1, 1))
    return CellChange(cell, exp(fmean(a)), exp(fmean(b)), exp(shift) - 1, low, high)


def _verdict(changes: Sequence[CellChange]) -> TwinComparison:
    if all(each.low > -MARGIN and each.high < MARGIN for each in changes):
        verdict = TwinVerdict.SAME
    elif any(each.differs for each in changes):
        verdict = TwinVerdict.DIFFERENT
    else:
        verdict = TwinVerdict.CANNOT_TELL
    return TwinComparison(verdict, tuple(changes))
