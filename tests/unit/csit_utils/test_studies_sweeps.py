"""The table of break-points of known sweeps: within its bounds for ours, beyond them for the next measured load."""

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import pytest

from csit_utils.bench.studies import sweeps
from csit_utils.bench.studies.sweeps import KINDS, found, simulated
from resources.libraries.python.drivers.sim.models import Noisy
from resources.libraries.python.studies.sweep.analysis.points import LoadObservation
from resources.libraries.python.studies.sweep.analysis.saturation import find_break_point
from resources.libraries.python.studies.sweep.model.profile import BreakPoint

FEW = 6
MANY = 60


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_break_points_of_few_sweeps_are_where_they_were_planted(kind: str) -> None:
    for row in found(kind, 0.01, FEW).values():
        assert row.missed == 0
        assert sum(row.held) >= FEW - 2
        assert all(abs(error) < 0.1 for error in row.errors)


def test_the_highest_rate_in_truth_is_that_of_the_mean_loss_of_trials() -> None:
    """Where the capacity differs by 5 %, trials at the rate whose loss is 5 % at the mean capacity lose 5.3 %."""
    known, system, random = simulated(1, 0.05), Noisy(1e6, 0.05), Random(1)
    assert known.highest is not None
    for rate, lost in ((known.highest / known.truth[0], 0.05), (1 / 0.95, 0.0535)):
        trials = [system.forward(rate * 1e6, 1.0, random) for _ in range(20_000)]
        assert sum(1 - received / sent for sent, received in trials) / len(trials) == pytest.approx(lost, abs=0.001)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["simulated", "throughput"])
def test_intervals_under_much_noise_hold_the_truth(kind: str) -> None:
    for row in found(kind, 0.05, MANY).values():
        assert row.missed <= 0.4 * MANY
        assert np.mean(row.held) >= 0.85
        assert abs(np.mean(row.errors)) < 0.03


@pytest.mark.slow
def test_the_next_measured_load_instead_of_the_fitted_one_is_beyond_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(
        observed: Sequence[LoadObservation], vcpus: Mapping[str, int]
    ) -> tuple[BreakPoint | None, tuple[str, ...]]:
        point, notes = find_break_point(observed, vcpus)
        assert point is not None
        assert point.measured_rate is not None
        shift = point.measured_rate - point.rate
        moved = {"rate": point.measured_rate, "low": (point.low or 0.0) + shift, "high": (point.high or 0.0) + shift}
        return point.model_copy(update=moved), notes

    monkeypatch.setattr(sweeps, "find_break_point", rounded)
    (row,) = found("CPU, 30 loads", 0.01, FEW).values()
    lines = {line.what.split(",")[0]: line for line in sweeps._lines("x", row, sweeps.PROMISED[0.01])}
    assert lines["sweep: truth outside of the interval"].value > lines["sweep: truth outside of the interval"].bound
    assert lines["sweep: bias"].value > lines["sweep: bias"].bound
