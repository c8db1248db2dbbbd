"""Pages, tables and files that are made of results: nothing is missing there, and all of it says simulated."""

import csv
import re
from html import unescape
from pathlib import Path

import pytest

from tests.loaded import Dataset
from tests.simulated.in_process import Ended, passed

PAGES = {
    "profiles": "Firewall With 2 Cores",
    "chains": "Two Branches Between Two Routers",
    "bursts": "Bursts Above Saturation",
    "sizings": "Snort",
    "chain_study": "Four Network Functions With A Planted Fault",
    "interference": "Network Functions Side By Side",
    "outage": "Routers",
    "stateful": "Firewall",
}
"""Name of a test by the page of its study."""


@pytest.fixture(scope="module")
def site(density: Path, studies: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    sources = (density / "output.xml", studies / "output.xml")
    passed("report", *sources, "-o", folder / "pages", "--csv", folder / "csv")
    return folder


def read(path: Path) -> str:
    return unescape(path.read_text(encoding="utf-8"))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("page", PAGES)
def test_each_study_has_a_page_whose_tests_say_simulated(site: Path, studied: Dataset, page: str) -> None:
    tested = {item.record.test_name for item in studied.characterizations}
    headings = re.findall(r"<h2\b.*?</h2>", read(site / "pages" / f"{page}.html"), re.DOTALL)
    assert [text for text in headings if PAGES[page] in text] != []
    of_tests = [text for text in headings if any(f">{name}<" in text for name in tested)]
    assert [text for text in of_tests if "SIMULATED" not in text] == []
    assert f'href="{page}.html' in read(site / "pages" / "index.html")


def test_each_density_test_has_a_page_with_its_name(site: Path, matrix: Dataset) -> None:
    pages = {path.stem: read(path) for path in (site / "pages" / "tests").glob("*.html")}
    assert pages.keys() == {row.anchor for row in matrix.recorded}
    for row in matrix.recorded:
        assert row.record.test_name in pages[row.anchor]
        assert "SIMULATED" in pages[row.anchor]
    overviews = "".join(read(path) for path in (site / "pages").glob("*.html"))
    assert [anchor for anchor in pages if f"tests/{anchor}.html" not in overviews] == []


def test_links_between_pages_lead_to_files(site: Path) -> None:
    for page in (site / "pages").rglob("*.html"):
        links = re.findall(r'<(?:a|link|script)\b[^>]*? (?:href|src)="([^"#:?]+)["#?]', read(page))
        assert links, page
        assert [link for link in links if not (page.parent / link).exists()] == [], page


def test_tables_have_a_row_for_each_density_test_with_its_figures(site: Path, matrix: Dataset) -> None:
    found = {row["test_id"]: row for row in rows(site / "csv" / "tests.csv") if row["status"] != "SKIP"}
    assert found.keys() == {row.record.test_id for row in matrix.recorded}
    for record in (row.record for row in matrix.recorded):
        row = found[record.test_id]
        assert row["simulated"] == "True"
        for name, goal in (("ndr", record.ndr), ("pdr", record.pdr)):
            assert row[f"{name}_lower_pps"] == ("" if goal is None else str(goal.lower_pps))
        assert row["mrr_pps"] == ("" if record.mrr is None else str(record.mrr.mean_pps))
    trials = rows(site / "csv" / "trials.csv")
    assert len(trials) == sum(len(row.record.trials) for row in matrix.recorded)


def test_tables_of_studies_are_those_beside_the_records(site: Path, studies: Path, studied: Dataset) -> None:
    made, measured = site / "csv" / "characterization", studies / "characterization"
    assert len(list(made.iterdir())) == len(studied.characterizations)
    statistics = list(made.glob("*/S_statistics.csv"))
    assert len(statistics) == sum(item.record.kind in {"sweep", "chain"} for item in studied.characterizations)
    for path in statistics:
        assert rows(path) == rows(measured / path.parent.name / path.name)


def test_show_as_json_has_an_object_for_every_test(shown: Ended, matrix: Dataset, studied: Dataset) -> None:
    objects = {each["test_id"]: each for each in shown.objects if each["study"] is not None}
    assert objects.keys() == {row.record.test_id for row in matrix.recorded} | {
        item.record.test_id for item in studied.characterizations
    }
    assert all(each["simulated"] and each["status"] == "PASS" for each in objects.values())
    assert all(each["measures"] for each in objects.values() if each["study"] in {"outage", "stateful", "sizing"})


def test_show_as_csv_and_markdown_has_a_row_for_every_density_test(density: Path, shown: Ended) -> None:
    recorded = [each for each in shown.objects if each["study"] == "density"]
    lines = csv.DictReader(passed("show", density, "--format", "csv").stdout.splitlines(keepends=True))
    told = {row["test_id"]: row["ndr_lower_pps"] for row in lines if row["study"] == "density"}
    assert told == {each["test_id"]: str(each["ndr_lower_pps"] or "") for each in recorded}
    assert passed("show", density, "--format", "markdown").stdout.count("SIMULATED") == len(recorded)
