"""FD.io CSIT's result files and Parquet tables: figures, definitions, place in the matrix, and what is damaged."""

import base64
import struct
import zlib
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csit_utils.analysis.grouping import bounds, series_of
from csit_utils.analysis.latency import merge, percentiles
from csit_utils.dataset.foreign.csit import is_table, place_of, read_csit, read_row, read_table, tags_of_name
from csit_utils.dataset.foreign.parts import ForeignLatency, latency_row
from csit_utils.dataset.goal_words import read_goal
from csit_utils.dataset.items import ImportedTest, Problem, ReadError
from csit_utils.dataset.load import read_foreign
from csit_utils.dataset.rows import EVERY_INSTANCE, NDR, SOAK, TestRow
from tests.loaded import load
from tests.unit.csit_utils import foreign_files
from tests.unit.csit_utils.foreign_files import csit, csit_mrr, csit_ndrpdr, flat, packed, plain, pps
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


def test_bounds_are_forwarded_rates_without_an_upper_one_and_loads_in_older_models() -> None:
    """Up to 1.4 both bounds are loads that were tried; the exceed ratio is not told."""
    row = row_of(csit(csit_ndrpdr()))
    assert (row.ndr_lower_pps, row.pdr_lower_pps) == (3_300_000.0, 3_450_000.5)
    assert (row.ndr_upper_pps, row.ndr_complete) == (None, None)
    assert (row.ndr_loss_ratio, row.pdr_loss_ratio) == (0.0, 0.005)
    words = "width 0.5% exceed 50% trials 1..1 s given as forwarded rate"
    assert row.goals == f"NDR loss <= 0% {words}; PDR loss <= 0.5% {words}"
    assert bounds(row, NDR) == (3_300_000.0, 3_300_000.0, True)
    assert row.ndr_l1_bps == pytest.approx(3.3e6 * 84 * 8)
    assert (row.origin, row.revision, row.status) == ("fdio-csit", "CSIT model 1.5.1", "PASS")
    found = csit_ndrpdr(ndr={"lower": pps(3.3e6), "upper": pps(3.4e6)})
    row = row_of(csit(found, version="1.4.0"))
    assert bounds(row, NDR) == (3.3e6, 3.4e6, True)
    goal = read_goal(row.goals or "", "NDR")
    assert (goal.given_as, goal.exceed_ratio, goal.trial_s) == (None, None, 30.0)


def test_mrr_keeps_its_scatter_a_soak_its_bounds_and_rates_of_connections_are_left_out() -> None:
    row = row_of(csit(csit_mrr(), test_type="mrr"))
    assert (row.mrr_pps, row.mrr_stdev_pps, row.mrr_trials, row.test_type) == (4.1e6, 8.2e4, 3, "MRR")
    assert row.goals == "MRR 3 trials"
    row = row_of(csit(foreign_files.csit_soak(), test_type="soak"))
    assert bounds(row, SOAK) == (3.1e6, 3.2e6, True)
    assert row.goals == "SOAK loss <= 0.00001% given as bayesian estimate"
    rate = {"lower": {"rate": {"unit": "cps", "value": 1e5}}}
    row = row_of(csit({"type": "ndrpdr", "ndr": rate, "pdr": rate}))
    assert (row.ndr_lower_pps, "rates in cps are not packet rates" in row.evidence) == (None, True)


def test_latency_is_per_direction_at_four_loads_in_nanoseconds_and_minus_one_is_unknown() -> None:
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
    item = one(foreign_files.csit_unmeasured())
    (half,) = (each for each in item.latency if each.direction == "reverse")
    assert (half.min_ns, half.mean_ns, half.max_ns, half.p99_ns) == (None, None, None, None)
    assert (item.row.pdr_lower_pps, item.row.evidence) == (3_450_000.5, "")
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


def test_a_density_test_has_its_place_cores_and_name_and_one_without_nfs_none() -> None:
    row = row_of(csit(csit_ndrpdr()))
    assert (row.service_type, row.nf_chains, row.nf_nodes, row.nf_size, row.vs_dtc) == ("CSC", 4, 2, "1c", 1)
    assert (row.data_cores, row.slide_cores, row.ndr_pps_per_core) == (9.0, 14.0, pytest.approx(3.3e6 / 9))
    assert (row.frame, row.frame_mean_bytes) == ("64B", 64)
    assert (row.testbed, row.run) == ("10.30.51.70+10.30.51.71", "/data/run-7")
    assert row.started_at == "2024-03-02T21:10:05.250+00:00"
    assert one(csit(csit_ndrpdr()), "/b/2.json").anchor == row.anchor, "wherever the file is read"
    assert row_of(csit(csit_ndrpdr(ndr={"lower": pps(1.0)}))).anchor != row.anchor
    row = row_of(plain())
    assert (row.service_type, row.nf_chains, row.vs_dtc, series_of(row)) == (None, None, 2, None)
    assert (row.frame, row.mrr_pps) == ("IMIX (7x64, 4x570, 1x1518)", 4.1e6)
    assert row.drivers == "DUT vpp, generator trex, NIC Intel-E810CQ, NIC driver AVF"
    suite = {"version": "1.5.1", "suite_id": "tests.vpp", "start_time": "x", "setup_telemetry": []}
    assert [*read_foreign(packed(suite), SOURCE)] == []


def test_a_failed_test_is_failed_and_says_why_without_markup_of_robot_framework() -> None:
    row = row_of(csit({"type": "unknown"}, passed=False, message="*HTML* <b>No</b> traffic &amp; no error"))
    assert (row.status, row.message, row.recorded) == ("FAIL", "No traffic & no error", True)
    assert bounds(row, NDR) is None
    data = csit({}, passed="yes", message="setup failed")
    del data["result"]
    row = row_of(data)
    assert (row.status, row.message, row.ndr_lower_pps, row.nf_chains) == ("FAIL", "setup failed", None, 4)
    assert "invalid and left out: passed (yes)" in row.evidence, "one that does not say whether it passed has failed"


@pytest.mark.parametrize(
    ("tags", "service", "size", "cores"),
    [
        ("VM VHOST CHAIN 2R4C 8VM1T 2C", "VSC", "0.5c", 6.0), ("DOCKER MEMIF CHAIN 2R4C 8DCR2T 1C", "CSC", "1c", 9.0),
        ("DOCKER MEMIF PIPELINE 2R4C 8DCR4T 4C", "CSP", "2c", 20.0),
        ("DOCKER MEMIF CHAIN 1R2C 2DCR6T 1C", "CSC", "3c", 7.0),
        ("DOCKER MEMIF CHAIN 1R2C 2DCR3T 1C", "CSC", None, None),
        ("DOCKER MEMIF PIPE 2R4C 8DCR1T 1C 2T1C", "CSP", "0.5c", 5.0),
        ("DOCKER MEMIF CHAIN 2R4C 8DCR2T 1C 1T1C", "CSC", None, None), ("DOCKER MEMIF CHAIN 2R4C", "CSC", None, None),
        ("DOCKER MEMIF CHAIN 8DCR2T 1C", None, None, None), ("VM VHOST PIPELINE 2R4C 8VM1T 1C", None, None, None),
        ("DOCKER CHAIN 2R4C 4R2C 8DCR2T 1C", None, None, None), ("DOCKER CHAIN 0R4C 8DCR2T 1C", None, None, None),
    ],
)  # fmt: skip
def test_tags_name_the_place(tags: str, service: str | None, size: str | None, cores: float | None) -> None:
    columns, place = place_of(tags.split())
    assert columns.get("service_type") == service
    assert columns.get("nf_size") == size
    assert (place and place.data_cores) == cores


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": "2.0.0"}, "model version '2.0.0' of CSIT is not supported"),
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


STARTED = "2021-11-29T12:39:49.176947+00:00"
DENSITY = "64b-1c-eth-l2bd-eth-4ch-8mif-8dcr2t-vppip4-ndrpdr"


def in_table(row: dict[str, Any]) -> TestRow:
    (item,) = read_row(row, "table.parquet row 1")
    return item.row


def test_a_row_is_the_test_that_its_file_is_and_one_that_is_no_result_costs_itself() -> None:
    data = csit(csit_ndrpdr())
    (file,) = read_csit(data, "x.info.json")
    (item,) = read_row(flat(data) | {"job": "csit-vpp-perf-mrr-daily-master-2n-spr", "build": 17}, "t.parquet row 1")
    same = ("test_id", "ndr_lower_pps", "pdr_upper_pps", "goals", "frame", "service_type", "nf_chains", "testbed")
    assert [getattr(item.row, name) for name in same] == [getattr(file.row, name) for name in same]
    assert len(item.latency) == len(file.latency) > 0
    assert item.row.run == "csit-vpp-perf-mrr-daily-master-2n-spr 17"
    good, bad = mrr(), mrr(version="9.0.0")
    items = list(read_table(parquet(*[bad] * 15, good), "t.parquet"))
    assert [item.row.test_id for item in items if isinstance(item, ImportedTest)] == [good["test_id"]]
    texts = [item.text for item in items if isinstance(item, Problem)]
    assert len(texts) < 15 and "row 1:" in texts[0] and "15 of 16" in texts[-1]


def test_an_older_table_has_other_names_and_no_hosts() -> None:
    older = {
        "job": "csit-vpp-perf-verify-master-2n-skx", "build": 3603, "status": True, "version": "1.0.0",
        "test_id": f"tests.vpp.perf.x.{DENSITY}", "test_name": DENSITY, "result_type": "mrr", "start_time": STARTED,
        "result_receive_rate_rate_avg": 1e6, "result_receive_rate_rate_stdev": 1e3,
        "result_receive_rate_rate_unit": "pps", "result_receive_rate_rate_values": [1e6, 1.001e6],
    }  # fmt: skip
    assert is_table(older) and not is_table({"test_id": "", "version": "", "start_time": ""})
    row = in_table(older)
    assert (row.status, row.test_type, row.mrr_pps, row.mrr_trials) == ("PASS", "MRR", 1e6, 2)
    assert (row.testbed, row.started_at) == ("2n-skx", "2021-11-29T12:39:49.176+00:00")
    assert (row.service_type, row.nf_chains, row.nf_nodes, row.nf_size, row.vs_dtc) == ("CSC", 4, 2, "1c", 1)
    assert in_table({name: older[name] for name in older if name != "test_name"}) == replace(row, anchor=ANY)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("64b-2c-eth-l2bd-eth-4pl-8mif-8dcr2t-vppip4-mrr", ("CSP", 4, 2)),
        ("imix-1c-dot1q-l2bd-eth-2ch-4vh-2vm2t-vppl2xc-mrr", ("VSC", 2, 1)),
        ("64b-1c-eth-l2xcbase-eth-2memif-1dcr-mrr", None), ("64b-1c-eth-l2bd-eth-3ch-8mif-8dcr2t-mrr", None),
        ("64b-1c-eth-l2bd-eth-0ch-8mif-8dcr2t-mrr", None),
    ],
)  # fmt: skip
def test_names_state_the_cells_of_tables_without_tags(name: str, cell: tuple[str, int, int] | None) -> None:
    columns, place = place_of(tags_of_name(name))
    assert (place and (columns["service_type"], columns["nf_chains"], columns["nf_nodes"])) == cell


def written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())


def parquet(*rows: dict[str, Any]) -> bytes:
    """A table whose times are no texts, as CSIT writes it."""
    times = [{name: datetime.fromisoformat(row[name]) for name in ("start_time", "end_time")} for row in rows]
    return written(pa.Table.from_pylist([row | time for row, time in zip(rows, times, strict=True)]))


def mrr(**changes: Any) -> dict[str, Any]:
    row = flat(csit(csit_mrr(), **changes))
    return {name: value for name, value in row.items() if name != "telemetry"}


def test_tables_of_a_folder_are_read_as_files_of_the_same_tests_are(tmp_path: Path) -> None:
    folder = tmp_path / "trending" / "test_type=mrr" / "year=2026"
    folder.mkdir(parents=True)
    rows = mrr(test_type=None) | {"result_ndr_lower_rate_value": float("nan")}, mrr(test_id="tests.another")
    (folder / "a.parquet").write_bytes(parquet(*rows))
    pq.write_table(pa.table({"job": ["a"], "build": [1], "duration": [1.0]}), tmp_path / "trending" / "stats.parquet")
    (tmp_path / "same.info.json").write_bytes(packed(csit(csit_mrr(), test_type="mrr")))
    dataset = load([tmp_path / "trending"])
    found = {item.row.test_id: item for item in dataset.foreign}
    (file,) = load([tmp_path / "same.info.json"]).foreign
    assert len(found) == 2 and not dataset.problems
    assert all(not item.row.evidence for item in dataset.foreign)
    same = ("test_type", "mrr_pps", "mrr_stdev_pps", "goals", "started_at", "finished_at", "testbed", "nf_chains")
    assert [getattr(found[file.row.test_id].row, name) for name in same] == [getattr(file.row, name) for name in same]


@pytest.mark.parametrize("unknown", [None, float("nan")])
@pytest.mark.parametrize("column", ["ndr_lower_rate_value", "ndr_lower_rate_unit", "receive_rate_rate_values"])
def test_an_unknown_figure_costs_itself(column: str, unknown: float | None) -> None:
    row = flat(csit(csit_ndrpdr() | csit_mrr(), tags=None)) | {f"result_{column}": unknown, "tags": unknown}
    found = in_table(row)
    assert (found.pdr_lower_pps, found.mrr_pps, found.service_type) == (3_450_000.5, 4.1e6, "CSC")
    assert (found.ndr_lower_pps is None, found.mrr_trials is None) == ("ndr" in column, "values" in column)


def test_times_of_any_zone_and_range() -> None:
    table = pq.read_table(pa.BufferReader(parquet(mrr())))
    at = table.schema.names.index("start_time")
    for value, kind, started in (
        (1_000_000_001, pa.timestamp("s", "Asia/Tokyo"), "2001-09-09T01:46:41.000+00:00"),
        (2**62, pa.timestamp("us"), None),
    ):
        changed = table.set_column(at, "start_time", pa.array([value], kind))
        (item,) = read_table(written(changed), "t.parquet")
        assert isinstance(item, ImportedTest)
        assert item.row.started_at == started


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (parquet(mrr())[:-9], None), (parquet(mrr())[:60], None), (b"PAR1" + b"\0" * 50, None),
        (written(pa.table({"test_id": ["a"]})), "result_"),
    ],
)  # fmt: skip
def test_a_damaged_table_and_one_with_other_columns_are_refused(content: bytes, said: str | None) -> None:
    with pytest.raises(ReadError, match=said):
        list(read_table(content, "t.parquet"))
