"""CSIT's Parquet tables: their rows are read as files of the same tests are."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from csit_utils.dataset.foreign.csit import place_of, read_csit, tags_of_name
from csit_utils.dataset.foreign.csit_tables import is_table, read_row, read_table
from csit_utils.dataset.items import ImportedTest, Problem, ReadError
from csit_utils.dataset.rows import TestRow
from tests.loaded import load
from tests.unit.csit_utils.foreign_files import csit, csit_mrr, csit_ndrpdr, flat, packed

STARTED = "2021-11-29T12:39:49.176947+00:00"
DENSITY = "64b-1c-eth-l2bd-eth-4ch-8mif-8dcr2t-vppip4-ndrpdr"


def row_of(row: dict[str, Any]) -> TestRow:
    (item,) = read_row(row, "table.parquet row 1")
    return item.row


def test_a_row_is_the_test_that_its_file_is() -> None:
    data = csit(csit_ndrpdr())
    (file,) = read_csit(data, "x.info.json")
    (item,) = read_row(flat(data) | {"job": "csit-vpp-perf-mrr-daily-master-2n-spr", "build": 17}, "t.parquet row 1")
    same = ("test_id", "ndr_lower_pps", "pdr_upper_pps", "goals", "frame", "service_type", "nf_chains", "testbed")
    assert [getattr(item.row, name) for name in same] == [getattr(file.row, name) for name in same]
    assert len(item.latency) == len(file.latency) > 0
    assert item.row.run == "csit-vpp-perf-mrr-daily-master-2n-spr 17"


def test_an_older_table_has_other_names_and_no_hosts() -> None:
    older = {
        "job": "csit-vpp-perf-verify-master-2n-skx", "build": 3603, "status": True, "version": "1.0.0",
        "test_id": f"tests.vpp.perf.x.{DENSITY}", "test_name": DENSITY, "result_type": "mrr", "start_time": STARTED,
        "result_receive_rate_rate_avg": 1e6, "result_receive_rate_rate_stdev": 1e3,
        "result_receive_rate_rate_unit": "pps", "result_receive_rate_rate_values": [1e6, 1.001e6],
    }  # fmt: skip
    assert is_table(older) and not is_table({"test_id": "", "version": "", "start_time": ""})
    row = row_of(older)
    assert (row.status, row.test_type, row.mrr_pps, row.mrr_trials) == ("PASS", "MRR", 1e6, 2)
    assert (row.testbed, row.started_at) == ("2n-skx", "2021-11-29T12:39:49.176+00:00")
    assert (row.service_type, row.nf_chains, row.nf_nodes, row.nf_size, row.vs_dtc) == ("CSC", 4, 2, "1c", 1)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("64b-2c-eth-l2bd-eth-4pl-8mif-8dcr2t-vppip4-mrr", ("CSP", 4, 2)),
        ("imix-1c-dot1q-l2bd-eth-2ch-4vh-2vm2t-vppl2xc-mrr", ("VSC", 2, 1)),
        ("64b-1c-eth-l2xcbase-eth-2memif-1dcr-mrr", None),
        ("64b-1c-eth-l2bd-eth-3ch-8mif-8dcr2t-mrr", None),
        ("64b-1c-eth-l2bd-eth-0ch-8mif-8dcr2t-mrr", None),
    ],
)
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
    found = row_of(row)
    assert (found.pdr_lower_pps, found.mrr_pps, found.service_type) == (3_450_000.5, 4.1e6, "CSC")
    assert (found.ndr_lower_pps is None, found.mrr_trials is None) == ("ndr" in column, "values" in column)


def test_a_row_that_is_no_result_costs_itself() -> None:
    good, bad = mrr(), mrr(version="9.0.0")
    items = list(read_table(parquet(*[bad] * 15, good), "t.parquet"))
    assert [item.row.test_id for item in items if isinstance(item, ImportedTest)] == [good["test_id"]]
    texts = [item.text for item in items if isinstance(item, Problem)]
    assert len(texts) < 15 and "row 1:" in texts[0] and "15 of 16" in texts[-1]


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


@pytest.mark.parametrize("content", [parquet(mrr())[:-9], parquet(mrr())[:60], b"PAR1" + b"\0" * 50])
def test_a_damaged_table_is_refused(content: bytes) -> None:
    with pytest.raises(ReadError):
        list(read_table(content, "t.parquet"))


def test_another_table_is_refused_by_its_columns() -> None:
    with pytest.raises(ReadError, match="result_"):
        list(read_table(written(pa.table({"test_id": ["a"]})), "t.parquet"))
