"""`compare`, `trend` and `gate` as a person and a pipeline call them, on a simulated history with planted events."""

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from csit_utils.bisection.spec import CALLED_STEPS
from csit_utils.cli import make_app
from tests.planted_nights import write_nights

NIGHTS = 16


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights")
    write_nights(folder, NIGHTS, testbeds=1)
    return folder


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(make_app([str(arguments[0])]), [str(each) for each in arguments])


BEFORE, AFTER = "night=2026-01-01..2026-01-03", "night=2026-01-07..2026-01-16"
"""The planted fall of CSC by 8 % is in night 6, from 0."""


def test_trend_finds_the_planted_fall_and_nothing_else(history: Path) -> None:
    done = run("trend", history, "--format", "json")
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(each["service_type"], each["state"]) for each in found} == {("CSC", "regression")}
    assert len(found) == 3
    assert all(each["steps"][0]["since"].startswith("2026-01-07") and each["simulated"] for each in found)


def test_regressions_are_written_for_a_bisection_largest_first(history: Path, tmp_path: Path) -> None:
    assert run("trend", history, "--steps", tmp_path / "steps.json").exit_code == 0
    steps = CALLED_STEPS.validate_json((tmp_path / "steps.json").read_bytes())
    assert {(step.cell, step.metric) for step in steps} == {
        ("CSC 1x1 1c vswitch-1c", metric) for metric in ("MRR", "NDR", "PDR")
    }
    assert [step.change for step in steps] == sorted(step.change for step in steps)
    assert all(-0.12 < step.change < -0.04 for step in steps)


def test_a_regression_is_new_with_one_night_only(history: Path, tmp_path: Path) -> None:
    """A trend needs ten figures, and the fall is confirmed by then."""
    nights = sorted((history / "sim-a").glob("*/output.xml"))
    written = {}
    for count in (9, 10, 11):
        steps = tmp_path / f"{count}.json"
        done = run("trend", *nights[:count], "--new-with", nights[count - 1], "--steps", steps)
        assert done.exit_code == 0, done.output
        written[count] = CALLED_STEPS.validate_json(steps.read_bytes())
    assert {count: {step.metric for step in steps} for count, steps in written.items() if steps} == {
        10: {"NDR", "PDR", "MRR"}
    }


def test_compare_finds_the_fall_largest_first(history: Path) -> None:
    arguments = ("compare", BEFORE, AFTER, "--data", history)
    found = [json.loads(line) for line in run(*arguments, "--format", "json").stdout.splitlines()]
    fell = {(each["service_type"], each["metric"]) for each in found if each["outcome"] == "regression"}
    assert fell == {("CSC", "NDR"), ("CSC", "PDR"), ("CSC", "MRR")}
    assert [each["change"] for each in found] == sorted(each["change"] for each in found)
    table = run(*arguments, "--format", "markdown", "--outcome", "regression").stdout.splitlines()
    assert len(table) == 2 + 3, "two heads"


def test_more_than_two_are_each_compared_with_the_first(history: Path) -> None:
    done = run("compare", BEFORE, BEFORE, AFTER, "--data", history, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["b"] for row in rows} == {BEFORE, AFTER}
    assert {float(row["change"]) for row in rows if row["b"] == BEFORE} == {0.0}


@pytest.mark.parametrize(
    ("options", "status"), [((), 1), (("--tolerance", "30%"), 0), (("--tolerance", "30%", "--require", "10"), 1)]
)
def test_the_gate_ends_with_its_status(history: Path, options: tuple[str, ...], status: int) -> None:
    done = run("gate", BEFORE, AFTER, "--data", history, *options)
    assert done.exit_code == status, done.output
    assert "9 cells judged" in done.stdout


def test_a_night_is_gated_against_the_runs_before_it(history: Path) -> None:
    def gate(count: int, night: int) -> Result:
        file = history / "sim-a" / f"2026-01-{night:02}" / "output.xml"
        return run("gate", f"before={count}", file, "--data", history, "--require", "0")

    fell = gate(5, 7)
    assert fell.exit_code == 1, "the planted fall is in that night"
    assert "3 with a significant regression" in fell.stdout
    assert gate(5, 3).exit_code == 0
    later = gate(4, 16)
    assert later.exit_code == 0, f"those before it fell as well: {later.output}"
    first = gate(5, 1)
    assert first.exit_code == 0
    assert "0 cells judged" in first.stdout, "there is nothing to hold the first night against"


def test_the_gates_junit_file_has_a_case_for_every_cell(history: Path, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "gate.xml"
    run("gate", BEFORE, AFTER, "--data", history, "--junit", path)
    suite = ElementTree.parse(path).getroot()  # noqa: S314 - our own file
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("9", "3", "0")
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert all(name and name.startswith("CSC 1x1") for name in failed)
