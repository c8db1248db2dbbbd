"""docs/how-to/add-a-study.md adds a study: its files alone, followed to the letter, on the simulated testbed."""

import json
from pathlib import Path

import pytest

from tests.how_to_pages import ADD_A_STUDY, files_of, lint
from tests.how_to_study import SUITE, commands_of_page, finished_in, project_with_study

SPECIFICATIONS = "tests/characterization/specs/warmup/"
SIDES = ("resources/libraries/python/studies/warmup/", "csit_utils/studies/warmup/")


def test_a_study_is_a_folder_on_each_side_and_a_suite() -> None:
    outside = [name for name in files_of(ADD_A_STUDY) if not name.startswith((*SIDES, SPECIFICATIONS))]
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
    assert list(written) == ["robot", "show", "report", "schema"]

    assert "firewall: 5 deployments" in written["robot"]
    assert "2 tests, 2 passed, 0 failed" in written["robot"]
    assert "SIMULATED warm-up router (Router): 0 trials after 3 deployments lost packets" in written["show"]
    assert json.loads(written["schema"])["properties"]["study"]["const"] == "warmup"

    page = (project / "warmup.html").read_text(encoding="utf-8")
    assert "Loss after each deployment" in page
    assert ">Warm-up</" in page
    record = json.loads((project / "results/warmup/results/warmup-Firewall.json").read_text(encoding="utf-8"))
    starts = record["warmup"]["starts"]
    assert (record["study"], record["simulated"], len(starts)) == ("warmup", True, 5)
    assert all(ratio == 0 for start in starts for _, ratio in start["losses"])
