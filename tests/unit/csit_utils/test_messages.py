"""The message of a night: what changed and failed, with links, whatever names and messages contain."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from csit_utils.cli import make_app
from csit_utils.dataset.items import Status, Unrecorded
from csit_utils.report.exports.messages import MessageLine, MessagePart, markdown, message_parts
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import write_site
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.redaction import keep_secret
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import dataset_of
from tests.unit.csit_utils.histories import Rows, planted
from tests.unit.csit_utils.in_memory import InMemory

HOSTILE = "</li><img src=x onerror=alert(1)> [a](http://b) `c` **d**\n# e"


def parts(rows: Rows) -> dict[str, list[MessageLine]]:
    found = message_parts(ReportContents(rows), lambda href: f"at{href}")
    return {part.heading: list(part.lines) for part in found}


def test_a_message_has_the_planted_changes_and_key_figures() -> None:
    found = parts(planted())
    shown = ReportContents(planted())
    assert [line.text for line in found["What changed"]] == [f"{each.testbed}: {each.text}" for each in shown.changes][
        :20
    ]
    assert all(line.href and line.href.startswith("at#") for line in found["What changed"])
    assert re.search(r"CSC carries [\d.]+ [kM]pps", found["Key figures"][0].text)


def test_a_night_like_the_one_before_has_no_changes_and_says_so() -> None:
    first = [replace(row, started_at="2026-11-01T01:00:00+00:00", run="1") for row in planted().tests[-1:]]
    second = [replace(row, started_at="2026-11-02T01:00:00+00:00", run="2", anchor="t-2") for row in first]
    (line,) = parts(Rows([*first, *second]))["What changed"]
    assert line.text == "No unexplained change beyond noise, and no test changed its status." and line.href is None
    assert "What changed" not in parts(Rows(first))


def test_failed_tests_are_listed_with_their_message_in_one_bounded_line() -> None:
    last = planted().tests[-1]
    failed = [replace(last, anchor=f"t-{n}", test_name=f"t{n}", status="FAIL", message="x\n" * 500) for n in range(30)]
    lines = parts(Rows([*planted().tests, *failed]))["Failed"]
    assert len(lines) == 21 and lines[-1].text == "10 more"
    assert lines[0].text.startswith("t0: x x") and len(lines[0].text) == 200


def test_texts_are_escaped_in_markdown_and_html(tmp_path: Path) -> None:
    text = markdown(HOSTILE, [MessagePart("Failed", (MessageLine(" ".join(HOSTILE.split()), "a.html"),))], "")
    assert "<img" not in text and r"\[a\]\(http" in text and r"\`c\`" in text and text.count("](") == 1
    failed = Unrecorded("id", HOSTILE, (), "output.xml", Status.FAIL, HOSTILE)
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


def test_a_message_has_no_secret_and_moves_no_cursor() -> None:
    keep_secret("open sesame")
    failed = replace(planted().tests[-1], status="FAIL", message="open sesame \x1b[2J \u202efdp.exe")
    (line,) = parts(Rows([failed]))["Failed"]
    assert "*** \\x1b[2J \\u202efdp.exe" in line.text


def test_links_lead_to_pages_of_the_site(tmp_path: Path) -> None:
    write_site(ReportContents(InMemory(dataset_of(result()))), tmp_path)
    links = re.findall(r'href="([^"#]+)#([^"]+)"', (tmp_path / "message.html").read_text(encoding="utf-8"))
    assert links
    for file, anchor in links:
        assert f'id="{anchor}"' in (tmp_path / file).read_text(encoding="utf-8")


def test_an_invalid_address_is_refused() -> None:
    words = ("report", "output.xml", "--url", "javascript:alert(1)")
    with pytest.raises(
        ConfigError, match=r"--url javascript:alert\(1\): expected an address that begins with https://"
    ):
        make_app(words)(words, standalone_mode=False)


@pytest.mark.parametrize(
    ("name", "instead"),
    [("density.PDF", "a browser prints it as PDF"), ("all.csv", "for other formats see ./csit export")],
)
def test_a_report_in_another_format_is_refused(tmp_path: Path, name: str, instead: str) -> None:
    words = ("report", "output.xml", "-o", str(tmp_path / name))
    with pytest.raises(ConfigError, match=rf"{name}: a report is a folder of pages, or one .html file; {instead}$"):
        make_app(words)(words, standalone_mode=False)
    assert not list(tmp_path.iterdir())
