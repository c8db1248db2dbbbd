"""Simulated studies find what was planted, as often as promised; `python -m tests.truth.<module>` prints the table."""

from importlib import import_module
from random import Random

import pytest

from tests.truth.held_out_systems import HeldOut, held_out
from tests.truth.known_truth import BoundedQuantity, share

pytestmark = pytest.mark.slow
STUDIES = {
    "bisections": 20, "chains": 10, "decays": 6, "density": 25, "interference": 4, "profiles": 5, "search_matrix": 1,
    "sizings": 10, "sweeps": 20, "trends": 200, "twins": 200,
}  # fmt: skip
"""Modules, and as many studies of each kind as take up to a minute of CPU time."""


@pytest.mark.parametrize("part", STUDIES)
def test_no_promised_bound_is_refuted(part: str) -> None:
    lines: list[BoundedQuantity] = list(import_module(f"tests.truth.{part}").table(STUDIES[part]))
    assert lines
    assert [line for line in lines if not line.holds] == []


def test_a_share_is_beyond_its_bound_when_its_interval_is() -> None:
    assert share("wrong", [True] + [False] * 19, 1).holds
    assert not share("wrong", [True] * 4 + [False] * 16, 5).holds
    assert not BoundedQuantity("steps", 2.1, 2, "steps").holds


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
