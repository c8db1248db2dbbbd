"""Changes between runs on pages, in small drawings and in messages, on histories whose truth is planted."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from csit_utils.analysis.cells import figures
from csit_utils.analysis.trends.events import events, grouped
from csit_utils.cli import make_app
from csit_utils.commands.results.report import _check_side
from csit_utils.dataset.items import Status, Unrecorded
from csit_utils.report.links import CellNames
from csit_utils.report.messages import MessageLine, MessagePart, markdown, message_parts
from csit_utils.report.pages import compare, trend
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import render, write_site
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


def test_names_say_what_differs_on_their_testbed_and_the_heading_what_differs_between_testbeds() -> None:
    rows = [row(1e6, testbed="lab-a", nf_size=size) for size in ("1c", "0.5c")]
    rows += [row(1e6, testbed="lab-b", frame="IMIX"), row(1e6, testbed="lab-c", frame="64B")]
    cells = [cell for cell in figures(rows) if cell.metric == "PDR"]
    names = CellNames(cells)
    assert {names.short(cell) for cell in cells} == {"CSC 1x1 NF-1c", "CSC 1x1 NF-0.5c", "CSC 1x1"}
    assert "lab-b" in names.common and "IMIX" in names.common
    alone = CellNames([cell for cell in cells if cell.series.system.testbed == "lab-b"])
    assert "IMIX" in alone.common and "lab-b" not in alone.common


def test_the_events_are_those_that_were_planted_and_no_others(shown: ReportContents) -> None:
    found = events(shown.trends)
    rows = [(each, each.after.row) for each in found]
    assert {
        (row.service_type, row.nf_chains, each.up, each.suspected, row.run.split("/")[1]) for each, row in rows
    } == {
        ("CSC", 2, False, False, str(STEP_NIGHT)),
        ("CSC", 4, True, False, str(STEP_NIGHT - 3)),
        ("CSP", 2, False, True, str(NIGHTS - 1)),
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


def test_the_overview_names_what_the_newest_run_changed_and_another_environment() -> None:
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
    known = planted()
    rows = [each for each in known.tests if int(each.run.split("/")[1]) <= STEP_NIGHT]
    texts = [line.text for line in ReportContents(Rows(rows, *known.environments.values())).changes]
    assert "another environment than in lab-a 2026-11-12: VPP 26.06 → VPP 26.10, version of VPP 26.06 → 26.10" in texts


def test_the_pairs_that_most_readers_want_come_first(shown: ReportContents) -> None:
    html = render(compare.PAGE, shown).html
    assert re.findall(r"<tr><td><a[^>]*>(.*?)</a></td><td>(.*?)</td>", html) == [
        ("lab-a, 7 runs since the step of 2026-11-13, before the latest", "lab-a 2026-11-20"),
        ("lab-a 2026-11-19", "lab-a 2026-11-20"),
        ("lab-a, 10 runs before the step of 2026-11-13", "lab-a, 8 runs since the step of 2026-11-13"),
        ("lab-a VPP 26.06, all runs", "lab-a 2026-11-20"),
        ("lab-b, 5 runs before the latest", "lab-b 2026-11-06"),
        ("lab-b 2026-11-05", "lab-b 2026-11-06"),
        ("lab-a, all runs", "lab-b, all runs"),
    ]


def test_runs_of_different_tests_or_one_run_are_no_pair_and_make_no_page() -> None:
    apart = [row(1e6, 0), row(1e6, 1, cell=("CSP", 1, 1)), row(1e6, 2, cell=("VSC", 1, 1))]
    alone = [row(1e6), replace(row(1e6), anchor="again")]  # several figures in one run are no trend
    for rows in (apart, alone, alone[:1]):
        assert [render(page, ReportContents(Rows(rows))) for page in (compare.PAGE, trend.PAGE)] == [None, None]
    assert ReportContents(Rows(alone[:1])).changes == []


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


def test_a_pair_that_was_asked_for_comes_first_or_is_refused_with_those_that_are_there() -> None:
    made = render(compare.PAGE, ReportContents(planted(), compared=("lab-b, all runs", "lab-a 2026-11-02")))
    (first, *_) = re.findall(r"<tr><td><a[^>]*>(.*?)</a></td><td>(.*?)</td>", made.html)
    assert first == ("lab-b, all runs", "lab-a 2026-11-02")
    with pytest.raises(ConfigError, match=r"no such run, release or testbed; choose from lab-b 2026-11-\d+, "):
        _check_side("lab-b 2026-11-20", list(compare.comparable(ReportContents(planted()))))


MARKED_UP = "</li><img src=x onerror=alert(1)> [a](http://b) `c` **d**\n# e"


def parts(rows: Rows) -> dict[str, list[MessageLine]]:
    found = message_parts(ReportContents(rows), lambda href: f"at{href}")
    return {part.heading: list(part.lines) for part in found}


def test_a_message_has_the_planted_changes_and_key_figures_or_says_that_nothing_changed() -> None:
    found = parts(planted())
    changes = [f"{each.testbed}: {each.text}" for each in ReportContents(planted()).changes]
    assert [line.text for line in found["What changed"]] == changes[:20]
    assert all(line.href and line.href.startswith("at#") for line in found["What changed"])
    assert re.search(r"CSC carries [\d.]+ [kM]pps", found["Key figures"][0].text)
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
