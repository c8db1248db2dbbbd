"""docs/how-to/add-a-study.md adds a study: its files alone, followed to the letter, on the simulated testbed."""

import csv
import json
from pathlib import Path

import pytest

from tests.how_to_pages import ADD_A_STUDY, files_of, lint
from tests.how_to_study import SUITE, commands_of_page, finished_in, project_with_study

SIDES = ("resources/libraries/python/studies/warmup/", "csit_utils/studies/warmup/")


def test_a_study_is_a_folder_on_each_side_and_a_suite() -> None:
    outside = [name for name in files_of(ADD_A_STUDY) if not name.startswith(SIDES)]
    assert outside == [SUITE]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_with_study(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize("check", [("check",), ("format", "--check")])
def test_code_of_the_page_passes_the_linter(project: Path, check: tuple[str, ...]) -> None:
    assert not lint(project, check, SIDES)


@pytest.mark.slow
def test_commands_of_the_page_run_show_and_describe_the_study(project: Path) -> None:
    written = {arguments[0]: finished_in(project, *arguments) for arguments in commands_of_page()}
    assert list(written) == ["robot", "show", "report", "explain", "schema"]

    assert "firewall: 5 deployments, about " in written["robot"]
    assert "router: without loss after 0.0 s, 0.0 s, 0.0 s (simulated)" in written["robot"]
    assert "2 tests, 2 passed, 0 failed" in written["robot"]
    line = "SIMULATED warm-up router, 64B, 10.0 kpps (Router): without loss 0.0 s after a deployment"
    assert line in written["show"]
    assert "deployment 3: no loss from 0.0 s on" in written["show"]
    assert written["explain"].startswith("Warm-up time\n")
    assert json.loads(written["schema"])["properties"]["study"]["const"] == "warmup"

    page = (project / "warmup.html").read_text(encoding="utf-8")
    assert "Loss after each deployment" in page
    assert ">Warm-up</" in page
    results = project / "results" / "warmup"
    own, read = (folder / "characterization" / "Firewall" / "warmup.csv" for folder in (results, results / "csv"))
    assert own.read_bytes() == read.read_bytes()
    with own.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["deployment"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert {(row["warmup_s"], row["delivered_at_first"], row["windows"]) for row in rows} == {("0.0", "1.0", "5")}
    record = json.loads((results / "results" / "warmup-Firewall.json").read_text(encoding="utf-8"))
    assert (record["study"], record["simulated"], len(record["warmup"]["starts"])) == ("warmup", True, 5)
