"""How-to pages: a metric and a study are added to the letter, and transcripts are what commands print."""

import base64
import csv
import json
import shutil
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from resources.libraries.python.paths import PROJECT
from tests.how_to_pages import ADD_A_METRIC, ADD_A_STUDY, apply_edits_of, files_of, lint, rewritten
from tests.how_to_study import SUITE, commands_of_page, finished_in, project_with_study

RUN = "robot -v TOPOLOGY:topologies/{0}.yaml -v CELLS:1-2x1 --suite csc-ndrpdr -d results/{0} tests/density"


def test_a_metric_takes_few_lines_in_few_files() -> None:
    edits = files_of(ADD_A_METRIC)
    added = [line for edit in edits.values() for line in edit.splitlines() if line[:1] == "+" != line[:3]]
    assert len(edits) <= 6
    assert len(added) <= 60


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name in ("csit_utils", "resources", "topologies", "tests/density"):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("*.pyc.*"))
    apply_edits_of(ADD_A_METRIC, folder)
    return folder


@pytest.mark.parametrize("check", [("check",), ("format", "--check")])
def test_code_of_the_pages_passes_the_linter(project: Path, with_study: Path, check: tuple[str, ...]) -> None:
    assert not lint(project, check, files_of(ADD_A_METRIC))
    assert not lint(with_study, check, SIDES)


@pytest.fixture(scope="module")
def measured(project: Path) -> Path:
    for run in ("a", "b"):
        text = (project / "topologies/sim.yaml").read_text().replace("seed: 1\n", f"seed: {ord(run)}\n")
        (project / f"topologies/{run}.yaml").write_text(text)
        finished_in(project, *RUN.format(run).split())
    finished_in(project, "import", "results/a", "results/b", "-o", "history")
    return project


@pytest.mark.slow
def test_the_metric_is_shown_and_kept(measured: Path) -> None:
    def said(*arguments: str) -> list[str]:
        return finished_in(measured, *arguments).splitlines()

    heads, *lines = (line.split("\t") for line in said("show", "results/a/output.xml"))
    at = heads.index("PDR") + 1
    assert heads[at] == "PDR-lost"
    assert all(line[at].endswith(" ppm") for line in lines)
    values = [json.loads(line)["pdr_lost_ppm"] for line in said("show", "results/a/output.xml", "--format", "json")]
    assert all(0 <= value < 5000 for value in values)

    answer = said("query", "history", "SELECT count(pdr_lost_ppm) AS tests FROM tests", "--format", "json")
    assert [json.loads(line) for line in answer] == [{"tests": 2 * len(values)}]
    assert "Packets lost per million at PDR." in "\n".join(said("explain", "pdr-lost"))

    said("export", "results/a/output.xml", "--uti", "-o", "uti")
    tests = [path for path in measured.glob("uti/**/*.info.json") if path.name != "suite.info.json"]
    packed = [text for path in tests for text in json.loads(path.read_text())["telemetry"]]
    told = [float(zlib.decompress(base64.b64decode(text)).split()[-1]) for text in packed]
    assert sorted(told) == sorted(values)


@pytest.mark.slow
def test_the_metric_is_compared_followed_and_on_the_pages(measured: Path) -> None:
    files = ["results/a/output.xml", "results/b/output.xml"]
    for command, key, found in (
        (["compare", *files], "outcome", "cannot tell"),  # without bounds, whatever the difference
        (["trend", "history", "--all"], "state", "too few"),
    ):
        rows = [
            json.loads(line)
            for line in finished_in(measured, *command, "--format", "json").splitlines()
            if line[:1] == "{"
        ]
        assert {row[key] for row in rows if row["metric"] == "PDR-lost"} == {found}
    finished_in(measured, "gate", *files, "--junit", "gate.xml", "--tolerance", "50%")
    cases = ElementTree.parse(measured / "gate.xml").getroot().iter("testcase")  # noqa: S314 - our own file
    assert any(case.attrib["name"].endswith(" PDR-lost") for case in cases)

    finished_in(measured, "report", *files, "-o", "site", "--csv", "csv")
    (table,) = measured.glob("csv/**/tests.csv")
    assert all(float(row["pdr_lost_ppm"]) >= 0 for row in csv.DictReader(table.read_text().splitlines()))
    for page in ("results", "compare", "trend"):
        assert "PDR-lost" in (measured / "site" / f"{page}.html").read_text(encoding="utf-8"), page
    pages = [path.read_text(encoding="utf-8") for path in measured.glob("site/**/*.html")]
    assert any('<th scope="row">PDR-lost</th>' in page for page in pages)


SPECIFICATIONS = "tests/characterization/specs/warmup/"
SIDES = ("resources/libraries/python/studies/warmup/", "csit_utils/studies/warmup/")


def test_a_study_is_a_folder_on_each_side_and_a_suite() -> None:
    outside = [name for name in files_of(ADD_A_STUDY) if not name.startswith((*SIDES, SPECIFICATIONS))]
    assert outside == [SUITE]


@pytest.fixture(scope="module")
def with_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_with_study(tmp_path_factory.mktemp("project"))


@pytest.mark.slow
def test_commands_of_the_page_run_show_and_describe_the_study(with_study: Path) -> None:
    written = {arguments[0]: finished_in(with_study, *arguments) for arguments in commands_of_page()}
    assert list(written) == ["robot", "show", "report", "schema"]

    assert "firewall: 5 deployments" in written["robot"]
    assert "2 tests, 2 passed, 0 failed" in written["robot"]
    assert "SIMULATED warm-up router (Router): 0 trials after 3 deployments lost packets" in written["show"]
    assert json.loads(written["schema"])["properties"]["study"]["const"] == "warmup"

    page = (with_study / "warmup.html").read_text(encoding="utf-8")
    assert "Loss after each deployment" in page
    assert ">Warm-up</" in page
    record = json.loads((with_study / "results/warmup/results/warmup-Firewall.json").read_text(encoding="utf-8"))
    starts = record["warmup"]["starts"]
    assert (record["study"], record["simulated"], len(starts)) == ("warmup", True, 5)
    assert all(ratio == 0 for start in starts for _, ratio in start["losses"])


NOW = "date +%Y-%m-%dT%H:%M:%S"


def page(*lines: str, opening: str = "```console", closing: str = "```") -> str:
    return "\n".join(["# A page", "", opening, *lines, closing, ""])


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (("$ echo 12 pps",), ("$ echo 12 pps", "12 pps")),
        ((f"$ {NOW}", "2026-01-01T00:00:00"), (f"$ {NOW}", "2026-01-01T00:00:00")),
        (("$ seq 9", "1", "...", "8", "x"), ("$ seq 9", "1", "...", "8", "9")),
        (("$ false", "$ echo $?"), ("$ false", "$ echo $?", "1")),
        (("$ echo a \\", "  b", "c"), ("$ echo a \\", "  b", "a b")),
    ],
)
def test_what_differs_is_rewritten_but_times_and_durations(shown: tuple[str, ...], printed: tuple[str, ...]) -> None:
    assert rewritten(page(*shown)).startswith(page(*printed).removesuffix("```\n"))
    hidden = page("$ echo 5 > number; echo done", opening="<!-- console", closing="-->")
    assert rewritten(hidden + page("$ cat number")) == hidden + page("$ cat number", "5")


@pytest.mark.parametrize("lines", [("$ false",), ("$ false", "$ echo next"), ("no command",)])
def test_a_command_that_fails_unseen_is_refused(lines: tuple[str, ...]) -> None:
    with pytest.raises(AssertionError):
        rewritten(page(*lines))
