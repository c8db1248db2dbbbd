"""Seconds in which a reading was off, and what is left for the means."""

import pytest

from resources.libraries.python.model.measurements.features import CHAIN
from resources.libraries.python.studies.chains.analysis.features import ordinary, statistics
from tests.unit.studies.chains.chain_runs import chain, run


def test_a_reading_far_outside_the_quartiles_goes() -> None:
    # Quartiles 10.25 and 12.75, fences 6.5 and 16.5.
    assert ordinary([10, 11, 12, 13, 14, 90, 10, 12, 12, 6.4]) == ([10, 11, 12, 13, 14, 10, 12, 12], 2)


def test_one_on_the_fence_stays() -> None:
    # Quartiles 1 and 3, fences -2 and 6.
    assert ordinary([0, 1, 2, 3, 6]) == ([0, 1, 2, 3, 6], 0)
    assert ordinary([0, 1, 2, 3, 6.1])[1] == 1


def test_of_three_values_none_is_known_to_be_off() -> None:
    assert ordinary([1, 1, 1000]) == ([1, 1, 1000], 0)
    assert ordinary([1, 1, 1, 1000]) == ([1, 1, 1], 1)


def test_unknown_values_are_no_outliers() -> None:
    assert ordinary([None, 5.0, float("nan"), 5.0]) == ([5.0, 5.0], 0)


def test_means_are_of_what_is_left_for_each_chain_owner_workload_and_feature() -> None:
    what = chain("a", "b")
    runs = [
        run(what, 1e8, 9e7, {"a": {"cpu_percent": [10, 12, 11, 11, 99]}, "b": {"cpu_percent": [None]}}),
        run(what, 2e8, 9e7, {"a": {"cpu_percent": [20.0]}}),
        run(chain("a"), 1e8, 1e8, {"a": {"cpu_percent": [1.0]}}).model_copy(update={"failed": "no traffic"}),
    ]
    found = {(each.owner, each.workload.volume_bps, each.feature): each for each in statistics(runs)}
    first = found["a", 1e8, "cpu_percent"]
    assert (first.mean, first.samples, first.filtered) == (11, 4, 1)
    assert first.stdev == pytest.approx((2 / 3) ** 0.5)
    assert found["a", 2e8, "cpu_percent"].stdev == 0
    assert found[CHAIN, 1e8, "throughput_bps"].mean == 9e7
    assert ("b", 1e8, "cpu_percent") not in found
    assert all(len(each.chain.members) == 2 for each in found.values())
