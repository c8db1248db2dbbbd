"""Differences between blocks of one flow, with an interval that a few disturbed blocks do not move. Pure."""

import random
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from statistics import median
from typing import NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """Of a difference."""

    middle: float
    interval: tuple[float, float] | None
    """Of 95 %; None where there are too few differences for one."""

    def divided(self, by: float) -> "Estimate":
        """A part of it."""
        return Estimate(self.middle / by, self.interval and (self.interval[0] / by, self.interval[1] / by))


def estimate(differences: Sequence[float]) -> Estimate:
    """The Hodges-Lehmann estimate: the median of the means of all pairs, each value paired with itself too.

    Its interval is made of the signed-rank test of Wilcoxon, exact for any distribution that is symmetric about the
    middle; differences between blocks in an order by chance are. Hollander, Wolfe and Chicken, Nonparametric
    Statistical Methods, 3rd edition, sections 3.2 and 3.3.

    Args:
        differences: At least one; six or more for an interval.
    """
    means = sorted((one + other) / 2 for one, other in combinations_with_replacement(differences, 2))
    cut = _cut(len(differences))
    return Estimate(median(means), (means[cut], means[-1 - cut]) if cut is not None else None)


def _cut(number: int, level: float = 0.95) -> int | None:
    """How many of the sorted means lie outside the interval at each end."""
    ways = np.ones(1)
    for rank in range(1, number + 1):  # each rank is in the sum or not, with equal chance
        ways = (np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))) / 2
    outside = int(np.searchsorted(np.cumsum(ways), (1 - level) / 2, "right"))
    return outside - 1 if outside else None


def orders(names: Sequence[str], rounds: int, seed: int = 1) -> Iterator[list[str]]:
    """An order by chance for each round, each followed by its reverse: a steady drift cancels out in the two."""
    chance = random.Random(seed)  # noqa: S311 - the order of blocks
    for number in range(rounds):
        if number % 2 == 0:
            order = chance.sample(names, len(names))
        else:
            order.reverse()
        yield list(order)
