"""What a network function does in any company: as measured, or predicted from pairs."""

from collections.abc import Iterable, Sequence
from math import prod, sqrt
from statistics import fmean

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.interference import Normalized


class Companies:
    """Normalized throughputs by target and company.

    A company that was not measured is predicted: each neighbour takes its share of what the others leave, so that
    N(i | j, k) = N(i | j) * N(i | k). That is a model; `prediction_error` says how far it is from what was measured.

    Args:
        matrix: What was measured.
    """

    def __init__(self, matrix: Sequence[Normalized]) -> None:
        self._rows = {(row.target, tuple(sorted(row.against))): row for row in matrix}

    def normalized(self, target: str, against: Iterable[str]) -> float:
        """Throughput of a target in a company over its throughput alone.

        Raises:
            ConfigError: Neither the company nor one of its pairs was measured.
        """
        return prod(row.mean for row in self._rows_of(target, tuple(sorted(against))))

    def half_width(self, target: str, against: Iterable[str]) -> float:
        """Half of the confidence interval of `normalized`, to first order; 0 where there is none."""
        rows = self._rows_of(target, tuple(sorted(against)))
        whole = prod(row.mean for row in rows)
        shares = [(row.high - row.low) / 2 / row.mean for row in rows if row.low is not None and row.high and row.mean]
        return whole * sqrt(sum(share**2 for share in shares))

    def prediction_error(self) -> float | None:
        """Mean of |predicted - measured| over the companies of three and more that were measured; None of none."""
        errors = [
            abs(prod(self._pair(target, each).mean for each in against) - row.mean)
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
            raise ConfigError(f"{target} was not measured beside {other}, so nobody knows how they get along")
        return row
