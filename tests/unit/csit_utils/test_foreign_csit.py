"""FD.io CSIT's result files: figures, definitions, place in the matrix, and what is damaged."""

import base64
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csit_utils.analysis.grouping import bounds, series_of
from csit_utils.analysis.latency import merge, percentiles
from csit_utils.dataset.foreign.csit import place_of
from csit_utils.dataset.foreign.parts import ForeignLatency, latency_row
from csit_utils.dataset.goal_words import read_goal
from csit_utils.dataset.items import ImportedTest, Problem
from csit_utils.dataset.load import read_foreign
from csit_utils.dataset.rows import EVERY_INSTANCE, NDR, SOAK, TestRow
from tests.unit.csit_utils.foreign_files import (
    csit,
    csit_mrr,
    csit_ndrpdr,
    csit_soak,
    csit_unmeasured,
    packed,
    plain,
    pps,
)
from tests.unit.examples import share

SOURCE = "/data/run-7/tests/vpp/perf/64b-1c-ndrpdr.info.json"


def one(data: object, source: str = SOURCE) -> ImportedTest:
    """The only test of a file."""
    (item,) = read_foreign(packed(data), source)
    assert isinstance(item, ImportedTest), item
    return item


def row_of(data: object) -> TestRow:
    return one(data).row


def problem(data: object) -> str:
    """The only problem of a file, which names it."""
    (item,) = read_foreign(packed(data), SOURCE)
    assert isinstance(item, Problem), item
    assert (item.source, item.text.startswith(f"{SOURCE}: ")) == (SOURCE, True)
    return item.text


def test_bounds_of_model_1_5_are_forwarded_rates_without_an_upper_bound() -> None:
    row = row_of(csit(csit_ndrpdr()))
    assert (row.ndr_lower_pps, row.pdr_lower_pps) == (3_300_000.0, 3_450_000.5)
    assert (row.ndr_upper_pps, row.ndr_complete) == (None, None)
    assert (row.ndr_loss_ratio, row.pdr_loss_ratio) == (0.0, 0.005)
    words = "width 0.5% exceed 50% trials 1..1 s given as forwarded rate"
    assert row.goals == f"NDR loss <= 0% {words}; PDR loss <= 0.5% {words}"
    assert bounds(row, NDR) == (3_300_000.0, 3_300_000.0, True)
    assert row.ndr_l1_bps == pytest.approx(3.3e6 * 84 * 8)
    assert (row.origin, row.revision, row.status) == ("fdio-csit", "CSIT model 1.5.1", "PASS")


def test_bounds_of_older_models_are_loads() -> None:
    """Up to 1.4 both bounds are loads that were tried; the exceed ratio is not told."""
    found = csit_ndrpdr(ndr={"lower": pps(3.3e6), "upper": pps(3.4e6)})
    row = row_of(csit(found, version="1.4.0"))
    assert bounds(row, NDR) == (3.3e6, 3.4e6, True)
    goal = read_goal(row.goals or "", "NDR")
    assert (goal.given_as, goal.exceed_ratio, goal.trial_s) == (None, None, 30.0)


def test_mrr_keeps_its_mean_and_scatter() -> None:
    row = row_of(csit(csit_mrr(), test_type="mrr"))
    assert (row.mrr_pps, row.mrr_stdev_pps, row.mrr_trials, row.test_type) == (4.1e6, 8.2e4, 3, "MRR")
    assert row.goals == "MRR 3 trials"


def test_a_soak_is_an_estimate_with_bounds() -> None:
    row = row_of(csit(csit_soak(), test_type="soak"))
    assert bounds(row, SOAK) == (3.1e6, 3.2e6, True)
    assert row.goals == "SOAK loss <= 0.00001% given as bayesian estimate"


def test_rates_of_connections_are_no_packet_rates() -> None:
    rate = {"lower": {"rate": {"unit": "cps", "value": 1e5}}}
    row = row_of(csit({"type": "ndrpdr", "ndr": rate, "pdr": rate}))
    assert row.ndr_lower_pps is None
    assert row.evidence == "rates in cps are not packet rates and are left out"


def test_latency_is_per_direction_at_four_loads_in_nanoseconds() -> None:
    item = one(csit(csit_ndrpdr()))
    assert [(each.load, each.direction) for each in item.latency] == [
        (f"PDR{percent}", direction) for direction in ("forward", "reverse") for percent in (0, 10, 50, 90)
    ]
    half = item.latency[2]
    assert (half.min_ns, half.mean_ns, half.max_ns) == (5000, 12000.0, 90_000)
    assert (half.instance, half.sent, half.received) == (EVERY_INSTANCE, None, 100)
    # 100 samples: 98 up to 10 us, one of 40, one of 90. Buckets are 0.1 % wide.
    highest = percentiles(merge([half.histogram or ""])).max_ns
    assert (half.p50_ns, half.p99_ns, highest) == pytest.approx((10_000, 40_000, 90_000), rel=1e-3)
    assert [each.load_pps for each in item.latency[:4]] == [18_000, 345_000.05, 1_725_000.25, 3_105_000.45]


def test_one_direction_counts_as_one() -> None:
    found = csit_ndrpdr()
    del found["latency_reverse"]
    item = one(csit(found))
    assert item.row.goals.endswith("; traffic in one direction only")
    assert item.latency[0].load_pps == 9000


@settings(deadline=None, max_examples=share(60))
@given(
    st.integers(0, 2**64 - 1) | st.sampled_from([1, 2]),
    st.integers(0, 2**64 - 1) | st.just(60_000_000),
    st.integers(0, 6),
    st.binary(max_size=60),
)
def test_no_histogram_breaks_the_reader(lowest: int, highest: int, digits: int, counts: bytes) -> None:
    """Whatever its head and its counts say, there are figures or there are none."""
    head = struct.pack(">IIIIQQd", 0x1C849313, len(counts), 0, digits, lowest, highest, 1.0)
    body = zlib.compress(head + counts)
    text = base64.b64encode(struct.pack(">II", 0x1C849314, len(body)) + body).decode()
    half = latency_row(
        ForeignLatency(hdrh=text), anchor="a", test_name="t", load="PDR50", load_pps=1.0, direction="forward"
    )
    assert half.received is None or 0 < half.received < 10**15
    assert (half.p50_ns is None) == (half.histogram is None)


def test_a_density_test_has_its_place_and_cores() -> None:
    row = row_of(csit(csit_ndrpdr()))
    assert (row.service_type, row.nf_chains, row.nf_nodes, row.nf_size, row.vs_dtc) == ("CSC", 4, 2, "1c", 1)
    assert (row.data_cores, row.slide_cores) == (9.0, 14.0)
    assert row.ndr_pps_per_core == pytest.approx(3.3e6 / 9)
    assert (row.frame, row.frame_mean_bytes) == ("64B", 64)
    assert row.testbed == "10.30.51.70+10.30.51.71"
    assert row.run == "/data/run-7"
    assert row.started_at == "2024-03-02T21:10:05.250+00:00"


def test_a_failed_test_is_failed_and_says_why() -> None:
    row = row_of(csit({"type": "unknown"}, passed=False, message="No traffic forwarded"))
    assert (row.status, row.message, row.recorded) == ("FAIL", "No traffic forwarded", True)
    assert bounds(row, NDR) is None
    row = row_of(csit({"type": "unknown"}, passed=False, message="*HTML* <b>No</b> traffic &amp; no error"))
    assert row.message == "No traffic & no error", "of Robot Framework, which ran the test"


def test_a_test_without_nfs_has_no_place() -> None:
    row = row_of(plain())
    assert (row.service_type, row.nf_chains, row.vs_dtc) == (None, None, 2)
    assert series_of(row) is None
    assert row.frame == "IMIX (7x64, 4x570, 1x1518)"
    assert row.mrr_pps == 4.1e6
    assert row.drivers == "DUT vpp, generator trex, NIC Intel-E810CQ, NIC driver AVF"


@pytest.mark.parametrize(
    ("tags", "service", "size", "cores"),
    [
        ("VM VHOST CHAIN 2R4C 8VM1T 2C", "VSC", "0.5c", 6.0),
        ("DOCKER MEMIF CHAIN 2R4C 8DCR2T 1C", "CSC", "1c", 9.0),
        ("DOCKER MEMIF PIPELINE 2R4C 8DCR4T 4C", "CSP", "2c", 20.0),
        ("DOCKER MEMIF CHAIN 1R2C 2DCR6T 1C", "CSC", "3c", 7.0),
        ("DOCKER MEMIF CHAIN 1R2C 2DCR3T 1C", "CSC", None, None),
        ("DOCKER MEMIF CHAIN 1R2C 2DCR0T 1C", "CSC", None, None),
        ("DOCKER MEMIF PIPE 2R4C 8DCR1T 1C 2T1C", "CSP", "0.5c", 5.0),
        ("DOCKER MEMIF CHAIN 2R4C 8DCR2T 1C 1T1C", "CSC", None, None),
        ("DOCKER MEMIF CHAIN 2R4C", "CSC", None, None),
        ("DOCKER MEMIF CHAIN 8DCR2T 1C", None, None, None),
        ("VM VHOST PIPELINE 2R4C 8VM1T 1C", None, None, None),
        ("CHAIN 2R4C", None, None, None),
        ("DOCKER CHAIN 2R4C 4R2C 8DCR2T 1C", None, None, None),
        ("DOCKER CHAIN 0R4C 8DCR2T 1C", None, None, None),
    ],
)
def test_tags_name_the_place(tags: str, service: str | None, size: str | None, cores: float | None) -> None:
    columns, place = place_of(tags.split())
    assert columns.get("service_type") == service
    assert columns.get("nf_size") == size
    assert (place and place.data_cores) == cores


def test_the_same_file_is_the_same_test_wherever_it_is_read() -> None:
    data = csit(csit_ndrpdr())
    assert one(data, "/a/1.json").anchor == one(data, "/b/2.json").anchor
    assert one(csit(csit_ndrpdr(ndr={"lower": pps(1.0)}))).anchor != one(data).anchor


def test_a_file_about_a_suite_has_no_tests() -> None:
    suite = {"version": "1.5.1", "suite_id": "tests.vpp", "start_time": "x", "setup_telemetry": []}
    assert [*read_foreign(packed(suite), SOURCE)] == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": "2.0.0"}, "model version '2.0.0' of CSIT is not supported"),
        ({"version": 1.5}, "is not supported, only 1.x"),
        ({"tags": "CHAIN"}, "tags: expected a list, found CHAIN"),
        ({"test_id": ""}, "test_id: '' is invalid"),
        ({"result": []}, "result: expected an object, found a list"),
        ({"result": csit_ndrpdr(ndr={})}, "result.ndr.lower is missing"),
        ({"result": {"receive_rate": {"rate": {"unit": "", "values": [], "avg": 1, "stdev": 0}}}}, "values is empty"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:20],
)
def test_a_file_of_another_structure_is_one_problem(changes: dict[str, Any], said: str) -> None:
    assert said in problem(csit(csit_ndrpdr()) | changes)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, -1.0, "1e6", None])
def test_an_invalid_rate_costs_that_rate(value: Any) -> None:
    row = row_of(csit(csit_ndrpdr(ndr={"lower": {"rate": {"unit": "pps", "value": value}}})))
    assert (row.ndr_lower_pps, row.pdr_lower_pps) == (None, 3_450_000.5)
    assert row.evidence.startswith("invalid and left out: result.ndr.lower.rate.value (") or value is None


def test_a_null_is_as_good_as_nothing() -> None:
    row = row_of(csit(csit_ndrpdr(), hosts=None, tags=None))
    assert (row.ndr_lower_pps, row.testbed) == (3_300_000.0, "unknown testbed")
    assert row.evidence == "invalid and left out: tags (None), hosts (None)"


def test_many_invalid_values_are_counted() -> None:
    load = {"min": "a", "avg": [], "max": {}, "hdrh": 5}
    row = row_of(csit(csit_ndrpdr(latency_forward={"pdr_50": load})))
    assert row.pdr_lower_pps == 3_450_000.5
    assert row.evidence.startswith("invalid and left out: result.latency_forward.pdr_50.min (a), ")
    assert row.evidence.endswith("pdr_50.max (an object) and 1 more")


def test_a_latency_of_minus_one_was_not_measured() -> None:
    item = one(csit_unmeasured())
    (half,) = (each for each in item.latency if each.direction == "reverse")
    assert (half.min_ns, half.mean_ns, half.max_ns, half.p99_ns) == (None, None, None, None)
    assert item.row.pdr_lower_pps == 3_450_000.5
    assert not item.row.evidence


@pytest.mark.parametrize(("passed", "status"), [(False, "FAIL"), (True, "PASS")])
def test_a_test_that_ended_before_it_had_a_result_has_no_figures(passed: bool, status: str) -> None:
    data = csit({}, passed=passed, message="setup failed")
    del data["result"]
    row = row_of(data)
    assert (row.status, row.message, row.ndr_lower_pps, row.nf_chains) == (status, "setup failed", None, 4)
    assert row.evidence == ("the file has no result" if passed else "")


def test_a_test_that_does_not_say_whether_it_passed_has_failed() -> None:
    row = row_of(csit(csit_ndrpdr(), passed="yes"))
    assert (row.status, row.evidence.splitlines()[0]) == ("FAIL", "invalid and left out: passed (yes)")
