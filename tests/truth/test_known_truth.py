"""Simulated studies find what was planted, as often as promised; `python -m tests.truth.<module>` prints the table."""

from importlib import import_module

import pytest

from tests.truth.known_truth import BoundedQuantity, share

pytestmark = pytest.mark.slow
STUDIES = {
    "bisections": 20,
    "chains": 10,
    "decays": 6,
    "density": 25,
    "interference": 4,
    "profiles": 5,
    "search_matrix": 1,
    "sizings": 10,
    "sweeps": 12,
    "trends": 200,
}
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
