"""A soak rate is shown wherever NDR and PDR are, and each test says how it was searched."""

import csv
import re
from pathlib import Path

import pytest

from csit_utils.analysis.grouping import all_series
from csit_utils.dataset import rows as columns
from csit_utils.dataset.frames import write_csv
from csit_utils.dataset.goal_words import goal_text
from csit_utils.report.details.testview import predicted
from csit_utils.report.units import percent
from csit_utils.studies.density.analysis.density import CellState, matrices
from csit_utils.studies.density.results_table import print_results
from resources.libraries.python.model.request.goal import PredictedGoal
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.loaded import rows_of_tests
from tests.unit.csit_utils.builders import CSC, PRIOR, RECORD, SOAK, mrr_result, result, soaked
from tests.unit.csit_utils.datasets import dataset_of, html_of, plain
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.rendered_pages import Page


def table(capsys: pytest.CaptureFixture[str], *results: DensityRecord) -> list[list[str]]:
    """What `show` writes into a pipe."""
    print_results(InMemory(dataset_of(*results)))
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


def csv_of(folder: Path, name: str, *results: DensityRecord) -> list[dict[str, str]]:
    """Rows of a table as it is exported."""
    (path,) = (each for each in write_csv(InMemory(dataset_of(*results)), folder) if each.stem == name)
    with path.open(newline="") as stream:
        return [*csv.DictReader(stream)]


def test_csv_has_the_soak_rate_its_verdict_and_the_search(tmp_path: Path) -> None:
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


def test_the_terminal_has_a_column_only_where_there_is_a_soak(capsys: pytest.CaptureFixture[str]) -> None:
    head, line = table(capsys, soaked())
    assert head == ["cell", "frame", "SOAK", "p99", "verdict"]
    assert (line[2], line[4]) == ("200 kpps", "unstable")
    assert re.fullmatch(r"[\d.]+ µs", line[3]), "at half of the soak rate"
    head, *lines = table(capsys, soaked(), plain(2, 1, 1e5), mrr_result(CSC, 1, 1))
    assert head == ["cell", "test", "frame", "NDR", "PDR", "SOAK", "MRR", "p99", "verdict"]
    assert [line[5] for line in lines] == ["200 kpps", "\N{EN DASH}", "\N{EN DASH}"]


def test_the_page_shows_the_soak_rate_and_how_it_was_searched() -> None:
    html = html_of(dataset_of(soaked()))
    text = Page(html.split('id="metrics"')[0]).text
    for part in ("SOAK 200 kpps … 201 kpps", "0.00001 %", "PLRsearch, without an earlier result: 43 trials", "SOAK50"):
        assert part in text
    assert "PDR50" not in text
    assert "v-unstable" in re.search(r'<tr><th scope="row">SOAK</th>.*?</tr>', html, re.S)[0]
    assert 'id="explain-soak"' in html
    assert not re.search(r"<th[^>]*>SOAK|Searched by", html_of(dataset_of(result(CSC, 1, 1))))


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
    far = search.model_copy(update={"prior": None, "predicted": (guessed("NDR", 2e5), guessed("PDR", 1e5))})
    said = predicted(far, (used.ndr, None))
    assert "(measured \N{MINUS SIGN}50 %, outside of the interval); PDR 100 kpps" in said and "too uncertain" in said
    first, second = csv_of(tmp_path, "tests", used, other)
    assert (first["search_prior_cells"], second["search_prior_cells"]) == ("5", "")
    bounds = [float(first[f"ndr_predicted_{key}"]) for key in ("pps", "low_pps", "high_pps")]
    assert bounds == pytest.approx([1.02e5, 0.969e5, 1.071e5])
    assert (first["pdr_predicted_pps"], second["ndr_predicted_pps"]) == ("", "")


def test_a_matrix_of_soaks_has_failed_cells() -> None:
    rows = rows_of_tests(dataset_of(soaked(), soaked(2, passed=False, message="nf-2-1 is down")))
    (matrix,) = matrices(rows, all_series(rows)[0])
    assert matrix.metric == columns.SOAK
    assert (matrix.cells[1, 1].value_pps, matrix.cells[2, 1].state) == (2e5, CellState.FAILED)


def test_a_tiny_loss_ratio_is_not_written_as_none() -> None:
    assert "loss <= 0.00001% " in goal_text(SOAK)
    assert percent(1e-7) == "0.00001 %"
    assert [percent(ratio) for ratio in (0.0994, 0.0997, 0.00994, 0.00997)] == ["9.9 %", "10 %", "0.99 %", "1.0 %"]


def test_a_trial_that_ended_early_says_so(tmp_path: Path) -> None:
    base = result(CSC, 1, 1)
    first, *others = base.trials
    shown = base.model_copy(update={"trials": (first.model_copy(update={"aborted": True}), *others)})
    aborted = [row["aborted"] for row in csv_of(tmp_path, "trials", shown)]
    assert aborted == ["True", *["False"] * len(others)]
    assert html_of(dataset_of(shown)).count("<td>ended early") == 1
