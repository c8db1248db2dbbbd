"""Twin testbeds: called same or different, wrong no more often than stated."""

import random
from collections.abc import Mapping
from math import exp, inf, nan
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from csit_utils.analysis.twins import ERROR, MARGIN, TwinVerdict, paired, unpaired
from csit_utils.commands.runs.twin import _cells_of
from csit_utils.dataset.contents import Contents
from resources.libraries.python.errors import ConfigError

CELLS = {"1x1": 6.5e6, "1x2": 4e6, "2x1": 5.5e6}
SEEDS = 500
ALLOWED = ERROR * SEEDS + 3 * (ERROR * (1 - ERROR) * SEEDS) ** 0.5
"""Wrong verdicts of so many seeds, three standard deviations above the stated share."""


def rounds(seed: int, change: float) -> Mapping[str, list[tuple[float, float]]]:
    """Figures of a system that drifts, that each deployment shifts, and that stands still now and then."""
    found: dict[str, list[tuple[float, float]]] = {cell: [] for cell in CELLS}
    chance = random.Random(seed)
    for number in range(8):
        drift = exp(0.004 * number)
        for cell, pps in CELLS.items():
            a, b = (pps * drift * exp(chance.gauss(0, 0.006)) * (1 - 0.01 * (chance.random() < 0.1)) for _ in range(2))
            found[cell].append((a, b * (1 + change)))
    return found


def verdicts(change: float) -> list[TwinVerdict]:
    return [paired(rounds(seed, change)).verdict for seed in range(SEEDS)]


@pytest.mark.slow
def test_equal_testbeds_are_rarely_called_different_and_unlike_ones_rarely_the_same() -> None:
    assert verdicts(0.0).count(TwinVerdict.DIFFERENT) <= ALLOWED
    assert verdicts(MARGIN).count(TwinVerdict.SAME) <= ALLOWED
    assert verdicts(-0.05).count(TwinVerdict.DIFFERENT) == SEEDS, "a change of 5 % is seen in eight rounds"


def test_bounds_contain_the_change_and_one_figure_decides_nothing() -> None:
    found = paired(rounds(1, -0.04))
    assert found.verdict is TwinVerdict.DIFFERENT
    assert all(each.low < each.change < each.high for each in found.cells)
    assert all(each.change == pytest.approx(-0.04, abs=0.01) for each in found.cells)
    alone = paired({"1x1": [(1e6, 0.5e6)]})
    assert alone.verdict is TwinVerdict.CANNOT_TELL and alone.cells[0].change == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("stored", "verdict"),
    [
        ([1e6, 1.001e6, 0.999e6, 1e6], TwinVerdict.DIFFERENT),
        ([1e6, 1.2e6, 0.8e6, 1e6], TwinVerdict.CANNOT_TELL),
        ([1e6], TwinVerdict.CANNOT_TELL),
    ],
)
def test_a_single_stored_figure_is_compared_by_the_spread_of_the_other_side(
    stored: list[float], verdict: TwinVerdict
) -> None:
    assert unpaired({"1x1": (stored, [0.9e6])}).verdict is verdict


@pytest.mark.parametrize("mrr_pps", [None, 0.0, -5.0, nan, inf, 1e308])
def test_a_stored_run_whose_rates_cannot_be_is_refused(mrr_pps: float | None) -> None:
    row = SimpleNamespace(service_type="CSC", nf_size="1c", nf_chains=1, nf_nodes=1, mrr_pps=mrr_pps)
    with pytest.raises(ConfigError, match="no result of MRR"):
        _cells_of(cast(Contents, SimpleNamespace(tests=[row])), Path("stored"))


def test_stored_figures_may_be_as_far_apart_as_numbers_can_be() -> None:
    assert unpaired({"1x1": ([1e6] * 3, [1e12, 1e-300])}).verdict is TwinVerdict.CANNOT_TELL
