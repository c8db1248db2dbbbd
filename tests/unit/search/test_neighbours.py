"""Predictions of a cell by the cells measured before it."""

from math import exp
from random import Random

import pytest

from resources.libraries.python.search.neighbours import CellRate, Neighbours

CELLS = sorted(
    ((rows, columns) for rows in (1, 2, 4, 8) for columns in (1, 2, 4, 8)), key=lambda cell: (cell[0] * cell[1], cell)
)


def vswitch_bound(instances: int, nfs: int) -> float:
    """Hops add up; more than one instance costs a sixth more."""
    return 1e6 / (0.155 + 0.092 * (nfs - 1)) / (1.0 if instances == 1 else 1.16)


def nf_bound(instances: int, nfs: int) -> float:
    """Each NF has a CPU of its own, faster than the vSwitch from four instances on."""
    return min(vswitch_bound(instances, nfs), 0.8e6 * instances)


@pytest.mark.parametrize("law", [vswitch_bound, nf_bound])
def test_cells_within_measured_rows_and_columns_are_predicted(law: object) -> None:
    neighbours, errors = Neighbours(), []
    for instances, nfs in CELLS:
        pps = law(instances, nfs)  # type: ignore[operator]
        inside = all(
            any(each[at] == value for each in CELLS[: CELLS.index((instances, nfs))])
            for at, value in enumerate((instances, nfs))
        )
        if inside and (guess := neighbours.predict(instances, nfs)) and guess.usable:
            errors.append(abs(guess.pps / pps - 1))
        neighbours.add(CellRate(instances, nfs, pps))
    assert len(errors) >= 4
    assert sorted(errors)[len(errors) // 2] < 0.005


@pytest.mark.slow
def test_the_interval_has_the_error_that_predictions_had() -> None:
    """Deviations of 2 % from cell to cell; the interval covers most of what is then measured."""
    covered = []
    for seed in range(20):
        rng, neighbours = Random(seed), Neighbours()
        for cell in CELLS:
            pps = vswitch_bound(*cell) * exp(rng.gauss(0, 0.02))
            if (guess := neighbours.predict(*cell)) and guess.usable:
                low_pps, high_pps = guess.interval_pps
                assert low_pps < guess.pps < high_pps
                assert guess.error > 0.005
                covered.append(low_pps <= pps <= high_pps)
            neighbours.add(CellRate(*cell, pps))
    assert len(covered) > 40
    assert sum(covered) / len(covered) > 0.8


def test_predictions_end_where_they_were_wrong() -> None:
    rng, neighbours = Random(1), Neighbours()
    for cell in CELLS:
        neighbours.add(CellRate(*cell, vswitch_bound(*cell) * exp(rng.gauss(0, 0.3))))
    guess = neighbours.predict(2, 2)
    assert guess is not None and not guess.usable
    low_pps, high_pps = guess.interval_pps
    assert high_pps / low_pps > 1.5
