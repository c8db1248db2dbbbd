"""Files of other tools: each counted once beside our own; results of DPDK's Test Suite; damage of any kind."""

import gzip
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from csit_utils.analysis.grouping import all_series
from csit_utils.commands.results.inputs import opened
from csit_utils.dataset.items import ImportedTest, Problem
from csit_utils.dataset.load import read_foreign
from csit_utils.studies.density.analysis.density import matrices
from csit_utils.studies.density.figures.heatmap import loss_definition
from resources.libraries.python.errors import ConfigError
from tests.foreign_cases import CASES, failures, make_inputs
from tests.loaded import load
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.foreign_files import (
    DTS_ROW,
    at_load,
    csit,
    csit_ndrpdr,
    fixed,
    nfvbench,
    packed,
    plain,
    pps,
    searched,
    trials,
)
from tests.unit.csit_utils.in_memory import InMemory

SOURCE = "/data/run-7/result.json"


def test_results_of_several_tools_are_read_together_once_and_never_share_a_series(tmp_path: Path) -> None:
    """Two runs of CSIT, one of NFVbench, one of ours, and a damaged file."""
    for night, value in ((1, 5e6), (2, 5.2e6)):
        tree = tmp_path / f"run-{night}" / "tests" / "vpp" / "perf"
        tree.mkdir(parents=True)
        found = csit(csit_ndrpdr(ndr={"lower": pps(value)}), start_time=f"2024-03-0{night}T01:00:00Z")
        (tree / "density.info.json").write_bytes(packed(found))
        other = packed(plain(start_time=f"2024-03-0{night}T00:00:00Z"))
        (tree / "plain.info.json.gz").write_bytes(gzip.compress(other))
    twice = tmp_path / "PVVP-3-10000-64-IMIX.json"
    twice.write_bytes(packed(nfvbench({"64": searched(), "IMIX": searched()})))
    (tmp_path / "own.json").write_text(result().model_dump_json(), encoding="utf-8")
    (tmp_path / "bad.info.json").write_bytes(packed(csit([])))  # type: ignore[arg-type]
    dataset = load([tmp_path, twice])
    assert (len(dataset.foreign), len(dataset.recorded), dataset.unrecorded) == (6, 1, [])
    assert {problem.source for problem in dataset.problems} == {str(tmp_path / "bad.info.json")}
    rows = InMemory(dataset).tests
    runs = {row.run for row in rows if row.origin == "fdio-csit"}
    assert runs == {str(tmp_path / "run-1"), str(tmp_path / "run-2")}, "a run of CSIT is its tree and not each file"
    series = all_series(rows)
    assert sorted(one.system.origin for one in series) == ["csit-density", "fdio-csit", "nfvbench", "nfvbench"]
    for origin, definitions in (
        ("fdio-csit", ["no packet lost", "loss ≤ 0.5 %"]),
        ("nfvbench", ["loss ≤ 0.001 %", "loss ≤ 0.1 %"]),
    ):
        of_tool = next(one for one in series if one.system.origin == origin and one.frame == "64B")
        assert [loss_definition(matrix) for matrix in matrices(rows, of_tool)] == definitions


def test_a_directory_of_nothing_that_can_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(packed(plain(version="3.0.0")))
    with pytest.raises(ConfigError, match=r"invalid result of FD\.io CSIT"):
        opened([tmp_path]).contents()


def dts(*rows: dict[str, Any]) -> list[Any]:
    return [*read_foreign(packed({"results": rows}), "perf.json")]


def test_each_frame_size_of_dts_is_a_test_whose_frames_have_a_checksum_too() -> None:
    good = {**DTS_ROW, "frame_size": 1518, "measured_mpps": 1.6, "performance_delta": 0.6, "pass": True}
    small, large = dts({**DTS_ROW, "performance_delta": -0.083, "pass": False}, good)
    assert (small.row.mrr_pps, small.row.frame, small.row.status) == (27.5e6, "68B", "FAIL")
    assert (large.row.mrr_pps, large.row.frame, large.row.status) == (1.6e6, "1522B", "PASS")
    assert small.row.mrr_l1_bps == pytest.approx(27.5e6 * 88 * 8)
    assert "30" in small.row.evidence and small.anchor != large.anchor


def test_one_bad_value_of_dts_costs_itself_and_a_missing_size_the_file() -> None:
    (found, other) = dts({**DTS_ROW, "expected_mpps": "many"}, {**DTS_ROW, "frame_size": "64"})
    assert found.row.mrr_pps == other.row.mrr_pps == 27.5e6
    assert "expected_mpps" in found.row.evidence and "frame_size" in other.row.evidence and other.row.frame is None
    (problem,) = dts({"measured_mpps": 1.0})
    assert isinstance(problem, Problem) and "row 1: frame_size" in problem.text


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe{}", b"null", b"[1, 2]", b'"text"', b"<robot/>"),
        *(b'{"schema_version": 3}', b'{"test_id": 1}', b'{"version": "1.5.1", "test_id": "tests.a"}'),
        # Refused as JSON already; nothing overflows.
        packed(csit(csit_ndrpdr()))[:-1] + b', "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    ],
    ids=lambda content: repr(content[:12]),
)
def test_what_is_of_no_known_tool_is_left_to_the_caller(content: bytes) -> None:
    assert read_foreign(content, SOURCE) is None


JUNK: tuple[Any, ...] = (None, True, -1, 10**400, float("nan"), "x" * 2000, "\ud800", [[]], {"value": {}})


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a file; of a list the first."""
    children = data.items() if isinstance(data, dict) else enumerate(data[:1]) if isinstance(data, list) else ()
    for key, value in children:
        yield (*path, key)
        yield from leaves(value, (*path, key))


IDLE = {"pdr_0": {"min": 5, "avg": 12, "max": 90, "hdrh": "", "unit": "us"}}
CSIT_FILE = csit(csit_ndrpdr(latency_forward=IDLE, latency_reverse={}))
NDR = at_load(1e6, 10.0, 0.0)
NDR["stats"]["overall"]["hdrh"] = ""
NFVBENCH_FILE = nfvbench({"64": {"ndr": NDR, "iteration_stats": trials((9e6, 1.0)), **fixed(200.0)}})


@pytest.mark.parametrize(
    "whole", [CSIT_FILE, pytest.param(NFVBENCH_FILE, marks=pytest.mark.slow)], ids=["csit", "nfvbench"]
)
def test_junk_at_any_place_gives_tests_or_one_problem(whole: Any) -> None:
    """A reader never raises, and a file with a problem gives no half of its tests."""
    for path in leaves(whole):
        for junk in JUNK:
            place = data = deepcopy(whole)
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = junk
            items = list(read_foreign(packed(data), SOURCE) or ())
            kinds = {type(item) for item in items}
            assert kinds <= {ImportedTest} or (kinds == {Problem} and len(items) == 1), (path, junk)


def test_ordinary_files_of_others_are_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    """With the commands that users type."""
    make_inputs(tmp_path)
    found = dict(failures(tmp_path))
    assert len(found) >= len(CASES)
    assert {command: what for command, what in found.items() if what} == {}
