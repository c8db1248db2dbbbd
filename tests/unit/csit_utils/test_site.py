"""The report as a site: which runs it shows, which tests have a page, and where links lead."""

import re
from pathlib import Path

import pytest

from csit_utils.analysis.grouping import all_series
from csit_utils.analysis.runs import history, latest_runs
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import NDR
from csit_utils.report.links import cell_anchor
from csit_utils.report.report_context import Details, ReportContents
from csit_utils.report.site import single_file, write_site
from csit_utils.studies.density.analysis.density import Matrix, matrices
from csit_utils.studies.density.analysis.efficiency import NF, VSWITCH, speedups
from csit_utils.studies.density.figures.speedup import SpeedupLimits, speedup_figure
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.studies.density.model import DensityRecord
from tests.loaded import Dataset
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import dataset_of, plain
from tests.unit.csit_utils.in_memory import InMemory


def night(day: int, *results: DensityRecord) -> Dataset:
    """Tests of one night, as a file of its own."""
    stamp = f"2026-11-{day:02}T20:00:00+00:00"
    dated = [each.model_copy(update={"started_at": stamp, "finished_at": stamp}) for each in results]
    return dataset_of(*dated, source=f"{day}.xml")


def together(*nights: Dataset) -> InMemory:
    """All of them."""
    every = Dataset()
    for one in nights:
        every.recorded += one.recorded
        every.unrecorded += one.unrecorded
    return InMemory(every)


def shown_pps(shown: ReportContents, place: tuple[int, int], metric: Measure = NDR) -> float | None:
    """The figure of a cell in the only series."""
    (series,) = all_series(shown.latest)
    found = {matrix.metric: matrix for matrix in matrices(shown.latest, series)}
    return found[metric].cells[place].value_pps


TWO_NIGHTS = (night(1, plain(1, 1, 200e3), plain(2, 1, 150e3)), night(2, plain(1, 1, 300e3)))


def test_the_latest_run_is_shown_and_a_mean_over_all_where_it_is_asked_for() -> None:
    shown = ReportContents(together(*TWO_NIGHTS))
    assert shown_pps(shown, (1, 1)) == 300e3
    assert [row.source for row in shown.latest] == ["2.xml"], "a cell of another night does not fill a hole of this one"
    shown = ReportContents(together(*TWO_NIGHTS), mean=True)
    assert shown_pps(shown, (1, 1)) == 250e3
    told: list[tuple[int, int]] = []
    assert "means over 2 runs" in single_file(shown, lambda *come: told.append(come))
    of_pages, of_tests = (total for done, total in told if not done)
    assert {(of_pages, of_pages), (of_tests, of_tests)} < {*told} and of_tests == len(shown.paged)


def test_suites_that_ran_one_after_the_other_are_one_picture_and_each_testbed_has_its_own() -> None:
    other = result(ServiceType.CSP, 1, 1, histograms=False)
    assert len(latest_runs(history(together(night(1, plain(1, 1, 200e3)), night(2, other)).tests))) == 2
    every = together(night(1, plain(1, 1, 2e5, testbed="a")), night(2, plain(1, 1, 3e5, testbed="b")))
    assert [run.testbed.name for run in ReportContents(every).runs] == ["a", "b"]


@pytest.mark.parametrize(
    ("details", "pages"), [(None, 3), (Details.ALL, 3), (Details.LATEST, 1), (Details.NONE, 0)]
)  # fmt: skip
def test_tests_with_a_page_of_their_own(tmp_path: Path, details: Details | None, pages: int) -> None:
    write_site(ReportContents(together(*TWO_NIGHTS), details=details), tmp_path)
    assert len(list((tmp_path / "tests").glob("*.html"))) == pages


def test_of_too_many_tests_those_that_stand_out_have_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csit_utils.report.report_context.MAX_PAGES", 2)
    failed = plain(4, 1, 1e5, passed=False, message="nf-1-1 is down")
    of_night = night(1, failed)
    shown = ReportContents(together(TWO_NIGHTS[0], of_night, TWO_NIGHTS[1]))
    assert shown.paged == {of_night.recorded[0].anchor, TWO_NIGHTS[1].recorded[0].anchor}
    latest = together(night(1, *(plain(instances, 1, 1e5 * instances) for instances in (1, 2)), failed))
    assert [row.status for row in ReportContents(latest).latest] == ["PASS", "PASS", "FAIL"]
    assert len(ReportContents(latest).paged) == 1
    monkeypatch.setattr("csit_utils.report.report_context.MAX_PAGES", 3)
    assert len(ReportContents(latest).paged) == 3


def test_links_of_the_site_lead_to_files_that_are_there(tmp_path: Path) -> None:
    write_site(ReportContents(together(*TWO_NIGHTS)), tmp_path, processes=2)
    pages = list(tmp_path.rglob("*.html"))
    ids = {page.resolve(): set(re.findall(r'\bid="([^"]+)"', page.read_text())) for page in pages}
    checked = 0
    for page in pages:
        for file, anchor in re.findall(r'<a [^>]*?href="([^"#:]*)#([^"=]+)"', page.read_text()):
            target = (page.parent / file).resolve() if file else page.resolve()
            assert anchor in ids[target], f"{page.name}: {file}#{anchor}"
            checked += 1
    assert checked > 50


@pytest.mark.slow
def test_several_processes_write_the_same_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csit_utils.report.site._MANY", 0)
    many = together(*(night(day, *(plain(s, 1, 1e5 * s) for s in range(1, 6))) for day in range(1, 9)))
    told: list[tuple[int, int]] = []
    write_site(ReportContents(many), tmp_path / "one", progress=lambda *come: told.append(come))
    write_site(ReportContents(many), tmp_path / "two", processes=2)
    assert told[-1] == (40, 40)
    for page in (tmp_path / "one").rglob("*.html"):
        assert page.read_text() == (tmp_path / "two" / page.relative_to(tmp_path / "one")).read_text()


def sized(size: NfSize, vs_dtc: int, ndr: float) -> DensityRecord:
    """CSC 1x1 with these sizes."""
    return plain(1, 1, ndr, size=size, vs_dtc=vs_dtc)


SIZED = (sized(NfSize.ONE, 1, 1e6), sized(NfSize.ONE, 2, 1.5e6), sized(NfSize.HALF, 1, 0.8e6))


def matrices_of(*tests: DensityRecord) -> list[Matrix]:
    rows = InMemory(dataset_of(*tests)).tests
    return [matrix for series in all_series(rows) for matrix in matrices(rows, series)]


def test_speedup_is_along_one_size_with_the_other_kept() -> None:
    by_axis = {one.axis: one for one in speedups([each for each in matrices_of(*SIZED) if each.metric == NDR])}
    assert [point.rate_pps for point in by_axis[VSWITCH].points] == [1e6, 1.5e6]
    assert by_axis[VSWITCH].factor(by_axis[VSWITCH].points[1]) == 1.5
    assert by_axis[VSWITCH].perfect_pps(2) == 2e6
    assert [point.cores for point in by_axis[NF].points] == [0.5, 1.0]


def test_limits_are_drawn_where_they_do_not_flatten_the_rest() -> None:
    figure = speedup_figure("s", "", matrices_of(*SIZED), SpeedupLimits(line_pps=2e6, generator_pps=40e6))
    notes = figure.variants["NDR|vSwitch cores|throughput"]["layout"]["annotations"]
    assert [note["text"] for note in notes] == ["line rate of both links: 2.00 Mpps"]
    relative = figure.variants["NDR|vSwitch cores|relative to the fewest cores"]["data"]
    assert [line for line in relative if "name" in line][1]["y"] == [1.0, 2.0], "the perfect one"
    free = speedup_figure("s", "", matrices_of(*SIZED), SpeedupLimits()).variants["NDR|vSwitch cores|throughput"]
    assert max(y for line in free["data"] for y in line["y"]) <= free["layout"]["yaxis"]["range"][1]
    assert speedup_figure("s", "", matrices_of(SIZED[0]), SpeedupLimits()) is None, "of one size alone"


def test_an_address_of_a_cell_does_not_depend_on_the_report() -> None:
    alone = InMemory(dataset_of(plain(1, 1, 2e5))).tests
    beside = InMemory(dataset_of(plain(1, 1, 3e5), sized(NfSize.HALF, 1, 1e5))).tests
    anchors = {
        cell_anchor(series, NDR, (1, 1)) for rows in (alone, beside) for series in all_series(rows)
    }  # fmt: skip
    assert len(anchors) == 2, "the same for the same cell, another one for another NF size"
    assert all(re.fullmatch(r"csc-1x1-ndr-64b-(1|0\.5)c-vs1-[a-z0-9.-]+", anchor) for anchor in anchors)
