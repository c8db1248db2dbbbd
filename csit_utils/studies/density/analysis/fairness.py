"""Fairness among service instances, all of which are offered the same load."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from csit_utils.dataset.rows import InstanceRow


@dataclass(frozen=True)
class Fairness:
    """Fairness among the instances of a test at one load. Rates are sums of both directions."""

    number: str
    """NDR, PDR, SOAK, MRR, ORR, or overload."""
    load_pps: float
    index: float | None
    """Jain's index; None for a single instance."""
    rates_pps: tuple[tuple[int, float], ...]
    """Instances with their forwarded rates."""
    worst_loss_ratio: float
    """The highest loss ratio of an instance and direction."""

    @property
    def lowest(self) -> tuple[int, float]:
        """The first instance with the lowest rate, and its rate."""
        return min(self.rates_pps, key=lambda each: each[1])

    @property
    def highest(self) -> tuple[int, float]:
        """The first instance with the highest rate, and its rate."""
        return max(self.rates_pps, key=lambda each: each[1])

    @property
    def ratio(self) -> float | None:
        """Lowest over highest rate; None if nothing is forwarded."""
        return self.lowest[1] / self.highest[1] if self.highest[1] > 0 else None


def fairness_of(rows: Iterable[InstanceRow]) -> dict[str, Fairness]:
    """By number, for the rows of one test."""
    numbers: dict[str, list[InstanceRow]] = {}
    for row in rows:
        numbers.setdefault(row.number, []).append(row)
    return {number: _fairness(number, own) for number, own in numbers.items()}


def _fairness(number: str, rows: Sequence[InstanceRow]) -> Fairness:
    rates: dict[int, float] = {}
    for row in rows:
        rates[row.instance] = rates.get(row.instance, 0.0) + row.forwarded_pps
    worst = max(row.loss_ratio for row in rows)
    return Fairness(number, rows[0].load_pps, rows[0].fairness, tuple(sorted(rates.items())), worst)
