"""Whether service instances get equal shares. Rates offered are equal for all instances by construction of a trial."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from csit_utils.dataset.rows import InstanceRow
from resources.libraries.python.model.evidence import Itemized
from resources.libraries.python.search.itemize import itemize, itemize_goal
from resources.libraries.python.studies.density.model.record import DensityRecord


def itemized(result: DensityRecord) -> tuple[Itemized, ...]:
    """Throughput figures of a test per instance and direction: of the record, or of its trials in older records."""
    if result.itemized:
        return result.itemized
    goals = (itemize_goal(found, result.trials) for found in (result.ndr, result.pdr, result.soak) if found)
    rate = itemize("MRR" if result.mrr else "ORR", (each for each in result.trials if each.trial.purpose == "mrr"))
    return tuple(found for found in (*goals, rate) if found is not None)


@dataclass(frozen=True)
class Fairness:
    """How equally the instances of a test are served at one of its loads. Rates are of both directions together."""

    number: str
    """NDR, PDR, SOAK, MRR, ORR, or overload."""
    load_pps: float
    index: float | None
    """Jain's index; None for a single instance."""
    rates_pps: tuple[tuple[int, float], ...]
    """Instance and what was forwarded of it, by instance."""
    worst_loss_ratio: float
    """Of the instance and direction that lost most of what it was offered."""

    @property
    def lowest(self) -> tuple[int, float]:
        """The instance that gets least, and what; of equals the first."""
        return min(self.rates_pps, key=lambda each: each[1])

    @property
    def highest(self) -> tuple[int, float]:
        """The instance that gets most, and what; of equals the first."""
        return max(self.rates_pps, key=lambda each: each[1])

    @property
    def ratio(self) -> float | None:
        """Least over most; None where nothing is forwarded."""
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
