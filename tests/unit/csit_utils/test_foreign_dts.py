"""Results of DPDK's Test Suite."""

import json
from typing import Any

import pytest

from csit_utils.dataset.items import ImportedTest, Problem
from csit_utils.dataset.load import read_foreign
from tests.unit.csit_utils.foreign_files import DTS_ROW as ROW


def read(*rows: dict[str, Any]) -> list[object]:
    items = read_foreign(json.dumps({"results": rows}).encode(), "perf.json")
    assert items is not None
    return list(items)


def test_each_frame_size_is_a_test_whose_frames_have_a_checksum_too() -> None:
    good = {**ROW, "frame_size": 1518, "measured_mpps": 1.6, "performance_delta": 0.6, "pass": True}
    small, large = read({**ROW, "performance_delta": -0.083, "pass": False}, good)
    assert isinstance(small, ImportedTest) and isinstance(large, ImportedTest)
    assert (small.row.mrr_pps, small.row.frame, small.row.status) == (27.5e6, "68B", "FAIL")
    assert (large.row.mrr_pps, large.row.frame, large.row.status) == (1.6e6, "1522B", "PASS")
    assert small.row.mrr_l1_bps == pytest.approx(27.5e6 * 88 * 8)
    assert "30" in small.row.evidence and small.anchor != large.anchor


def test_one_bad_value_costs_itself_and_a_missing_size_the_file() -> None:
    (found, other) = read({**ROW, "expected_mpps": "many"}, {**ROW, "frame_size": "64"})
    assert isinstance(found, ImportedTest) and isinstance(other, ImportedTest)
    assert found.row.mrr_pps == other.row.mrr_pps == 27.5e6
    assert "expected_mpps" in found.row.evidence and "frame_size" in other.row.evidence and other.row.frame is None
    (problem,) = read({"measured_mpps": 1.0})
    assert isinstance(problem, Problem) and "row 1: frame_size" in problem.text
