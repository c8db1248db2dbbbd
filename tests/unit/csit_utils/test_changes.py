"""Compare and trend pages, and the overview's lines, on histories whose truth is planted."""

import json
import re
from dataclasses import replace

import pytest

from csit_utils.analysis.trends.events import events, grouped
from csit_utils.analysis.trends.trend import FEWEST, TrendState
from csit_utils.commands.results.report import _check_side
from csit_utils.dataset.rows import TestRow
from csit_utils.report.pages import compare, trend
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import RenderedPage, render
from csit_utils.report.units import MINUS
from resources.libraries.python.errors import ConfigError
from tests.unit.csit_utils.histories import NIGHTS, STEP_NIGHT, Rows, nights, planted, row

HOSTILE = "</script><img src=x onerror=alert(1)>\"'"


@pytest.fixture(scope="module")
def shown() -> ReportContents:
    """The planted history."""
    return ReportContents(planted())


@pytest.fixture(scope="module")
def trend_page(shown: ReportContents) -> RenderedPage:
    """Its trend page."""
    made = render(trend.PAGE, shown)
    assert made is not None
    return made


@pytest.fixture(scope="module")
def compare_page(shown: ReportContents) -> RenderedPage:
    """Its compare page."""
    made = render(compare.PAGE, shown)
    assert made is not None
    return made


def data(page: RenderedPage, identity: str) -> dict[str, list[object]]:
    """The data for a page's script."""
    found = re.search(rf'<script type="application/json" id="{identity}">(.*?)</script>', page.html, re.DOTALL)
    loaded: dict[str, list[object]] = json.loads(found[1])
    return loaded


def place(each: TestRow) -> str:
    """`CSC 2x1`."""
    return f"{each.service_type} {each.dimensions}"


def test_the_events_are_those_that_were_planted_and_no_others(shown: ReportContents) -> None:
    found = events(shown.trends)
    assert {(place(each.after.row), each.up, each.suspected) for each in found} == {
        ("CSC 2x1", False, False),
        ("CSC 4x1", True, False),
        ("CSP 2x1", False, True),
    }
    nights_of = {place(each.after.row): each.after.row.run for each in found}
    assert nights_of["CSC 2x1"] == f"lab-a/{STEP_NIGHT}/output.xml"
    assert nights_of["CSP 2x1"] == f"lab-a/{NIGHTS - 1}/output.xml"
    assert [each.after.at for each in found] == sorted((each.after.at for each in found), reverse=True)
    fall = next(each for each in found if not each.up and not each.suspected)
    assert fall.change == pytest.approx(-0.08, abs=0.005)
    assert fall.before.row.run == f"lab-a/{STEP_NIGHT - 1}/output.xml"


def test_what_changed_together_is_one_group(shown: ReportContents) -> None:
    groups = grouped(events(shown.trends))
    assert [(group.cells, len(group.events), group.up, group.doubt) for group in groups] == [
        (1, 2, False, "suspected"),
        (1, 2, False, ""),
        (1, 2, True, ""),
    ]


def test_each_cell_has_a_drawing_or_a_line_with_an_address(trend_page: RenderedPage, shown: ReportContents) -> None:
    cards = re.findall(r'<a id="(trend-[^"]+)" href="#\1" class="([^"]+)">', trend_page.html)
    judged = [trend for trend in shown.trends if len(trend.figures) >= FEWEST]
    lines = re.findall(r'<tr id="(trend-[^"]+)">', trend_page.html)
    assert lines and len(cards) + len(lines) == len(judged) == len({address for address, _ in cards} | {*lines})
    assert not [address for address, kinds in cards if kinds.split() == [TrendState.STEADY]]
    states = {address: kinds.split() for address, kinds in cards}
    assert {address.split("-64b")[0] for address, kinds in states.items() if TrendState.REGRESSION in kinds} == {
        "trend-csc-2x1-ndr",
        "trend-csc-2x1-pdr",
    }
    assert {address.split("-64b")[0] for address, kinds in states.items() if "two-bands" in kinds} == {
        "trend-vsc-1x1-ndr",
        "trend-vsc-1x1-pdr",
    }
    assert set(data(trend_page, "trend-data")["cells"]) > set(states), "others are drawn on demand"


def test_cells_with_few_runs_are_points_of_one_plot(trend_page: RenderedPage) -> None:
    (figure,) = trend_page.figures
    assert "lab-b" in figure.title
    (points,) = figure.variants["CSC · PDR"]["data"]
    assert len(points["y"]) == 6
    assert points["y"][0] == 0


def test_a_failed_night_is_a_gap_with_a_tick_and_its_message(trend_page: RenderedPage) -> None:
    cells = data(trend_page, "trend-data")["cells"]
    failing = {address: cell for address, cell in cells.items() if "f" in cell}  # type: ignore[attr-defined]
    assert {address.split("-64b")[0] for address in failing} == {"trend-csp-1x1-ndr", "trend-csp-1x1-pdr"}
    (cell, _) = failing.values()
    assert cell["f"] == [[5, "no traffic at hop 2"]]
    assert len(cell["v"]) == NIGHTS - 1
    assert "did not pass in 1 run" in cell["d"]


def test_the_overview_names_what_the_newest_run_changed() -> None:
    known = planted()
    last = f"lab-a/{NIGHTS - 1}/output.xml"
    rows = [
        replace(each, status="FAIL", message="nf-1-1 is down")
        if (each.run, each.service_type, each.nf_chains) == (last, "CSC", 1)
        else each
        for each in known.tests
    ]
    lines = [(line.testbed, line.text, line.better, line.sure) for line in ReportContents(Rows(rows)).changes]
    assert lines == [
        ("lab-a", f"suspected regression since 2026-11-20: CSP 2x1 {MINUS}13 %", False, False),
        ("lab-a", f"regression since 2026-11-13: CSC 2x1 {MINUS}7.9 % (VPP 26.06 → VPP 26.10)", False, True),
        ("lab-a", "progression since 2026-11-10: CSC 4x1 +6.3 %", True, True),
        ("lab-a", "CSC 1x1 NDRPDR failed, passed before", False, True),
    ]


def test_an_environment_that_changed_is_reported_with_its_differences() -> None:
    known = planted()
    rows = [each for each in known.tests if int(each.run.split("/")[1]) <= STEP_NIGHT]
    texts = [line.text for line in ReportContents(Rows(rows, *known.environments.values())).changes]
    assert "another environment than in lab-a 2026-11-12: VPP 26.06 → VPP 26.10, version of VPP 26.06 → 26.10" in texts


def test_the_pairs_that_most_readers_want_come_first(compare_page: RenderedPage) -> None:
    rows = re.findall(r"<tr><td><a[^>]*>(.*?)</a></td><td>(.*?)</td>(.*?)</tr>", compare_page.html, re.DOTALL)
    assert [(a, b) for a, b, _ in rows] == [
        ("lab-a, 7 runs since the step of 2026-11-13, before the latest", "lab-a 2026-11-20"),
        ("lab-a 2026-11-19", "lab-a 2026-11-20"),
        ("lab-a, 10 runs before the step of 2026-11-13", "lab-a, 8 runs since the step of 2026-11-13"),
        ("lab-a VPP 26.06, all runs", "lab-a 2026-11-20"),
        ("lab-b, 5 runs before the latest", "lab-b 2026-11-06"),
        ("lab-b 2026-11-05", "lab-b 2026-11-06"),
        ("lab-a, all runs", "lab-b, all runs"),
    ]
    heads = re.findall(r'<th data-sort="number" class="num">(.*?)</th>', compare_page.html)
    numbers = [map(int, re.findall(r'<td class="num[ dim]*">(\d+)</td>', rest)) for _, _, rest in rows]
    counts = [{head: each for head, each in zip(heads, own, strict=True) if each} for own in numbers]
    assert counts[0] == {"regression": 2, "no change seen": 10}, "the planted fall of the last night, and nothing else"
    assert counts[2] == {"regression": 2, "progression": 2, "no change seen": 8}, "one cell fell, one rose earlier"
    assert counts[4] == {"no change seen": 2}
    assert not {"regression", "progression"} & counts[6].keys(), "of two testbeds"


def test_runs_of_different_tests_are_no_pair_and_make_no_page() -> None:
    apart = [row(1e6, 0), row(1e6, 1, cell=("CSP", 1, 1)), row(1e6, 2, cell=("VSC", 1, 1))]
    assert render(compare.PAGE, ReportContents(Rows(apart))) is None
    assert render(trend.PAGE, ReportContents(Rows(apart))) is None
    made = render(compare.PAGE, ReportContents(Rows([*apart, row(1.2e6, 3), row(1e6, 4, cell=("VSC", 1, 1))])))
    pairs = re.findall(r"<tr><td><a[^>]*>(.*?)</a></td><td>(.*?)</td>", made.html)
    assert pairs == [("lab-a 2026-11-03", "lab-a 2026-11-05"), ("lab-a 2026-11-01", "lab-a 2026-11-04")]


def test_several_figures_in_one_run_are_no_trend() -> None:
    again = replace(row(1e6), anchor="again")
    assert render(trend.PAGE, ReportContents(Rows([row(1e6), again]))) is None


def test_a_history_of_one_run_has_neither_page() -> None:
    alone = ReportContents(Rows([row(1e6)]))
    assert render(trend.PAGE, alone) is None
    assert render(compare.PAGE, alone) is None
    assert alone.changes == []


def test_text_from_outside_stays_text() -> None:
    rows = nights(12, lambda night: None if night == 3 else 1e6, HOSTILE, version=HOSTILE, label=HOSTILE)
    hostile = ReportContents(Rows([replace(each, message=HOSTILE) for each in rows]))
    for page in (trend.PAGE, compare.PAGE):
        made = render(page, hostile)
        assert "<img" not in made.html


@pytest.mark.slow
def test_ten_thousand_tests_stay_below_three_megabytes() -> None:
    places = [(s, n) for s in (1, 2, 4, 6, 8, 10) for n in (1, 2, 4, 6, 8, 10, 12)]
    cells = [(kind, s, n) for kind in ("VSC", "CSC", "CSP") for s, n in places]
    rows = [each for cell in cells for each in nights(20, lambda _: 1e6, cell=cell)]
    assert 4 * len(rows) > 10_000
    quarter = ReportContents(Rows(rows))
    for page in (trend.PAGE, compare.PAGE):
        made = render(page, quarter)
        # Four times as many nights take less than four times the room.
        assert 4 * len(made.html.encode()) < 3e6, page.name
    assert events(quarter.trends) == []


def test_a_pair_that_was_asked_for_comes_before_all_others() -> None:
    made = render(compare.PAGE, ReportContents(planted(), compared=("lab-b, all runs", "lab-a 2026-11-02")))
    (first, *_) = re.findall(r"<tr><td><a[^>]*>(.*?)</a></td><td>(.*?)</td>", made.html)
    assert first == ("lab-b, all runs", "lab-a 2026-11-02")


def test_a_side_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"no such run, release or testbed; choose from lab-b 2026-11-\d+, "):
        _check_side("lab-b 2026-11-20", list(compare.comparable(ReportContents(planted()))))
