"""Changes between runs on pages, in small drawings and in messages, on histories whose truth is planted."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from csit_utils.analysis.cells import figures
from csit_utils.analysis.trends.events import events, grouped
from csit_utils.analysis.trends.trend import FEWEST, TrendState
from csit_utils.cli import make_app
from csit_utils.commands.results.report import _check_side
from csit_utils.dataset.items import Status, Unrecorded
from csit_utils.dataset.rows import TestRow
from csit_utils.report.links import CellNames
from csit_utils.report.messages import MessageLine, MessagePart, markdown, message_parts
from csit_utils.report.pages import compare, trend
from csit_utils.report.pages.trend import HEIGHT, WIDTH, LevelSpan, Mark, sparkline
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import RenderedPage, render, write_site
from csit_utils.report.units import MINUS
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.redaction import keep_secret
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import dataset_of
from tests.unit.csit_utils.histories import NIGHTS, STEP_NIGHT, Rows, nights, planted, row
from tests.unit.csit_utils.in_memory import InMemory

HOSTILE = "</script><img src=x onerror=alert(1)>\"'"


@pytest.fixture(scope="module")
def shown() -> ReportContents:
    """The planted history."""
    return ReportContents(planted())


@pytest.fixture(scope="module")
def trend_page(shown: ReportContents) -> RenderedPage:
    """Its trend page."""
    return render(trend.PAGE, shown)


@pytest.fixture(scope="module")
def compare_page(shown: ReportContents) -> RenderedPage:
    """Its compare page."""
    return render(compare.PAGE, shown)


def test_names_say_what_differs_on_their_testbed_and_the_heading_what_differs_between_testbeds() -> None:
    rows = [row(1e6, testbed="lab-a", nf_size=size) for size in ("1c", "0.5c")]
    rows += [row(1e6, testbed="lab-b", frame="IMIX"), row(1e6, testbed="lab-c", frame="64B")]
    cells = [cell for cell in figures(rows) if cell.metric == "PDR"]
    names = CellNames(cells)
    assert {names.short(cell) for cell in cells} == {"CSC 1x1 NF-1c", "CSC 1x1 NF-0.5c", "CSC 1x1"}
    assert "lab-b" in names.common and "IMIX" in names.common
    alone = CellNames([cell for cell in cells if cell.series.system.testbed == "lab-b"])
    assert "IMIX" in alone.common and "lab-b" not in alone.common


def data(page: RenderedPage, identity: str) -> dict[str, Any]:
    """The data for a page's script."""
    found = re.search(rf'<script type="application/json" id="{identity}">(.*?)</script>', page.html, re.DOTALL)
    return dict(json.loads(found[1]))


def place(each: TestRow) -> str:
    """`CSC 2x1`."""
    return f"{each.service_type} {each.dimensions}"


def test_the_events_are_those_that_were_planted_and_no_others(shown: ReportContents) -> None:
    found = events(shown.trends)
    assert {(place(each.after.row), each.up, each.suspected, each.after.row.run.split("/")[1]) for each in found} == {
        ("CSC 2x1", False, False, str(STEP_NIGHT)),
        ("CSC 4x1", True, False, str(STEP_NIGHT - 3)),
        ("CSP 2x1", False, True, str(NIGHTS - 1)),
    }
    assert [each.after.at for each in found] == sorted((each.after.at for each in found), reverse=True)
    fall = next(each for each in found if not each.up and not each.suspected)
    assert fall.change == pytest.approx(-0.08, abs=0.005)
    assert fall.before.row.run == f"lab-a/{STEP_NIGHT - 1}/output.xml"
    assert [(group.cells, len(group.events), group.up, group.doubt) for group in grouped(found)] == [
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
    for kind, cell in ((TrendState.REGRESSION, "csc-2x1"), ("two-bands", "vsc-1x1")):
        found = {address.split("-64b")[0] for address, kinds in states.items() if kind in kinds}
        assert found == {f"trend-{cell}-ndr", f"trend-{cell}-pdr"}
    assert set(data(trend_page, "trend-data")["cells"]) > set(states), "others are drawn on demand"


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


def test_runs_of_different_tests_or_one_run_are_no_pair_and_make_no_page() -> None:
    apart = [row(1e6, 0), row(1e6, 1, cell=("CSP", 1, 1)), row(1e6, 2, cell=("VSC", 1, 1))]
    alone = [row(1e6), replace(row(1e6), anchor="again")]  # several figures in one run are no trend
    for rows in (apart, alone, alone[:1]):
        assert [render(page, ReportContents(Rows(rows))) for page in (compare.PAGE, trend.PAGE)] == [None, None]
    assert ReportContents(Rows(alone[:1])).changes == []
    made = render(compare.PAGE, ReportContents(Rows([*apart, row(1.2e6, 3), row(1e6, 4, cell=("VSC", 1, 1))])))
    pairs = re.findall(r"<tr><td><a[^>]*>(.*?)</a></td><td>(.*?)</td>", made.html)
    assert pairs == [("lab-a 2026-11-03", "lab-a 2026-11-05"), ("lab-a 2026-11-01", "lab-a 2026-11-04")]


def test_text_from_outside_stays_text() -> None:
    rows = nights(12, lambda night: None if night == 3 else 1e6, HOSTILE, version=HOSTILE, label=HOSTILE)
    hostile = ReportContents(Rows([replace(each, message=HOSTILE) for each in rows]))
    for page in (trend.PAGE, compare.PAGE):
        assert "<img" not in render(page, hostile).html


@pytest.mark.slow
def test_ten_thousand_tests_stay_below_three_megabytes() -> None:
    sizes = [(s, n) for s in (1, 2, 4, 6, 8, 10) for n in (1, 2, 4, 6, 8, 10, 12)]
    cells = [(kind, *size) for kind in ("VSC", "CSC", "CSP") for size in sizes]
    rows = [each for cell in cells for each in nights(20, lambda _: 1e6, cell=cell)]
    assert 4 * len(rows) > 10_000
    quarter = ReportContents(Rows(rows))
    for page in (trend.PAGE, compare.PAGE):
        # Four times as many nights take less than four times the room.
        assert 4 * len(render(page, quarter).html.encode()) < 3e6, page.name
    assert events(quarter.trends) == []


def test_a_pair_that_was_asked_for_comes_before_all_others() -> None:
    made = render(compare.PAGE, ReportContents(planted(), compared=("lab-b, all runs", "lab-a 2026-11-02")))
    (first, *_) = re.findall(r"<tr><td><a[^>]*>(.*?)</a></td><td>(.*?)</td>", made.html)
    assert first == ("lab-b, all runs", "lab-a 2026-11-02")


def test_a_side_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"no such run, release or testbed; choose from lab-b 2026-11-\d+, "):
        _check_side("lab-b 2026-11-20", list(compare.comparable(ReportContents(planted()))))


def numbers(svg: str, kind: str) -> list[str]:
    """Paths of a kind."""
    return re.findall(rf'<path class="{kind}" d="([^"]*)"', svg)


def heights(svg: str) -> list[float]:
    return [float(number) for number in re.findall(r"[ML][\d.]+ ([\d.]+)", svg)]


def test_a_gap_interrupts_the_line_a_lone_night_is_a_dot_and_noise_stays_flat() -> None:
    (line,) = numbers(sparkline([1.0, 1.0, None, 1.0, None, 1.0, 1.0]), "v")
    assert [part.count("L") for part in line.split("M")[1:]] == [1, 0, 1]
    assert line.count("h.1") == 1
    (quiet,) = numbers(sparkline([100.0, 100.1, 99.9]), "v")
    assert max(heights(quiet)) - min(heights(quiet)) < 2


def test_a_regression_points_down_and_one_that_is_only_suspected_is_open() -> None:
    marks = [Mark(1, 1.0, False), Mark(2, 2.0, True, True)]
    svg = sparkline([2.0, 1.0, 2.0], (LevelSpan(0, 0, 2.0), LevelSpan(1, 2, 1.5)), marks)
    assert len(numbers(svg, "down")) == len(numbers(svg, "up open")) == 1
    assert numbers(svg, "l")[0].count("H") == 2


def test_all_stays_inside_and_no_night_at_all_is_an_empty_drawing() -> None:
    svg = sparkline([0.0, 1e9, 5e8], failed=[1])
    assert max(float(number) for number in re.findall(r"[ML]([\d.]+)", svg)) <= WIDTH
    assert max(heights(svg)) <= HEIGHT
    assert "path" not in sparkline([None, None])
    assert len(numbers(sparkline([None, None], failed=[0, 1]), "f")) == 1


MARKED_UP = "</li><img src=x onerror=alert(1)> [a](http://b) `c` **d**\n# e"


def parts(rows: Rows) -> dict[str, list[MessageLine]]:
    found = message_parts(ReportContents(rows), lambda href: f"at{href}")
    return {part.heading: list(part.lines) for part in found}


def test_a_message_has_the_planted_changes_and_key_figures() -> None:
    found = parts(planted())
    changes = [f"{each.testbed}: {each.text}" for each in ReportContents(planted()).changes]
    assert [line.text for line in found["What changed"]] == changes[:20]
    assert all(line.href and line.href.startswith("at#") for line in found["What changed"])
    assert re.search(r"CSC carries [\d.]+ [kM]pps", found["Key figures"][0].text)


def test_a_night_like_the_one_before_has_no_changes_and_says_so() -> None:
    first = [replace(row, started_at="2026-11-01T01:00:00+00:00", run="1") for row in planted().tests[-1:]]
    second = [replace(row, started_at="2026-11-02T01:00:00+00:00", run="2", anchor="t-2") for row in first]
    (line,) = parts(Rows([*first, *second]))["What changed"]
    assert line.text == "No unexplained change beyond noise, and no test changed its status." and line.href is None
    assert "What changed" not in parts(Rows(first))


def test_texts_are_escaped_in_markdown_and_html(tmp_path: Path) -> None:
    text = markdown(MARKED_UP, [MessagePart("Failed", (MessageLine(" ".join(MARKED_UP.split()), "a.html"),))], "")
    assert "<img" not in text and r"\[a\]\(http" in text and r"\`c\`" in text and text.count("](") == 1
    failed = Unrecorded("id", MARKED_UP, (), "output.xml", Status.FAIL, MARKED_UP)
    shown = ReportContents(InMemory(dataset_of(result(), unrecorded=(failed,))))
    write_site(shown, tmp_path, url="https://ci.example/job (1)")
    html = (tmp_path / "message.html").read_text(encoding="utf-8")
    assert "img src" in html and "<img" not in html and "<script" not in html
    chat = (tmp_path / "message.md").read_text(encoding="utf-8")
    assert "(https://ci.example/job%20%281%29/index.html)" in chat


@pytest.mark.parametrize("call", ["@channel", "<!here>", "https://203.0.113.1/x", "www.example.org", "mailto:a@b.org"])
def test_a_message_calls_nobody_and_links_to_nothing_of_its_own(call: str) -> None:
    text = markdown("night", [MessagePart("Failed", (MessageLine(f"x {call} y"),))], "")
    assert call not in text.replace("\\", "")
    assert text.replace("\u2060", "").replace("\\", "") == f"**night**\n\n**Failed**\n\n- x {call} y\n"


def test_a_message_is_bounded_has_no_secret_and_moves_no_cursor() -> None:
    last = planted().tests[-1]
    failed = [replace(last, anchor=f"t-{n}", test_name=f"t{n}", status="FAIL", message="x\n" * 500) for n in range(30)]
    lines = parts(Rows([*planted().tests, *failed]))["Failed"]
    assert len(lines) == 21 and lines[-1].text == "10 more"
    assert lines[0].text.startswith("t0: x x") and len(lines[0].text) == 200
    keep_secret("open sesame")
    (line,) = parts(Rows([replace(last, status="FAIL", message="open sesame \x1b[2J \u202efdp.exe")]))["Failed"]
    assert "*** \\x1b[2J \\u202efdp.exe" in line.text


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--url", "javascript:alert(1)", "--url javascript:alert(1): expected an address that begins with https://"),
        ("-o", "density.PDF", "a report is a folder of pages, or one .html file; a browser prints it as PDF"),
    ],
)
def test_an_invalid_address_and_another_format_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, value: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("report", "output.xml", option, value)
    with pytest.raises(ConfigError, match=re.escape(reason)):
        make_app(words)(words, standalone_mode=False)
    assert not list(tmp_path.iterdir())
