"""The overview: what each service type carries, how many instances fit, and how tests ended."""

import re

import pytest

from csit_utils.dataset.items import Dataset, Problem, Status, Unrecorded
from csit_utils.dataset.rows import PDR
from csit_utils.report.exports.messages import message_parts
from csit_utils.report.pages import pages
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import RenderedPage, render
from csit_utils.report.units import DASH
from csit_utils.studies.density import headlines
from csit_utils.studies.density.analysis.answers import Question, answers
from csit_utils.studies.density.fits import fits_view
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import dataset_of
from tests.unit.csit_utils.histories import Rows, row
from tests.unit.csit_utils.in_memory import InMemory

CSC, VSC = ServiceType.CSC, ServiceType.VSC
CELLS = [result(kind, chains, 1) for kind in (CSC, VSC) for chains in (1, 2)]


def contents(*results: DensityRecord, unrecorded: tuple[Unrecorded, ...] = ()) -> ReportContents:
    return ReportContents(InMemory(dataset_of(*results, unrecorded=unrecorded)))


def rendered(name: str, shown: ReportContents) -> RenderedPage:
    made = render(next(page for page in pages() if page.name == name), shown)
    assert made is not None
    return made


def sentences(shown: ReportContents) -> dict[str, str]:
    views = headlines.testbed_views(shown.systems, shown.trends_by_cell)
    return {each.service: each.text for view in views for block in view.blocks for each in block.carried}


def test_answers_come_before_heat_maps_and_metadata_is_folded_away() -> None:
    html = rendered("overview", contents(*CELLS)).html
    places = [html.index(each) for each in ('class="carried"', 'data-name="instances-that-fit"', 'class="glance"')]
    assert places == sorted(places)
    assert "<details" in html[places[-1] : html.index('class="facts"')]


def test_a_sentence_is_of_the_densest_cell_with_the_limits_of_all() -> None:
    nights = [
        row(2e5, verdicts="vswitch-bound"),
        row(1e5, cell=("CSC", 2, 2), verdicts="nf-bound"),
        row(1.5e5, cell=("CSC", 4, 1), verdicts="vswitch-bound"),
        row(3e5, cell=("VSC", 1, 1)),
    ]
    found = sentences(ReportContents(Rows(nights)))
    assert "150 kpps" in found["CSC"] and "4 NFs in 4 instances" in found["CSC"], (
        "of 4 NFs, the cell with more instances"
    )
    assert "vSwitch in 2 and" in found["CSC"] and "NFs in 1 of 3 cells" in found["CSC"]
    assert "1 NF in 1 instance" in found["VSC"]


def test_a_type_without_a_figure_says_how_its_cells_ended() -> None:
    below = {"pdr_lower_pps": None, "pdr_upper_pps": None, "pdr_lowest_tried_pps": 9e3, "ndr_lower_pps": None}
    (text,) = sentences(ReportContents(Rows([row(1e5, **below)]))).values()
    assert "1 below range" in text and "pps" not in text


def test_a_sentence_has_the_change_from_the_run_before() -> None:
    nights = [row(4e5, night=1), row(5e5, night=2)]
    (text,) = sentences(ReportContents(Rows(nights))).values()
    assert "500 kpps" in text and "+25 %" in text
    (text,) = sentences(ReportContents(Rows(nights[:1]))).values()
    assert "%" not in text


def test_the_table_of_instances_that_fit_has_the_answers_of_the_command() -> None:
    shown = contents(*CELLS, result(CSC, 1, 2))
    question = Question(50e3, None, PDR)
    view = fits_view(question, shown.evidence)
    found = {each.nfs: each for each in answers(question, shown.evidence) if each.series.service_type == "CSC"}
    csc, vsc = view.lines
    assert (csc.name, vsc.name, view.nfs) == ("CSC", "VSC", (1, 2))
    assert [cell and cell[0] for cell in csc.answers] == [str(found[1].services), str(found[2].services)]
    assert vsc.answers[1] is None, "no VSC of two NFs was measured"
    html = rendered("overview", shown).html
    table = html[html.index('data-name="instances-that-fit"') :]
    assert DASH in table[: table.index("</table>")]


def test_an_overview_without_a_result_has_no_table() -> None:
    made = rendered("overview", ReportContents(InMemory(Dataset(problems=[Problem("b.xml", "b.xml: broken off")]))))
    assert "instances-that-fit" not in made.html and "glance" not in made.html


def test_a_testbed_with_many_heat_maps_shows_the_first_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headlines, "_MAX_MAPS", 1)
    html = rendered("overview", contents(*CELLS)).html
    assert html.count('class="glance"') == 1
    assert "1 more heat map" in html


def test_passed_failed_and_skipped_are_the_same_three_numbers_everywhere() -> None:
    asked = "Test skipped using 'robot:skip' tag."
    others = [
        Unrecorded("S.f", "f", (), "output.xml", Status.FAIL, "all is lost"),
        *(Unrecorded(f"S.a{n}", f"a{n}", (), "output.xml", Status.SKIP, asked) for n in range(15)),
        *(
            Unrecorded(f"S.w{n}", f"w{n}", (), "output.xml", Status.SKIP, f"a.json {World.SIM.refusal('real')}")
            for n in range(8)
        ),
        Unrecorded("S.v", "v", (), "output.xml", Status.SKIP, "needs VPP"),
    ]
    shown = contents(*CELLS, unrecorded=tuple(others))
    assert (shown.tally.passed, shown.tally.failed, shown.tally.skipped) == (4, 1, 24)
    assert re.findall(r"\d+", shown.tally.reasons) == ["15", "8", "1"]
    assert "MORE:yes" in shown.tally.reasons
    failures = rendered("failures", shown)
    (tests, *_), *_ = (part.lines for part in message_parts(shown, lambda href: href))
    assert failures.count == 1, "skipped tests are no alarm"
    assert str(shown.tally) in tests.text and str(shown.tally) in failures.html
    for _, text in shown.tally.parts:
        assert text in rendered("overview", shown).html
    before, skipped = failures.html.split("<h2>Skipped")
    assert "all is lost" in before and "all is lost" not in skipped and "robot:skip" not in re.sub("&#39;", "'", before)


def test_a_report_of_skipped_tests_has_no_alarm() -> None:
    made = rendered("failures", contents(unrecorded=(Unrecorded("S.v", "v", (), "o.xml", Status.SKIP, "needs VPP"),)))
    assert made.count == 0 and "needs VPP" in made.html


def test_pages_of_studies_and_of_the_history_are_menus() -> None:
    groups = {page.name: page.group for page in pages()}
    assert groups["overview"] == groups["failures"] == ""
    assert groups["density"] == groups["losses"] != groups["outage"] == groups["interference"] != groups["trend"]
