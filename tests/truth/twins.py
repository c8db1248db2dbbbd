"""Twin checks of pairs of testbeds with a known difference, by the figures of 8 rounds of 3 cells.

Figures drift with time, deployments shift them, and now and then a system stands still during a trial.
`python -m tests.truth.twins --studies 500` prints the table of docs/statistics.md.
"""

from collections.abc import Iterator
from functools import partial
from math import exp
from random import Random

from csit_utils.commands.runs.twin import ERROR, MARGIN, TwinVerdict, paired
from tests.truth.known_truth import BoundedQuantity, print_table, share

_CELLS = {"1x1": 6.5e6, "1x2": 4e6, "2x1": 5.5e6}
_ROUNDS = 8
_LARGE = 0.05


def verdict(change: float, seed: int) -> TwinVerdict:
    """Return the outcome of a check of two testbeds whose rates differ by so much."""
    rounds: dict[str, list[tuple[float, float]]] = {cell: [] for cell in _CELLS}
    rng = Random(f"twins/{change}/{seed}")
    for number in range(_ROUNDS):
        drift = exp(0.004 * number)
        for cell, pps in _CELLS.items():
            a, b = (pps * drift * exp(rng.gauss(0, 0.006)) * (1 - 0.01 * (rng.random() < 0.1)) for _ in range(2))
            rounds[cell].append((a, b * (1 + change)))
    return paired(rounds).verdict


def table(studies: int) -> Iterator[BoundedQuantity]:
    same, unlike, far = (list(map(partial(verdict, change), range(studies))) for change in (0.0, MARGIN, -_LARGE))
    bound = 100 * ERROR
    yield share("equal testbeds called different", [each is TwinVerdict.DIFFERENT for each in same], bound, of="pairs")
    wrong = [each is TwinVerdict.SAME for each in unlike]
    yield share(f"testbeds that differ by {MARGIN:.0%} called the same", wrong, bound, of="pairs")
    missed = [each is not TwinVerdict.DIFFERENT for each in far]
    yield share(f"testbeds that differ by {_LARGE:.0%} not called different", missed, 1, of="pairs")


if __name__ == "__main__":
    print_table(table)
