"""The benchmark runs, compares like with like, and does not flatter."""

import pytest

from csit_utils.bench import search as bench
from resources.libraries.python.drivers.sim.simulation import ModelName


def test_the_benchmark_compares_equal_evidence() -> None:
    found = bench.measure(seeds=3)
    assert found["name"] == "search_time"
    assert found["unit"] == "s"
    assert found["ratio"] == pytest.approx(found["ours"] / found["peer"])
    assert set(found["detail"]) == set(ModelName)
    for row in found["detail"].values():
        assert set(row) == {"ours", "peer"}
        for who in row.values():
            assert who["mean_s"] <= who["p95_s"] * 1.01
            assert abs(who["ndr_error_percent"]) < 3


def test_the_peer_takes_the_time_that_it_is_known_to_take() -> None:
    """25 trials on a sharp system, by an earlier study of the library."""
    sharp = bench.measure(seeds=3)["detail"]["sharp"]["peer"]
    assert sharp["trials"] == 25
    assert sharp["mean_s"] == pytest.approx(37.5)
