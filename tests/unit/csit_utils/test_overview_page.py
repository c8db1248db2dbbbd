"""The overview: heat maps first, then key figures and how many instances fit, in words that explain themselves."""

import re

import pytest

from csit_utils.report.units import DASH
from csit_utils.studies.density import headlines
from resources.libraries.python.model.request.cell import ServiceType
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import dataset_of, html_of

CSC, VSC = ServiceType.CSC, ServiceType.VSC


def overview(*results: object) -> str:
    """HTML of the overview, up to the pages that follow."""
    html = html_of(dataset_of(*results))  # type: ignore[arg-type]
    return html[html.index("<h2>Key figures") : html.index("<h2>Service density")]


def rows(table: str) -> list[list[str]]:
    """Texts of a table."""
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in re.findall(r"<tr>.*?</tr>", table, re.S)]
    return [[re.sub(r"<[^>]*>", "", text).strip() for text in row] for row in cells]


def table_of(html: str, kind: str) -> str:
    """The first table of a class."""
    begin = html.index(f'<table class="{kind}"')
    return html[begin : html.index("</table>", begin)]


CELLS = [result(kind, chains, 1) for kind in (CSC, VSC) for chains in (1, 2)]


def test_heat_maps_come_before_key_figures_and_these_before_sentences() -> None:
    shown = overview(*CELLS)
    places = [
        shown.index(each) for each in ('class="glance"', 'data-name="overview-1"', "plain fits", "<h2>Throughput")
    ]
    assert places == sorted(places)
    assert rows(table_of(shown, "glance"))[0][1:] == ["1 NF"]
    assert [row[0] for row in rows(table_of(shown, "glance"))[1:]] == ["1x", "2x"]


def test_a_question_is_a_table_with_a_row_for_each_series_and_a_column_for_each_length() -> None:
    shown = overview(*CELLS, result(CSC, 1, 2))
    found = rows(table_of(shown, "data plain fits"))
    assert found[0] == ["instances", "of 1 NF", "of 2 NFs"]
    assert [row[0] for row in found[1:]] == ["CSC", "VSC"]
    assert found[2][2] == DASH, "no VSC of two NFs was measured"
    assert "instances fit at" in table_of(shown, "data plain fits")
    assert not re.search(r"\d of \d NFs?[,;.]", shown), "no wall of text"


def test_a_single_cell_has_results_and_no_remark_that_something_is_missing() -> None:
    shown = overview(result(CSC, 1, 1))
    assert "comparable" not in shown
    assert "<h2>Throughput by density" not in shown
    assert "glance" in shown


def test_a_testbed_with_many_heat_maps_shows_the_first_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headlines, "_MAX_MAPS", 1)
    shown = overview(*CELLS)
    assert shown.count('class="glance"') == 1
    assert "1 more heat map" in shown
