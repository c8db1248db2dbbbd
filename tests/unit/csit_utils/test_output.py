"""Numbers for people, CSV for machines, and the command line."""

import csv
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pytest

from csit_utils import cli
from csit_utils.dataset.frames import frame_of, write_csv
from csit_utils.dataset.rows import FlowRow, InstanceRow, LatencyRow, TestRow, TrialRow
from csit_utils.report import units
from csit_utils.studies.registry import explanations
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.result import VerdictKind
from tests.loaded import rows_of_tests, table_rows
from tests.unit.csit_utils.builders import mrr_result, result
from tests.unit.csit_utils.characterization_records import one_of_each
from tests.unit.csit_utils.datasets import dataset_of, invoked
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.csit_utils.stateful_cells import stateful_record
from tests.unit.csit_utils.study_records import interfered

CSC = ServiceType.CSC


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (units.rate, 212_345.0, "212 kpps"),
        (units.rate, 1_240_000.0, "1.24 Mpps"),
        (units.rate, 999_600.0, "1.00 Mpps"),
        (units.rate, 999_400.0, "999 kpps"),
        (units.rate, 9_996.0, "10.0 kpps"),
        (units.rate, 0.0, "0 pps"),
        (units.rate, 0.5, "0.500 pps"),
        (units.rate, None, units.DASH),
        (units.rate, float("nan"), units.DASH),
        (units.bandwidth, 1.43e9, "1.43 Gbit/s"),
        (units.latency, 36_000.0, "36.0 µs"),
        (units.latency, 999.0, "999 ns"),
        (units.latency, 2_500_000.0, "2.50 ms"),
        (units.seconds, 0.41, "410 ms"),
        (units.seconds, 1.0, "1 s"),
        (units.seconds, 200.0, "3 min 20 s"),
        (units.seconds, 1200.0, "20 min"),
        (units.seconds, 7500.0, "2 h 5 min"),
        (units.percent, 0.005, "0.5 %"),
        (units.percent, 0.0, "0 %"),
        (units.percent, -0.151, "\N{MINUS SIGN}15 %"),
        (units.memory, 8 * 2**30, "8.00 GiB"),
    ],
)
def test_numbers_for_people(function: Callable[[object], str], value: float | None, text: str) -> None:
    assert function(value) == text


def test_csv_round_trip(tmp_path: Path) -> None:
    made = dataset_of(
        result(CSC, 2, 1), mrr_result(CSC, 1, 1), result(CSC, 1, 1, histograms=False, message='a "b"\nc,')
    )
    files = {path.stem: path for path in write_csv(InMemory(made), tmp_path / "csv")}
    assert list(files) == ["tests", "latency", "trials", "flows", "instances", "hops", "threads", "costs"]
    with files["tests"].open(newline="") as stream:
        tests = list(csv.DictReader(stream))
    rows = rows_of_tests(made)
    assert list(tests[0]) == [field.name for field in fields(TestRow) if field.name != "costs"]
    assert [test["message"] for test in tests] == [row.message for row in rows]
    rates = [float(test["ndr_lower_pps"]) if test["ndr_lower_pps"] else None for test in tests]
    assert rates == [row.ndr_lower_pps for row in rows], "unknown is empty, not 0"
    for name, kind in (("latency", LatencyRow), ("trials", TrialRow), ("flows", FlowRow), ("instances", InstanceRow)):
        assert len(pd.read_csv(files[name])) == len(list(table_rows(made, kind)))


def test_frames_keep_whole_numbers_whole() -> None:
    frame = frame_of(TestRow, rows_of_tests(dataset_of(result(CSC, 2, 1, histograms=False), mrr_result(CSC, 1, 1))))
    assert str(frame["nf_chains"].dtype) == "Int64"
    assert frame["mrr_trials"].isna().tolist() == [True, False]
    assert frame["simulated"].tolist() == [False, False]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output.xml with one measured and one simulated test."""
    results = [result(CSC, 1, 1), result(CSC, 2, 1, histograms=False, simulated=True)]
    return write_output_xml(
        tmp_path_factory.mktemp("cli") / "output.xml", results, [("t", "Fail", "line 1\nline 2", ("CSC", "4R1C"))]
    )


@pytest.mark.parametrize(
    ("words", "page"),
    [(["26.10", "--single-file"], "26.10.html"), (["page.html", "--single-file"], "page.html"), (["a.htm"], "a.htm")],
)
def test_a_single_file_has_the_name_that_was_asked_for(
    source: Path, tmp_path: Path, words: list[str], page: str
) -> None:
    name, *options = words
    done = invoked("report", source, "-o", tmp_path / "new" / name, *options)
    assert (done.exit_code, done.stderr, done.stdout.splitlines()[0]) == (0, "", str(tmp_path / "new" / page))
    assert [path.name for path in (tmp_path / "new").iterdir()] == [page]
    assert (tmp_path / "new" / page).read_text().startswith("<!DOCTYPE html>")


def test_show_in_a_pipe_is_plain(source: Path) -> None:
    done = invoked("show", source, "--page", source)
    head, first, second, third, last = done.stdout.splitlines()
    assert head.split("\t") == ["cell", "frame", "NDR", "PDR", "p99", "verdict"]
    assert first.startswith("CSC 1x1 NF-1c\t64B\t")
    assert "SIMULATED" in second
    assert third.split("\t")[-1] == "FAIL: line 1 line 2"
    assert last == f"Report: {source}"
    assert "\x1b" not in done.stdout


def test_show_as_json_has_an_object_of_raw_values_per_test(source: Path, tmp_path: Path) -> None:
    earlier = interfered().model_copy(update={"started_at": "2025-01-01T00:00:00+00:00"})
    records = [studied := interfered(), earlier, stateful_record(), *one_of_each()]
    for number, record in enumerate(records):
        (tmp_path / f"{number}.json").write_text(record.model_dump_json(), encoding="utf-8")
    done = invoked("show", str(source), str(tmp_path), "--format", "json")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    first, second, failed, *others = objects
    assert list(first) == ["study", *(field.name for field in fields(TestRow)), "p99_ns"]
    assert (first["study"], first["nf_chains"], first["simulated"]) == ("density", 1, False)
    assert (ndr := result(CSC, 1, 1).ndr) is not None and first["ndr_lower_pps"] == ndr.lower_pps > 0
    assert isinstance(first["p99_ns"], int) and second["simulated"]
    assert (failed["study"], failed["message"]) == (None, "line 1\nline 2"), "it has no record to know it by"
    assert {each["kind"] for each in others} == {record.kind for record in records}
    assert all(each["headline"] for each in others)
    assert (began := [each["started_at"] for each in others]) == sorted(began), (
        "all records of a test, the oldest first"
    )
    for each in others:
        values = [{**row, "value": 0, "lowest": 0, "highest": 0} for row in each["measures"]]
        assert all(values.count(row) == 1 for row in values), "each says what it is of"
        assert not any("workload" in str(row["unit"]) for row in values)
    (_, found) = (each for each in others if each["test_id"] == studied.test_id and each["study"] == "interference")
    assert found["measures"][0]["value"] > 0 and found["measures"][0]["unit"] is not None


def test_show_as_json_prints_nothing_else(source: Path) -> None:
    with pytest.raises(ConfigError, match="leave out --page"):
        cli.make_app(["show"])(["show", str(source), "--format", "json", "--page", "x.html"], standalone_mode=False)


def test_explain_lists_and_explains() -> None:
    assert set(explanations()) <= set(invoked("explain").stdout.split())
    shown = invoked("explain", "PDR").stdout
    assert "0.1 % is common" in " ".join(shown.split())
    assert VerdictKind.NF_BOUND.meaning in invoked("explain", "nf-bound").stdout
    assert "CELLS:" in invoked("explain", "cells").stdout
    for word, near in (("latencie", "latency"), ("hostnoise", "host-noise"), ("CELS", "CELLS")):
        done = invoked("explain", word)
        assert isinstance(done.exception, ConfigError) and f"'{near}'" in str(done.exception)


@pytest.mark.parametrize(
    "words",
    [
        ("show", "{0}", "--page", "{1}/no.html"),
        ("report", "{0}", "-o", "{0}"),
        ("import", "{1}/no.xml", "-o", "{1}/made"),
    ],
)
def test_wrong_paths_are_refused_before_anything_is_made(source: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    done = invoked(*(word.format(source, tmp_path) for word in words))
    assert isinstance(done.exception, ConfigError)
    assert not done.stdout and not [*tmp_path.iterdir()]
