"""Numbers for people, CSV for machines, the command line; a soak rate wherever NDR and PDR are."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pytest

from csit_utils.analysis.grouping import all_series
from csit_utils.dataset import rows as columns
from csit_utils.dataset.flatten import TABLES, frame_of, write_csv
from csit_utils.dataset.goal_words import goal_text
from csit_utils.dataset.rows import MEASURES, FlowRow, InstanceRow, LatencyRow, TestRow
from csit_utils.report import units
from csit_utils.studies.density.analysis.density import CellState, matrices
from csit_utils.studies.density.results_table import print_results
from csit_utils.studies.registry import explanations, measures
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.goal import PredictedGoal
from resources.libraries.python.model.result import VerdictKind
from resources.libraries.python.studies.density.model import DensityRecord
from tests.loaded import rows_of_tests, table_rows
from tests.unit.csit_utils.builders import CSC, PRIOR, RECORD, SOAK, mrr_result, result, soaked
from tests.unit.csit_utils.characterization_records import one_of_each
from tests.unit.csit_utils.datasets import dataset_of, html_of, invoked, plain
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.rendered_pages import Page
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.csit_utils.stateful_cells import stateful_record
from tests.unit.csit_utils.study_records import interfered


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (units.rate, 1_240_000.0, "1.24 Mpps"), (units.rate, 999_600.0, "1.00 Mpps"),
        (units.rate, 999_400.0, "999 kpps"), (units.rate, 9_996.0, "10.0 kpps"), (units.rate, 0.0, "0 pps"),
        (units.rate, None, units.DASH), (units.rate, float("nan"), units.DASH), (units.latency, 999.0, "999 ns"),
        (units.latency, 2_500_000.0, "2.50 ms"), (units.seconds, 0.41, "410 ms"), (units.seconds, 7500.0, "2 h 5 min"),
        (units.percent, -0.151, "\N{MINUS SIGN}15 %"), (units.percent, 1e-7, "0.00001 %"),
        (units.percent, 0.0994, "9.9 %"), (units.percent, 0.0997, "10 %"), (units.memory, 8 * 2**30, "8.00 GiB"),
    ],
)  # fmt: skip
def test_numbers_for_people(function: Callable[[object], str], value: float | None, text: str) -> None:
    assert function(value) == text


def written(contents: InMemory, folder: Path) -> tuple[Path, ...]:
    return write_csv(contents.tests, contents.rows(*TABLES), folder)


def test_csv_has_every_column_texts_as_they_are_and_what_is_unknown_as_nothing(tmp_path: Path) -> None:
    made = dataset_of(mrr_result(CSC, 1, 1), result(CSC, 1, 1, histograms=False, message='a "b"\nc,'))
    rows = rows_of_tests(made)
    assert frame_of(TestRow, rows)["mrr_trials"].isna().tolist() == [False, True]
    files = {path.stem: path for path in written(InMemory(made), tmp_path / "csv")}
    assert list(files) == ["tests", "latency", "trials", "flows", "instances", "hops", "threads", "costs"]
    with files["tests"].open(newline="") as stream:
        tests = list(csv.DictReader(stream))
    assert list(tests[0]) == [field.name for field in fields(TestRow) if field.name != "costs"]
    assert [test["message"] for test in tests] == [row.message for row in rows]
    rates = [float(test["ndr_lower_pps"]) if test["ndr_lower_pps"] else None for test in tests]
    assert rates == [row.ndr_lower_pps for row in rows], "unknown is empty, not 0"
    for name, kind in (("latency", LatencyRow), ("flows", FlowRow), ("instances", InstanceRow)):
        assert len(pd.read_csv(files[name])) == len(list(table_rows(made, kind)))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output.xml with one measured and one simulated test."""
    results = [result(CSC, 1, 1), result(CSC, 2, 1, histograms=False, simulated=True)]
    unrecorded = [("t", "Fail", "line 1\nline 2", ("CSC", "4R1C"))]
    return write_output_xml(tmp_path_factory.mktemp("cli") / "output.xml", results, unrecorded)


@pytest.mark.parametrize(
    ("words", "page"),
    [(["26.10", "--single-file"], "26.10.html"), (["page.html", "--single-file"], "page.html"), (["a.htm"], "a.htm")],
)
def test_a_single_file_has_the_name_that_was_asked(source: Path, tmp_path: Path, words: list[str], page: str) -> None:
    name, *options = words
    done = invoked("report", source, "-o", tmp_path / "new" / name, *options)
    assert (done.exit_code, done.stderr, done.stdout.splitlines()[0]) == (0, "", str(tmp_path / "new" / page))
    assert [path.name for path in (tmp_path / "new").iterdir()] == [page]
    assert (tmp_path / "new" / page).read_text().startswith("<!DOCTYPE html>")


def test_show_in_a_pipe_is_plain(source: Path) -> None:
    done = invoked("show", source, "--page", source)
    head, first, second, third, last = done.stdout.splitlines()
    assert head.split("\t") == ["testbed", "cell", "frame", "NDR", "PDR", "p99", "verdict"], "of two testbeds"
    assert "\tCSC 1x1 NF-1c\t64B\t" in first and "SIMULATED" in second
    assert third.split("\t")[-1] == "FAIL: line 1 line 2"
    assert last == f"Report: {source}" and "\x1b" not in done.stdout


def test_show_as_json_has_an_object_of_raw_values_per_test(source: Path, tmp_path: Path) -> None:
    earlier = interfered().model_copy(update={"started_at": "2025-01-01T00:00:00+00:00"})
    records = [studied := interfered(), earlier, stateful_record(), *one_of_each()]
    for number, record in enumerate(records):
        (tmp_path / f"{number}.json").write_text(record.model_dump_json(), encoding="utf-8")
    done = invoked("show", source, tmp_path, "--format", "json")
    first, second, failed, *others = (json.loads(line) for line in done.stdout.splitlines())
    assert list(first) == ["study", *(field.name for field in fields(TestRow)), "p99_ns"]
    assert (first["study"], first["nf_chains"], first["simulated"]) == ("density", 1, False)
    assert first["ndr_lower_pps"] == result(CSC, 1, 1).ndr.lower_pps > 0
    assert isinstance(first["p99_ns"], int) and second["simulated"]
    assert (failed["study"], failed["message"]) == (None, "line 1\nline 2"), "it has no record to know it by"
    assert {each["kind"] for each in others} == {record.kind for record in records}
    assert all(each["headline"] for each in others)
    began = [each["started_at"] for each in others]
    assert began == sorted(began), "all records of a test, the oldest first"
    (_, found) = (each for each in others if each["test_id"] == studied.test_id and each["study"] == "interference")
    assert found["measures"][0]["value"] > 0 and found["measures"][0]["unit"] is not None


def test_explain_lists_and_explains() -> None:
    assert set(explanations()) <= set(invoked("explain").stdout.split())
    assert {each.lower() for each in (*MEASURES, *measures())} <= explanations().keys(), "every measure is explained"
    for word, part in (("PDR", "0.1 % is common"), ("nf-bound", VerdictKind.NF_BOUND.meaning), ("cells", "CELLS:")):
        assert part in " ".join(invoked("explain", word).stdout.split())
    for word, near in (("latencie", "latency"), ("hostnoise", "host-noise"), ("CELS", "CELLS")):
        done = invoked("explain", word)
        assert isinstance(done.exception, ConfigError) and f"'{near}'" in str(done.exception)


@pytest.mark.parametrize(
    "words",
    [
        "show {0} --page {1}/no.html", "report {0} -o {0}", "import {1}/no.xml -o {1}/made",
        "show {0} --format json --page {0}",
    ],
)  # fmt: skip
def test_wrong_paths_are_refused_before_anything_is_made(source: Path, tmp_path: Path, words: str) -> None:
    done = invoked(*words.format(source, tmp_path).split())
    assert isinstance(done.exception, ConfigError)
    assert not done.stdout and not [*tmp_path.iterdir()]


def table(capsys: pytest.CaptureFixture[str], *results: DensityRecord) -> list[list[str]]:
    """What `show` writes into a pipe."""
    print_results(InMemory(dataset_of(*results)))
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


def csv_of(folder: Path, name: str, *results: DensityRecord) -> list[dict[str, str]]:
    """Rows of a table as it is exported."""
    (path,) = (each for each in written(InMemory(dataset_of(*results)), folder) if each.stem == name)
    with path.open(newline="") as stream:
        return [*csv.DictReader(stream)]


def test_a_soak_rate_is_wherever_ndr_and_pdr_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soak, warm, old = csv_of(tmp_path, "tests", soaked(), plain(2, 1, 1e5, search=RECORD), plain(1, 2, 1e5))
    assert (float(soak["soak_lower_pps"]), float(soak["soak_pps_per_core"])) == (2e5, 1e5)
    assert (soak["soak_loss_ratio"], soak["soak_verdict"], soak["ndr_lower_pps"]) == ("1e-07", "unstable", "")
    assert (soak["search_algorithm"], soak["search_prior"], soak["search_prior_refuted"]) == ("plr", "", "")
    told = {
        "soak_lower_pps": "", "soak_verdict": "", "search_algorithm": "ladder", "search_prior": "Density.old",
        "search_prior_started_at": "2026-11-19T08:00:00Z", "search_prior_refuted": "True", "search_trials": "43",
        "search_aborted_trials": "12",
    }  # fmt: skip
    assert {name: warm[name] for name in told} == told
    assert {old[name] for name in old if name.startswith("search_")} == {""}, "without a search"
    head, line = table(capsys, soaked())
    assert head == ["cell", "frame", "SOAK", "p99", "verdict"]
    assert (line[2], line[4]) == ("200 kpps", "unstable")
    assert re.fullmatch(r"[\d.]+ µs", line[3]), "at half of the soak rate"
    head, *lines = table(capsys, soaked(), plain(2, 1, 1e5), mrr_result(CSC, 1, 1))
    assert head == ["cell", "test", "frame", "NDR", "PDR", "SOAK", "MRR", "p99", "verdict"]
    assert [line[5] for line in lines] == ["200 kpps", "\N{EN DASH}", "\N{EN DASH}"]
    html = html_of(dataset_of(soaked()))
    text = Page(html.split('id="metrics"')[0]).text
    for part in ("SOAK 200 kpps … 201 kpps", "0.00001 %", "PLRsearch, without an earlier result: 43 trials", "SOAK50"):
        assert part in text
    assert "PDR50" not in text
    assert "v-unstable" in re.search(r'<tr><th scope="row">SOAK</th>.*?</tr>', html, re.S)[0]
    assert 'id="explain-soak"' in html
    assert not re.search(r"<th[^>]*>SOAK|Searched by", html_of(dataset_of(result(CSC, 1, 1))))
    rows = rows_of_tests(dataset_of(soaked(), soaked(2, passed=False, message="nf-2-1 is down")))
    (matrix,) = matrices(rows, all_series(rows)[0])
    cells = (matrix.cells[1, 1].value_pps, matrix.cells[2, 1].state)
    assert (matrix.metric, *cells) == (columns.SOAK, 2e5, CellState.FAILED)
    assert "loss <= 0.00001% " in goal_text(SOAK)


def guessed(goal: str, pps: float) -> PredictedGoal:
    return PredictedGoal(goal=goal, pps=pps, low_pps=0.95 * pps, high_pps=1.05 * pps, cells=5)


def test_predictions_of_other_cells_are_on_the_page_and_in_the_csv(tmp_path: Path) -> None:
    """NDR of the test is 1e5: within the interval of a prediction, or outside of it."""
    prior, guess = PRIOR.model_copy(update={"cells": 5}), guessed("NDR", 1.02e5)
    search = RECORD.model_copy(update={"prior": prior, "predicted": (guess,)})
    used, other = plain(1, 1, 1e5, search=search), plain(2, 1, 1e5, search=RECORD)
    text = html_of(dataset_of(used))
    assert "Predicted by 5 cells, with intervals of 95 %: NDR 102 kpps, 96.9 kpps to 107 kpps " in Page(text).text
    assert "(measured \N{MINUS SIGN}2.0 %)." in Page(text).text
    assert 'id="explain-prediction"' in text
    assert "Predicted by" not in html_of(dataset_of(other))
    first, second = csv_of(tmp_path, "tests", used, other)
    assert (first["search_prior_cells"], second["search_prior_cells"]) == ("5", "")
    bounds = [float(first[f"ndr_predicted_{key}"]) for key in ("pps", "low_pps", "high_pps")]
    assert bounds == pytest.approx([1.02e5, 0.969e5, 1.071e5])
    assert (first["pdr_predicted_pps"], second["ndr_predicted_pps"]) == ("", "")
