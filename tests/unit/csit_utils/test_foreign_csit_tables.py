"""CSIT's Parquet tables: their rows are read as files of the same tests are."""

from datetime import datetime
from typing import Any

import pytest

from csit_utils.dataset.foreign.csit import place_of, read_csit, tags_of_name
from csit_utils.dataset.foreign.csit_tables import is_table, read_row
from csit_utils.dataset.rows import TestRow
from tests.unit.csit_utils.foreign_files import csit, csit_ndrpdr

STARTED = datetime(2021, 11, 29, 12, 39, 49, 176947)
DENSITY = "64b-1c-eth-l2bd-eth-4ch-8mif-8dcr2t-vppip4-ndrpdr"


def flat(value: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Nested fields by their names, joined as CSIT's ETL joins them."""
    found: dict[str, Any] = {}
    for name, each in value.items():
        found |= flat(each, f"{path}{name}_") if isinstance(each, dict) else {f"{path}{name}": each}
    return found


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
