"""The benchmark of a cold matrix: same cells and evidence on all sides, and systems that nothing was chosen by."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from csit_utils.bench.search import matrix as bench
from csit_utils.bench.search.held_out_systems import HeldOut, held_out
from resources.libraries.python.drivers.sim.simulation import ModelName


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return bench.measure(1, (ModelName.KNEE, HeldOut.STAIRS))


@pytest.mark.slow
def test_predictions_save_time_on_both_families(found: dict[str, Any]) -> None:
    for family in ("chosen", "held_out"):
        assert found[f"{family}_ratio"] < found[f"{family}_cold_ratio"] < 1
    assert found["ratio"] == found["chosen_ratio"]
    assert "failed" not in found


@pytest.mark.slow
def test_bounds_do_not_depend_on_predictions(found: dict[str, Any]) -> None:
    """A system without chance has the same bounds in any case: all evidence is made."""
    knee = found["detail"]["knee"]
    assert knee["ours"]["predicted_share"] > 0.3
    for key in ("ndr_rms_error_percent", "pdr_rms_error_percent"):
        assert knee["ours"][key] == knee["cold"][key]


@pytest.mark.slow
def test_a_missed_goal_is_reported(found: dict[str, Any]) -> None:
    assert bench.broken_promises(found | {"ratio": 0.9})[0].startswith("a matrix takes 0.900")
    worse = found["detail"] | {
        "knee": found["detail"]["knee"] | {"ours": found["detail"]["knee"]["ours"] | {"ndr_spread_percent": 0.5}}
    }
    assert "spread of NDR on knee: 0.50 %" in bench.broken_promises(found | {"detail": worse})[-1]


@pytest.mark.parametrize("name", HeldOut)
def test_half_of_the_trials_at_the_truth_are_good(name: HeldOut) -> None:
    """By trials at that load only, after a while; `drift` is hot then."""
    for loss_ratio in (0.0, 0.005):
        system, rng = held_out(name, 4e6), Random(1)
        load_pps = system.truth_pps(loss_ratio)
        rows = [
            [
                (part := system.trial(load_pps * share, 1.0, rng)).sent - part.received > loss_ratio * part.sent
                for _ in range(600)
            ][300:]
            for share in (0.9, 1.03)
        ]
        assert sum(rows[0]) < 120
        assert sum(rows[1]) > (150 if name is not HeldOut.RARE_LOSS or loss_ratio else -1)


def test_a_correlated_system_remembers() -> None:
    system, rng = held_out(HeldOut.CORRELATED, 1e6), Random(2)
    rates = [system.trial(2e6, 1.0, rng).received / 1e6 - 1 for _ in range(4000)]
    variance = sum(rate**2 for rate in rates) / len(rates)
    together = sum(one * other for one, other in pairwise(rates)) / len(rates)
    assert together / variance == pytest.approx(0.8, abs=0.05)
    assert variance**0.5 == pytest.approx(0.02, rel=0.1)
