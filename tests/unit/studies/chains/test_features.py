"""Features by name: their units, sources, and the change from which one matters."""

import pytest

from resources.libraries.python.studies.chains.analysis.features import (
    FEATURES,
    OF_CHAINS,
    Feature,
    FeatureSource,
    feature,
    notable,
)


def test_each_feature_has_its_own_name() -> None:
    names = [each.name for each in (*FEATURES, *OF_CHAINS)]
    assert len(set(names)) == len(names)
    assert all(feature(each.name) is each for each in (*FEATURES, *OF_CHAINS))


def test_a_feature_of_an_unknown_name_has_no_unit_and_its_name_as_its_meaning() -> None:
    assert feature("cache_miss_rate") == Feature("cache_miss_rate", "", FeatureSource.PROCESS, "cache miss rate")


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("cpu_percent", 5.0),
        ("rx_dropped_pps", 50.0),
        ("all_switches", 50.0),
        ("read_bytes_per_s", 2**20),
        ("memory_bytes", 2**20),
        ("threads", 1.0),
        ("queued_kib", 0.0),
        ("unknown", 1.0),
        ("throughput_bps", 0.02),
        ("loss_ratio", 0.001),
        ("latency_s", 0.02),
        ("idle_latency_s", 0.02),
    ],
)
def test_the_least_change_that_matters_follows_the_unit(name: str, least: float) -> None:
    assert notable(name) == least
