"""Statistics of runs: without extraordinary seconds, from features with a unit, grouped by run in a record."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.dataset.items import ReadError
from csit_utils.dataset.load import parse_record
from resources.libraries.python.model.measurements.features import CHAIN
from resources.libraries.python.studies.chains.analysis.features import (
    FEATURES,
    OF_CHAINS,
    Feature,
    FeatureSource,
    feature,
    notable,
    ordinary,
    statistics,
)
from resources.libraries.python.studies.chains.model.record import ChainStudy, Statistic
from tests.unit.csit_utils.study_records import chain_studied
from tests.unit.studies.chains.chain_runs import chain, run, spec_of, workload

SPEC = spec_of(["nat", "ids"])
RECORD = chain_studied()


def statistic(order: list[str], volume_bps: float, owner: str, feature: str, mean: float) -> Statistic:
    return Statistic(
        chain=chain(*order), workload=workload(volume_bps), owner=owner, feature=feature, mean=mean, stdev=mean / 8,
        samples=5, filtered=1,
    )  # fmt: skip


STATISTICS = st.builds(
    statistic, st.sampled_from([["nat"], ["nat", "ids"], ["ids", "nat"]]), st.sampled_from([1e6, 2e6]),
    st.sampled_from(["nat", "host"]), st.sampled_from(["cpu_percent", "rx_pps"]), st.floats(0, 1e9),
)  # fmt: skip


@given(st.lists(STATISTICS, max_size=12))
def test_statistics_come_back_from_a_record_in_their_order(statistics: list[Statistic]) -> None:
    study = ChainStudy(spec=SPEC, chains=3, statistics=tuple(statistics))
    assert ChainStudy.model_validate_json(study.model_dump_json()).statistics == tuple(statistics)
    assert ChainStudy.model_validate(study.model_dump()).statistics == tuple(statistics)


def test_a_record_says_chain_and_workload_once_for_each_run() -> None:
    study = RECORD.chain_study
    said = json.loads(RECORD.model_dump_json())["chain_study"]["statistics"]
    assert len(said) == sum(run.failed is None for run in study.runs)
    assert sum(len(run["features"]) for run in said) == len(study.statistics) > 4 * len(said)
    assert all(
        row.keys() == {"owner", "feature", "mean", "stdev", "samples", "filtered"} for row in said[0]["features"]
    )


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        ({"chain": {}}, r"statistics: 0\.chain\.members: is missing"),
        ({"colour": "red"}, r"statistics: 0\.colour: unknown key"),
        ({"features": [{"owner": "nat"}]}, r"statistics\.0\.feature: is missing"),
        ({"features": 3}, r"statistics: 0\.features: a list is expected here"),
    ],
)
def test_errors_in_a_group_are_reported_with_their_place(damage: dict[str, object], error: str) -> None:
    data = json.loads(RECORD.model_dump_json())
    data["chain_study"]["statistics"][0] |= damage
    with pytest.raises(ReadError, match=rf"x: the record is not valid: chain_study\.{error}"):
        parse_record(json.dumps(data), "x")


@pytest.mark.parametrize(
    ("values", "kept", "gone"),
    [
        ([10, 11, 12, 13, 14, 90, 10, 12, 12, 6.4], [10, 11, 12, 13, 14, 10, 12, 12], 2),  # fences 6.5 and 16.5
        ([0, 1, 2, 3, 6], [0, 1, 2, 3, 6], 0),  # quartiles 1 and 3, fences -2 and 6: one on the fence stays
        ([0, 1, 2, 3, 6.1], [0, 1, 2, 3], 1),
        ([1, 1, 1000], [1, 1, 1000], 0),  # of three values none is known to be off
        ([1, 1, 1, 1000], [1, 1, 1], 1),
        ([None, 5.0, float("nan"), 5.0], [5.0, 5.0], 0),  # unknown values are no outliers
    ],
)
def test_readings_far_outside_the_quartiles_go(values: list[float | None], kept: list[float], gone: int) -> None:
    assert ordinary(values) == (kept, gone)


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


def test_each_feature_has_its_own_name_and_an_unknown_one_has_no_unit() -> None:
    names = [each.name for each in (*FEATURES, *OF_CHAINS)]
    assert len(set(names)) == len(names)
    assert all(feature(each.name) is each for each in (*FEATURES, *OF_CHAINS))
    assert feature("cache_miss_rate") == Feature("cache_miss_rate", "", FeatureSource.PROCESS, "cache miss rate")


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("cpu_percent", 5.0), ("rx_dropped_pps", 50.0), ("all_switches", 50.0), ("read_bytes_per_s", 2**20),
        ("memory_bytes", 2**20), ("threads", 1.0), ("queued_kib", 0.0), ("unknown", 1.0), ("throughput_bps", 0.02),
        ("loss_ratio", 0.001), ("latency_s", 0.02), ("idle_latency_s", 0.02),
    ],
)  # fmt: skip
def test_the_least_change_that_matters_follows_the_unit(name: str, least: float) -> None:
    assert notable(name) == least
