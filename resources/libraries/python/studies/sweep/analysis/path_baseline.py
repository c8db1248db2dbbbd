"""The path of a service without any VNF: what the delay of every VNF that was measured alone has in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from resources.libraries.python.studies.sweep.analysis.points import observe
from resources.libraries.python.studies.sweep.model.profile import ProfileMetric
from resources.libraries.python.studies.sweep.model.record import SweepPoint

WITHOUT_PATH = (
    "the path without VNFs was not measured: the delay is the sum of the delays of the parts, each of which "
    "contains the whole path from the generator and back"
)


@dataclass(frozen=True)
class MeasuredPath:
    """Its delay between points, on straight lines: no function is looked for, since it is only taken off again.

    Below the lowest and above the highest of its loads it is as there.
    """

    name: str
    rates: tuple[float, ...]
    """Gbit/s, rising; at least one."""
    delays: tuple[float, ...]
    """Milliseconds, one way."""

    @classmethod
    def of(cls, name: str, points: Sequence[SweepPoint]) -> Self | None:
        """The path from the points of its sweep; None where none of them has a delay."""
        observed, _ = observe(points)
        known = [(each.rate, delay) for each in observed if (delay := each.values[ProfileMetric.DELAY]) is not None]
        return cls(name, *map(tuple, zip(*known, strict=True))) if known else None

    def delay_ms(self, rate: float) -> float:
        """Its delay at a rate in Gbit/s."""
        return float(np.interp(rate, self.rates, self.delays))

    def remarks(self, rates: Sequence[float]) -> list[str]:
        """Remarks on its use at some rates."""
        beyond = sum(rate > self.rates[-1] * (1 + 1e-9) for rate in rates)
        if not beyond:
            return []
        return [f"at {beyond} of {len(rates)} rates the path {self.name} was not measured: its delay is as at its last"]
