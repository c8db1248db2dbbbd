"""The benchmark compares like with like, and the promises on search time and spread are kept."""

from typing import Any

import pytest

from csit_utils.bench.search import search_time as bench
from resources.libraries.python.drivers.sim.simulation import ModelName

SEEDS = bench.SEEDS
"""The benchmark's own sample. With 40 seeds a spread is known within 11 %, too little to hold 0.53 % against 0.60 %."""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return bench.measure(SEEDS, all_spreads=False)


@pytest.mark.slow
def test_the_benchmark_compares_equal_evidence(found: dict[str, Any]) -> None:
    assert (found["name"], found["unit"], found["seeds"]) == ("search_time", "s", SEEDS)
    assert found["ratio"] == pytest.approx(found["ours"] / found["peer"])
    assert found["cold_ratio"] == pytest.approx(found["cold"] / found["peer"])
    assert set(found["detail"]) == set(ModelName)
    for name, row in found["detail"].items():
        assert set(row) == {"ours", "cold", "peer"}
        for who in row.values():
            assert who["mean_s"] <= who["p95_s"] * 1.01
        assert name in found["note"]


@pytest.mark.slow
def test_the_peer_takes_the_time_that_it_is_known_to_take(found: dict[str, Any]) -> None:
    """25 trials on a sharp system, by an earlier study of the library."""
    sharp = found["detail"]["sharp"]["peer"]
    assert sharp["trials"] == 25
    assert sharp["mean_s"] == pytest.approx(37.5)


@pytest.mark.slow
def test_no_promise_is_broken(found: dict[str, Any]) -> None:
    assert bench.broken_promises(found) == []
    assert "failed" not in found


@pytest.mark.slow
def test_the_stretch_goal_is_reached_warm(found: dict[str, Any]) -> None:
    """Seeds that nothing was chosen by had 0.644 warm and 0.757 cold."""
    assert found["ratio"] <= 0.72
    assert found["cold_ratio"] <= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("name", ModelName)
def test_no_system_pays_for_the_others(found: dict[str, Any], name: ModelName) -> None:
    row = found["detail"][name]
    for who in ("ours", "cold"):
        assert row[who]["mean_s"] <= row["peer"]["mean_s"]
        assert row[who]["p95_s"] <= row["peer"]["p95_s"] * 1.05


@pytest.mark.slow
@pytest.mark.parametrize("name", ModelName)
def test_bounds_are_as_right_as_the_librarys(found: dict[str, Any], name: ModelName) -> None:
    """Half a width of bias, by construction; the error of one search not above MLRsearch's.

    Where capacity varies, the mean error of so many searches has a standard error of its own (0.05 % on noisy).
    """
    row = found["detail"][name]
    for goal in ("ndr", "pdr"):
        standard_error = row["ours"][f"{goal}_rms_error_percent"] / SEEDS**0.5 if name is ModelName.NOISY else 0.0
        assert abs(row["ours"][f"{goal}_error_percent"] + 0.25) < 0.25 + 2 * standard_error
        assert row["ours"][f"{goal}_rms_error_percent"] <= row["peer"][f"{goal}_rms_error_percent"] * 1.2 + 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("ratio",), 0.81, "a warm search takes 0.810"),
        (("cold_ratio",), 1.01, "a cold search takes 1.010"),
        (("detail", "noisy", "ours", "ndr_spread_percent"), 0.61, "spread of NDR on noisy: 0.61 %"),
        (("detail", "two_band", "ours", "pdr_spread_percent"), 0.21, "spread of PDR on two_band: 0.21 %"),
        (("detail", "stall", "ours", "ndr_spread_percent"), 0.16, "NDR on stall"),
        (("detail", "sag", "ours", "pdr_spread_percent"), 0.01, "spread of PDR on sag: 0.01 %, bound 0 %"),
        (("detail", "sag", "ours", "mean_s"), 99.0, "sag takes 99.0 s"),
    ],
)
def test_a_missed_goal_is_reported(found: dict[str, Any], path: tuple[str, ...], value: float, message: str) -> None:
    def changed(row: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
        return {**row, keys[0]: changed(row[keys[0]], keys[1:]) if keys[1:] else value}

    (line,) = bench.broken_promises(changed(found, path))
    assert message in line


def test_the_prior_of_a_warm_search_is_what_a_cold_one_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the truth, and not of the same random numbers."""
    seen = []
    search = bench.with_prior
    monkeypatch.setattr(bench, "with_prior", lambda make, rng, prior: seen.append(prior) or search(make, rng, prior))
    bench.figures(bench.warm, ModelName.NOISY, 6)
    bench.spreads_percent(bench.warm, ModelName.NOISY, 6)
    assert [prior is None for prior in seen] == [True, False] * 12
    # The truth would be the same prior for all searches at the fixed capacity.
    assert len({prior.lower_pps["NDR"] for prior in seen[12:] if prior}) > 1
