"""Statistics in a record: grouped by run there, one by one everywhere else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.dataset.items import ReadError
from csit_utils.dataset.load import parse_record
from resources.libraries.python.studies.chains.model.record import ChainStudy
from resources.libraries.python.studies.chains.model.statistic import Statistic
from tests.unit.csit_utils.study_records import chain_studied
from tests.unit.studies.chains.chain_runs import chain, spec_of, workload

SPEC = spec_of(["nat", "ids"])
RECORD = chain_studied()


def statistic(order: list[str], volume_bps: float, owner: str, feature: str, mean: float) -> Statistic:
    return Statistic(
        chain=chain(*order),
        workload=workload(volume_bps),
        owner=owner,
        feature=feature,
        mean=mean,
        stdev=mean / 8,
        samples=5,
        filtered=1,
    )


STATISTICS = st.builds(
    statistic,
    st.sampled_from([["nat"], ["nat", "ids"], ["ids", "nat"]]),
    st.sampled_from([1e6, 2e6]),
    st.sampled_from(["nat", "host"]),
    st.sampled_from(["cpu_percent", "rx_pps"]),
    st.floats(0, 1e9),
)


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
