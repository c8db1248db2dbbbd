"""What a page holds back: all of it is there, packed, and the page stays small and whole."""

import base64
import hashlib
import json
import re
import zlib
from typing import Any

import pytest
from markupsafe import escape

from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import single_file
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.request.cell import ServiceType
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import dataset_of, plain
from tests.unit.csit_utils.in_memory import InMemory

HOSTILE = "</script><script>document.title='owned'</script>"


def unpacked(html: str, identity: str) -> str:
    """A text as the page's script reads it."""
    found = re.search(rf'<script type="text/plain" id="{identity}" data-deflated>([^<]*)</script>', html)
    assert found, identity
    return zlib.decompress(base64.b64decode(found[1])).decode()


def inside(html: str, anchor: str) -> dict[str, Any]:
    """The inside of a test's entry."""
    return dict(json.loads(unpacked(html, f"packed-{anchor}")))


def held_back(html: str, identity: str) -> str:
    """What comes to the end of an element later."""
    return "".join(re.findall(rf'<script type="text/plain" data-into="{identity}">(.*?)</script>', html, re.S))


@pytest.fixture(scope="module")
def many() -> tuple[ReportContents, str]:
    """130 tests in one file, one of them with all that a record can have."""
    full = result(ServiceType.CSC, 2, 2, test_name=HOSTILE)
    tests = [full, *(plain(1, 1, 2e5 + number, test_id=f"S.{number}") for number in range(129))]
    shown = ReportContents(InMemory(dataset_of(*tests)))
    return shown, single_file(shown)


@pytest.mark.slow
def test_of_many_tests_in_one_file_each_has_its_inside_packed(many: tuple[ReportContents, str]) -> None:
    shown, html = many
    for row in shown.rows:
        assert str(escape(row.test_id)) in inside(html, row.anchor)["body"]
    full = shown.contents.record(shown.rows[0].anchor)
    assert full.plan is not None
    plan = inside(html, shown.rows[0].anchor)["plan"]
    assert hashlib.sha256(plan.encode()).hexdigest() == digest_of_model(full.plan), "its very bytes"
    assert f"latency-{shown.rows[0].anchor}" in inside(html, shown.rows[0].anchor)["figures"]
    assert html.count("latency-" + shown.rows[0].anchor) == 0, "and nowhere else"


@pytest.mark.slow
def test_the_first_hundred_are_there_at_once_and_the_others_come_later(many: tuple[ReportContents, str]) -> None:
    shown, html = many
    rows = html.split('id="list"')[1].split("<tbody>")[1].split("</tbody>")[0]
    assert (rows.count("<tr>"), held_back(html, "list").count("<tr>")) == (100, 30)
    assert held_back(html, "tests-entries").count('<details class="test') == 30
    anchors = re.findall(r'<details class="test[^>]* id="([^"]+)"', html)
    assert sorted(anchors) == sorted(row.anchor for row in shown.rows), "each once, in the page or held back"


@pytest.mark.slow
def test_names_cannot_end_what_is_held_back(many: tuple[ReportContents, str]) -> None:
    _, html = many
    assert HOSTILE not in html
    assert html.count("<script") == html.count("</script>")


def test_few_tests_in_one_file_are_there_as_they_are() -> None:
    html = single_file(ReportContents(InMemory(dataset_of(result(ServiceType.CSC, 1, 1)))))
    assert 'id="packed-' not in html
    assert 'href="data:application/json;base64,' in html


def test_the_library_for_plots_is_whole() -> None:
    html = single_file(ReportContents(InMemory(dataset_of(plain(1, 1, 2e5)))))
    assert "plotly.js v" in unpacked(html, "plotly")[:200]
