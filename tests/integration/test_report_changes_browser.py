"""The compare and trend pages in a real browser: they say what was planted, and compute as the analysis does."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from plotly.offline import get_plotlyjs
from scipy.special import stdtr, stdtrit
from scipy.stats import false_discovery_control

from csit_utils.analysis.comparisons.comparison import Change, compare
from csit_utils.analysis.runs import ComparisonSide
from csit_utils.dataset.items import Recorded, Status
from csit_utils.dataset.rows import TestRow
from csit_utils.dataset.store.stored_contents import Stored
from csit_utils.report.html import script, style
from csit_utils.report.pages import compare as compare_page
from csit_utils.report.pages import trend as trend_page
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import render, shell
from csit_utils.report.units import DASH
from csit_utils.studies.registry import measured_rows as numbers_of
from tests.integration.browser import IN_CHROMIUM, Browser
from tests.unit.csit_utils.characterization_records import FIREWALL, sized, sweep_of, swept
from tests.unit.csit_utils.histories import Rows, nights, planted

pytestmark = [pytest.mark.parallel, IN_CHROMIUM]


def write_pages(contents: Stored, folder: Path) -> Path:
    """These two pages as the site has them."""
    shown = ReportContents(contents)
    pages = [made for page in (compare_page.PAGE, trend_page.PAGE) if (made := render(page, shown)) is not None]
    assets = folder / "assets"
    assets.mkdir(parents=True)
    (assets / "report.css").write_text(style(), encoding="utf-8")
    (assets / "report.js").write_text(script(), encoding="utf-8")
    (assets / "plotly.js").write_text(get_plotlyjs(), encoding="utf-8")
    navigation = [(f"{page.name}.html", page) for page in pages]
    for page in pages:
        text = shell(shown, [page], navigation, assets="assets/")
        (folder / f"{page.name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The planted history."""
    return write_pages(planted(), tmp_path_factory.mktemp("changes"))


ROWS = "[...document.querySelectorAll('#compare-result table.data.plain[data-rows] tbody tr')]"


def shown_rows(browser: Browser) -> list[list[str]]:
    """What the table of the comparison shows."""
    found: list[list[str]] = browser.value(
        f"{ROWS}.filter((row) => !row.hidden).map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"
    )
    return found


def test_student_and_the_judgement_of_many_cells_are_those_of_scipy(browser: Browser, site: Path) -> None:
    browser.open(site / "compare.html")
    cases = [(t, freedom) for t in (0.0, 0.3, 1.0, 2.5, 8.0, 40.0) for freedom in (1.0, 1.7, 4.0, 9.33, 58.0, 400.0)]
    student = "csit.student(csit.json('compare-data').student)"
    chances = browser.value(f"{json.dumps(cases)}.map(([t, freedom]) => {student}.chance(t, freedom))")
    assert chances == pytest.approx([2 * float(stdtr(freedom, -t)) for t, freedom in cases], rel=2e-4, abs=1e-8)
    freedoms = [1.0, 1.3, 2.0, 3.7, 9.0, 29.5, 300.0]
    reaches = browser.value(f"{json.dumps(freedoms)}.map((freedom) => {student}.quantile(freedom))")
    assert reaches == pytest.approx([float(stdtrit(freedom, 0.975)) for freedom in freedoms], rel=2e-5)
    chance = [0.5, 0.01, 0.04, 0.01, 1.0, 0.03]
    assert browser.value(f"csit.adjusted({chance})") == pytest.approx(false_discovery_control(chance))


def varied() -> Rows:
    """Everything that comparisons tell apart: MRR, no upper bound, PDR found by the way, unlike goals, testbeds."""
    contents = planted()
    strict = (contents.tests[0].goals or "").replace("PDR loss <= 0.500%", "PDR loss <= 0.100%")
    rows: list[TestRow] = [*contents.tests]
    for testbed, rate in (("lab-a", 2e6), ("lab-b", 2.04e6)):
        rows += [_mrr(each) for each in nights(5, constant(rate), testbed, ("CSC", 6, 1))]
        unbounded = nights(5, constant(9e6), testbed, ("CSC", 8, 1), noise=0.0)
        rows += [replace(each, pdr_upper_pps=None) for each in unbounded]
        rows += nights(4, constant(rate), testbed, ("CSP", 4, 1), test_type="LATENCY")
    rows += nights(6, constant(3.1e6), "lab-b", ("CSC", 2, 1), goals=strict)
    return Rows([*rows, *_characterized(rows)])


def _characterized(rows: Sequence[TestRow]) -> Iterator[TestRow]:
    """Numbers of a sweep and of a sizing in the first runs of each testbed; some of them without an upper bound."""
    firsts = {row.run: row for row in rows}
    for number, first in enumerate([*firsts.values()][:40]):
        record = swept("Firewall", sweep_of("firewall", FIREWALL, capacity_pps=1.5e5 + 1e3 * (number % 7)))
        items = [Recorded(each, first.run, Status.PASS, "") for each in (record, sized())]
        where = {name: getattr(first, name) for name in ("testbed", "world", "simulated", "started_at", "version")}
        yield from (replace(row, **where) for row in numbers_of(items))


def constant(rate_pps: float) -> Callable[[int], float | None]:
    """The same rate in each night."""
    return lambda _: rate_pps


def _mrr(row: TestRow) -> TestRow:
    searched = {name: None for name in TestRow.__dataclass_fields__ if name.startswith(("ndr_", "pdr_"))}
    searched |= {"ndr_verdict": "", "pdr_verdict": ""}  # type: ignore[dict-item]
    found = {"test_type": "MRR", "mrr_pps": row.pdr_lower_pps, "mrr_stdev_pps": 9e3, "mrr_trials": 10}
    return replace(row, **{**searched, **found})  # type: ignore[arg-type]


def test_the_page_computes_the_same_figures_as_the_analysis(browser: Browser, tmp_path: Path) -> None:
    contents = varied()
    folder = write_pages(contents, tmp_path / "site")
    browser.open(folder / "compare.html")
    history = ReportContents(contents).history
    sides = {side.name: side for side in history.sides}
    names = [
        "lab-a, all runs", "lab-b, all runs", "lab-a VPP 26.06, all runs", "lab-a VPP 26.10, all runs",
        "lab-a 2026-11-01", "lab-a 2026-11-05", "lab-a 2026-11-20", "lab-b 2026-11-02", "lab-b 2026-11-05",
    ]  # fmt: skip
    compared = 0
    for a in names:
        for b in names:
            for insist in (False, True):
                expected = compare(rows_of(sides[a]), rows_of(sides[b]), insist=insist)
                found = browser.value(_computed(a, b, insist=insist))
                assert [each[0] for each in found] == [_key(change) for change in expected.changes]
                for change, (_, numbers, words) in zip(expected.changes, found, strict=True):
                    assert words == [change.method, change.outcome, list(change.remarks)], (a, b, change)
                    assert numbers == pytest.approx(_numbers(change), rel=2e-4, abs=2e-6), (a, b, change)
                    compared += 1
    assert compared > 500


def rows_of(side: ComparisonSide) -> list[TestRow]:
    """All tests of a side."""
    return [row for run in side.runs for row in run.rows]


NO_NUMBER = -1e99
"""For what is unknown and for infinity."""


def _key(change: Change) -> list[object]:
    return [change.a.series.service_type, *change.dimensions, str(change.metric)]


def _numbers(change: Change) -> list[float]:
    means = [change.a.mean_pps, change.a.stdev_pps, change.b.mean_pps, change.b.stdev_pps]
    every = [*means, change.change, change.low, change.high, change.probability]
    return [each if each is not None and math.isfinite(each) else NO_NUMBER for each in every]


def _computed(a: str, b: str, *, insist: bool) -> str:
    """The page's own comparison."""
    return f"""(() => {{
      const data = csit.json("compare-data"), runs = (name) => data.sides.find((side) => side[1] === name)[2];
      const finite = (value) => (Number.isFinite(value) ? value : {NO_NUMBER});
      return csit.compare(data, runs({json.dumps(a)}), runs({json.dumps(b)}), {json.dumps(insist)}).changes
      .map((one) => [[one.a.cell.t, one.a.cell.s, one.a.cell.n, data.metrics[one.a.cell.m]],
        [one.a.mean, one.a.stdev, one.b.mean, one.b.stdev, one.change, one.low, one.high, one.probability].map(finite),
        [one.method, one.outcome, one.remarks]]);
    }})()"""


def test_the_comparison_of_the_newest_run_finds_what_was_planted(browser: Browser, site: Path) -> None:
    browser.open(site / "compare.html")
    browser.wait(f"{ROWS}.length")
    rows = shown_rows(browser)
    assert len(rows) == 12
    fallen = [row for row in rows if row[-1] == "regression"]
    assert [row[:2] for row in fallen] == [["CSP 2x1", "NDR"], ["CSP 2x1", "PDR"]]
    assert all(row[8].startswith("\N{MINUS SIGN}1") for row in fallen)
    assert {row[-1] for row in rows} == {"regression", "no change seen"}
    cells = "[...document.querySelectorAll('.compare-maps td.c-value:not(.quiet)')].map((cell) => cell.innerText)"
    assert [text[0] for text in browser.value(cells)] == ["▼"]
    buttons = browser.value(
        "[...document.querySelector('.compare-maps .saves').children].map((one) => one.textContent)"
    )
    assert buttons == ["CSV", "Markdown", "SVG", "PNG"]
    said = browser.value("document.querySelector('.apart summary').textContent")
    assert said == "The recorded environments are identical", "the baseline begins with the step, as the version did"


SIDE = "document.querySelector(\"#compare-form select[aria-label='side {}']\")"


def test_choosing_swapping_and_adding_sides(browser: Browser, site: Path) -> None:
    browser.open(site / "compare.html")
    browser.wait(f"{ROWS}.length")
    browser.enter(SIDE.format("A"), "lab-a VPP 26.06, all runs", "change")
    browser.enter(SIDE.format("B"), "lab-a VPP 26.10, all runs", "change")
    assert verdict(browser) == "regression"
    assert verdict(browser, "CSC 1x1") == "no change seen"
    assert "version of VPP" in browser.value("document.querySelector('.apart summary').textContent")
    address = browser.value("location.hash")
    assert "compare=lab-a%20VPP%2026.06" in address
    browser.click("#compare-form button", "swap")
    assert verdict(browser) == "progression"
    browser.click("#compare-form button", "one more")
    assert {len(row) for row in shown_rows(browser)} == {17}
    browser.open(site / "compare.html", address)
    assert verdict(browser) == "regression"


def verdict(browser: Browser, cell: str = "CSC 2x1") -> str:
    """Of the PDR of a cell."""
    (found,) = [row[-1] for row in shown_rows(browser) if row[:2] == [cell, "PDR"]]
    return found


def test_filter_sort_and_csv(browser: Browser, site: Path) -> None:
    names = [quote(f"lab-a VPP {version}, all runs") for version in ("26.06", "26.10")]
    browser.open(site / "compare.html", f"#compare={names[0]}&with={names[1]}")
    browser.enter("document.querySelector('#compare-result .result input[type=search]')", "csc pdr")
    assert [row[0] for row in shown_rows(browser)] == ["CSC 1x1", "CSC 2x1", "CSC 4x1"]
    browser.click("#compare-result table[data-rows] thead button", "change")
    changes = browser.value(f"{ROWS}.filter((row) => !row.hidden).map((row) => Number(row.cells[8].dataset.v))")
    assert changes == sorted(changes)
    name, text, *_ = browser.saved("document.querySelector('#compare-result .result .saves button').click()")
    assert name == "compare-lab-a-VPP-26.06-all-runs-with-lab-a-VPP-26.10-all-runs.csv"
    head, *lines = text.splitlines()
    assert head.startswith("cell,metric,a_mean_pps,a_stdev_pps,a_runs,b_mean_pps")
    assert [line.split(",")[0] for line in lines] == ["CSC 2x1", "CSC 1x1", "CSC 4x1"]


def test_unlike_figures_are_refused_until_one_insists(browser: Browser, tmp_path: Path) -> None:
    folder = write_pages(varied(), tmp_path / "unlike")
    address = f"#compare={quote('lab-a, all runs')}&with={quote('lab-b, all runs')}"
    browser.open(folder / "compare.html", address)
    refused = [row for row in shown_rows(browser) if row[-1] == "unlike"]
    assert [row[:2] for row in refused] == [["CSC 2x1", "PDR"]]
    assert refused[0][8:10] == [DASH, DASH]
    said = browser.value("document.querySelector('#compare-result .warn').innerText")
    assert said.startswith("Not compared")
    assert "PDR means loss <= 0.5 % in A and <= 0.1 % in B" in said
    browser.value("document.getElementById('insist').click()")
    assert not [row for row in shown_rows(browser) if row[-1] == "unlike"]
    assert browser.value("document.querySelector('#compare-result .warn').innerText").startswith("Compared on request")


def test_a_cell_is_drawn_large_by_its_address(browser: Browser, site: Path) -> None:
    browser.open(site / "trend.html")
    address = browser.value("document.querySelector('.sparks a.regression').id")
    browser.open(site / "trend.html", f"#{address}")
    browser.wait("document.querySelector('.big-trend svg.main-svg')")
    names = browser.value("document.querySelector('.big-trend .canvas').data.map((trace) => trace.name)")
    assert names == ["runs", "level", "regression"]
    assert browser.value("document.querySelector('.big-trend .canvas').data[2].x") == ["2026-11-13 22:11"]
    assert browser.value("document.querySelector('.big-trend .canvas').data[2].marker.symbol") == "triangle-down"
    assert "1 step" in browser.value("document.querySelector('.big-trend p').textContent")
    browser.value("document.querySelector('.sparks a[id^=trend-csp-2x1-pdr]').click()")
    browser.wait("document.querySelector('.big-trend .canvas').data.some((trace) => trace.name === 'suspected')")
    assert (
        browser.value("document.querySelector('.big-trend .canvas').data.at(-1).marker.symbol") == "triangle-down-open"
    )


def test_a_failed_night_is_a_gap_in_the_large_drawing(browser: Browser, site: Path) -> None:
    browser.open(site / "trend.html")
    browser.value("document.querySelector('tr[id^=trend-csp-1x1-pdr] a').click()")  # in the folded list of steady cells
    browser.wait("document.querySelector('.big-trend .canvas')?.data")
    assert browser.value("document.querySelector('#trend-steady .big-trend').offsetParent !== null")
    traces = "document.querySelector('.big-trend .canvas').data.map(({ name, x, y, text }) => ({ name, x, y, text }))"
    runs, *_, failed = browser.value(traces)
    assert runs["y"][5] is None
    assert failed["name"] == "did not pass"
    assert failed["x"] == [runs["x"][5]]
    assert failed["text"][0].startswith("no traffic at hop 2")


VISIBLE = (
    "[...document.querySelectorAll('.sparks a')].filter((one) => one.offsetParent)"
    ".map((one) => one.querySelector('b').textContent)"
)


def test_cells_are_narrowed_by_words_and_by_state(browser: Browser, site: Path) -> None:
    browser.open(site / "trend.html")
    assert len(browser.value(VISIBLE)) == 8, "steady cells are a list"
    browser.click(".states button", "two bands")
    assert browser.value(VISIBLE) == ["VSC 1x1 NDR", "VSC 1x1 PDR"]
    browser.click(".states button", "two bands")
    browser.enter("document.querySelector('#trend-filter')", "csc 4x1 ndr")
    assert browser.value(VISIBLE) == ["CSC 4x1 NDR"]


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_scrolls_sideways(browser: Browser, site: Path, width: int) -> None:
    browser.look(width, 900)
    for name in ("compare", "trend"):
        browser.open(site / f"{name}.html")
        assert browser.value("document.documentElement.scrollWidth") <= width, name
