"""What each service type carries, how many instances fit, how tests ended, and throughput per core."""

import re
from pathlib import Path
from typing import Any

import pytest
from robot.api import TestSuite as Suite

from csit_utils.analysis.grouping import all_series
from csit_utils.dataset.items import Problem, Refusal, Status, Unrecorded
from csit_utils.dataset.rows import PDR, TestRow
from csit_utils.report.figures import Figure
from csit_utils.report.messages import message_parts
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import RenderedPage, every_page, render
from csit_utils.report.units import DASH
from csit_utils.studies.density import headlines
from csit_utils.studies.density.analysis.answers import Question, answers
from csit_utils.studies.density.analysis.density import CellState, matrices
from csit_utils.studies.density.analysis.efficiency import efficiencies
from csit_utils.studies.density.answer_text import fits_view
from csit_utils.studies.density.figures.throughput import flows_figure
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.recording.marker import REFUSED_MARKER
from resources.libraries.python.studies.density.model import REFUSED_CELLS, DensityRecord
from tests.loaded import Dataset, load, rows_of_tests
from tests.unit.csit_utils.builders import NDR, goal_result, mrr_result, refused_cell, result
from tests.unit.csit_utils.builders import PDR as PDR_GOAL
from tests.unit.csit_utils.datasets import CSC, CSP, dataset_of, html_of, latency_test, plain
from tests.unit.csit_utils.histories import Rows, row
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.rendered_pages import Page

VSC = ServiceType.VSC
CELLS = [result(kind, chains, 1) for kind in (CSC, VSC) for chains in (1, 2)]


def contents(*results: DensityRecord, unrecorded: tuple[Unrecorded, ...] = ()) -> ReportContents:
    return ReportContents(InMemory(dataset_of(*results, unrecorded=unrecorded)))


def rendered(name: str, shown: ReportContents) -> RenderedPage:
    return render(next(page for page in every_page() if page.name == name), shown)


def sentences(shown: ReportContents) -> dict[str, str]:
    views = headlines.testbed_views(shown.systems, shown.trends_by_cell)
    return {each.service: each.text for view in views for block in view.blocks for each in block.carried}


def test_a_sentence_is_of_the_densest_cell_with_the_limits_of_all() -> None:
    cells = [(2e5, 1, 1, "vswitch-bound"), (1e5, 2, 2, "nf-bound"), (1.5e5, 4, 1, "vswitch-bound")]
    nights = [row(rate, cell=("CSC", chains, nfs), verdicts=verdict) for rate, chains, nfs, verdict in cells]
    found = sentences(ReportContents(Rows([*nights, row(3e5, cell=("VSC", 1, 1))])))
    for said in ("150 kpps", "4 NFs in 4 instances", "vSwitch in 2 and", "NFs in 1 of 3 cells"):
        assert said in found["CSC"], "of 4 NFs, the cell with more instances"
    assert "1 NF in 1 instance" in found["VSC"]


def test_a_sentence_has_the_change_from_the_run_before_or_how_cells_without_a_figure_ended() -> None:
    def text(*rows: TestRow) -> str:
        (found,) = sentences(ReportContents(Rows(rows))).values()
        return found

    before = row(4e5, night=1)
    assert "500 kpps" in (both := text(before, row(5e5, night=2))) and "+25 %" in both
    assert "%" not in text(before)
    ended = text(row(1e5, pdr_lower_pps=None, pdr_upper_pps=None, pdr_lowest_tried_pps=9e3, ndr_lower_pps=None))
    assert "1 below range" in ended and "pps" not in ended


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
    skipped = {
        "a": (15, "Test skipped using 'robot:skip' tag."), "w": (8, f"a.json {World.SIM.refusal('real')}"),
        "v": (1, "needs VPP"),
    }  # fmt: skip
    others = [
        Unrecorded(f"S.{name}{n}", f"{name}{n}", (), "output.xml", Status.SKIP, message)
        for name, (count, message) in skipped.items()
        for n in range(count)
    ]
    failed = Unrecorded("S.f", "f", (), "output.xml", Status.FAIL, "all is lost")
    shown = contents(*CELLS, unrecorded=(failed, *others))
    assert (shown.tally.passed, shown.tally.failed, shown.tally.skipped) == (4, 1, 24)
    assert re.findall(r"\d+", shown.tally.reasons) == ["15", "8", "1"]
    assert "MORE:yes" in shown.tally.reasons
    failures = rendered("failures", shown)
    (tests, *_), *_ = (part.lines for part in message_parts(shown, lambda href: href))
    assert failures.count == 1, "skipped tests are no alarm"
    assert str(shown.tally) in tests.text and str(shown.tally) in failures.html
    overview = rendered("overview", shown).html
    assert all(text in overview for _, text in shown.tally.parts)
    before, skipped_part = failures.html.split("<h2>Skipped")
    assert "all is lost" in before and "all is lost" not in skipped_part and "robot:skip" not in before


def lines(dataset: Dataset, *, mean: bool = False) -> list[dict[str, str]]:
    """Texts of the table by line and head; raw values of numbers."""
    made = rendered("results", ReportContents(InMemory(dataset), mean=mean))
    head, _, body = made.html[: made.html.index("</table>")].partition("<tbody>")
    heads = [without_tags(each) for each in re.findall(r"<th[^>]*>(.*?)</th>", head)]
    found = []
    for line in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL):
        cells = re.findall(r'<td(?:[^>]*data-v="(.*?)"[^>]*|[^>]*)>(.*?)</td>', line, re.DOTALL)
        found.append(dict(zip(heads, (raw or without_tags(text) for raw, text in cells), strict=True)))
    return found


def without_tags(html: str) -> str:
    return re.sub(r"<[^>]*>", "", html).strip()


def test_all_tests_of_a_cell_are_one_line_with_one_unit_in_the_head() -> None:
    found_on_its_way = latency_test(result(CSC, 1, 1, ndr=None, pdr=plain(1, 1, 1e5).pdr))
    tests = (found_on_its_way, plain(1, 1, 2e5, 2.1e5), mrr_result(CSC, 1, 1), plain(2, 1, 1.5e5))
    one, two = lines(dataset_of(*tests))
    assert [one["Cell"], two["Cell"]] == ["CSC 1x1", "CSC 2x1"]
    assert (float(one["NDR, kpps"]), float(one["PDR, kpps"])) == (2e5, 2.1e5), "of the test that asked for it"
    assert float(one["MRR, kpps"]) > 0 and two["MRR, kpps"] == DASH
    assert float(one["p99, \N{MICRO SIGN}s"]) > 0, "of the latency test"
    assert one["Tests"].split() == ["LATENCY", "NDRPDR", "MRR"]
    assert not {"Frame", "NF / vSw", "Testbed", "Run"} & set(one), "all cells have the same"


def test_a_failed_test_is_said_beside_figures_of_others_and_what_differs_between_cells_has_a_column() -> None:
    (line,) = lines(dataset_of(plain(1, 1, 2e5), mrr_result(CSC, 1, 1, passed=False, message="lost")))
    assert "failed" in line["Limit"] and "MRR" in line["Limit"] and float(line["NDR, kpps"]) == 2e5
    found = lines(dataset_of(result(CSC, 1, 1), result(CSC, 1, 1, size=NfSize.HALF), result(CSP, 1, 1)))
    assert [line["NF / vSw"] for line in found] == ["1c / 1c", "0.5c / 1c", "1c / 1c"]


def of(kind: ServiceType, chains: int, nodes: int, rate: float) -> DensityRecord:
    made = goal_result(NDR, rate), goal_result(PDR_GOAL, rate)
    return result(kind, chains, nodes, histograms=False, ndr=made[0], pdr=made[1])


def test_cores_are_counted_in_three_ways() -> None:
    (row,) = rows_of_tests(dataset_of(result(CSC, 2, 4, histograms=False)))
    assert (row.data_cores, row.slide_cores) == (1 + 8, 2 + 1.5 * 8)
    assert row.real_cores == 5 + 8 - 1, "the plan takes 13 cores, one of them for the generator"
    (half,) = rows_of_tests(dataset_of(result(CSC, 2, 4, size=NfSize.HALF, vs_dtc=2, histograms=False)))
    assert (half.data_cores, half.slide_cores) == (2 + 4, 1 + 2 + 8)


def test_efficiency_by_hand() -> None:
    rows = rows_of_tests(dataset_of(plain(1, 1, 100e3), plain(1, 4, 50e3), plain(2, 2, 60e3)))
    one, chain, square = efficiencies(matrices(rows, all_series(rows)[0])[0])
    assert (one.of_one, one.hops, one.per_hop) == (1.0, 1.0, 1.0)
    assert (chain.place, chain.of_one, chain.hops, chain.per_hop) == ((1, 4), 0.5, 2.0, 0.5)
    assert (square.of_one, square.hops, square.per_hop) == pytest.approx((0.6, 1.2, 0.3))
    assert square.per_data_core_pps == pytest.approx(60e3 / 5)
    assert square.per_slide_core_pps == square.per_real_core_pps == pytest.approx(60e3 / 8)
    rows = rows_of_tests(dataset_of(plain(2, 1, 100e3)))
    (found,) = efficiencies(matrices(rows, all_series(rows)[0])[0])
    assert (found.of_one, found.hops, found.per_hop) == (None, None, None), "without 1x1"
    assert found.per_data_core_pps == pytest.approx(100e3 / 3)


def test_the_page_shows_throughput_per_core_and_ratios_of_service_types() -> None:
    made = dataset_of(of(VSC, 1, 2, 80e3), of(CSC, 1, 2, 100e3), of(CSC, 1, 1, 125e3), of(CSC, 2, 1, 120e3))
    page = Page(html_of(made))
    assert "0.80 : 1.00 : \N{EN DASH}" in page.text
    assert "48 %" in page.text, "2x1: 120 of 2 x 125"
    assert "How many instances fit at 20.0 kpps each, loss as for PDR?" in page.text


_REASON = "needs 33 cores on NUMA 0, 28 available"
REFUSED = refused_cell(10, 2, _REASON)


@pytest.mark.parametrize(
    "changes", [{"source": "other.xml"}, {"nf_sizes": (NfSize("2c"),)}, {"vs_dtc": 4}, {"service_type": CSP}]
)
def test_a_refused_cell_is_shown_in_its_own_matrix_and_hides_no_figure(changes: dict[str, Any]) -> None:
    rows = rows_of_tests(dataset_of(plain(1, 1, 1e5), plain(10, 1, 5e4)))
    refused = [REFUSED, refused_cell(10, 4, _REASON, **changes), refused_cell(10, 1, _REASON)]
    (ndr, _) = matrices(rows, all_series(rows)[0], refused)
    assert (10, 4) not in ndr.cells and ndr.cells[10, 1].value_pps == 5e4
    assert (ndr.cells[10, 2].state, ndr.cells[10, 2].reason) == (CellState.DOES_NOT_FIT, _REASON)
    assert ndr.cells[1, 2].state is CellState.NOT_RUN


OF_FLOWS = (("128B-1f", 1e6), ("128B-1000f", 9e5), ("128B-100000f", 5e5), ("128B-ip6-1000f", 8e5))


def drawn(*rates: tuple[str, float]) -> Figure | None:
    made = (plain(2, 1, rate, frame=frame(name), test_id=name, test_name=name) for name, rate in rates)
    rows = InMemory(dataset_of(*made)).tests
    return flows_figure("f", "Flows", [matrix for one in all_series(rows) for matrix in matrices(rows, one)])


def test_refusals_come_from_a_real_output_xml_once_each(tmp_path: Path) -> None:
    suite = Suite("Density")
    for name in ("Csc-Ndrpdr", "Csc-Mrr"):
        inner = suite.suites.create(name)
        inner.metadata["Version"] = "1"
        inner.setup.config(name="Log", args=[f"{REFUSED_MARKER}{REFUSED_CELLS.dump_json((REFUSED.refused,)).decode()}"])
        inner.tests.create("t").body.create_keyword("Fail")
    path = tmp_path / "output.xml"
    suite.run(output=str(path), console="none", log=None, report=None)
    (found,) = load([path]).refused
    assert found == Refusal(str(path), REFUSED.refused)


def test_a_cell_has_a_line_per_version_of_ip_over_all_numbers_of_flows() -> None:
    variant = drawn(*OF_FLOWS).variants["NDR"]
    assert [(line["name"][-4:], line["x"], line["y"], line["line"]["dash"]) for line in variant["data"]] == [
        ("IPv4", [1, 1000, 100_000], [1.0, 0.9, 0.5], "solid"),
        ("IPv6", [1000], [0.8], "dash"),
    ]
    assert len({line["meta"]["colour"] for line in variant["data"]}) == 1, "of one cell"
    assert variant["layout"]["xaxis"]["ticktext"] == ["1", "1,000", "100,000"]
    assert drawn(("128B-1f", 1e6), ("1518B-1f", 5e5)) is None, "of two frame sizes"
    assert drawn(("128B", 1e6), ("128B-1f", 5e5)) is None, "packets without ports are another load"
    figure = drawn(("128B-1f", 1e6), ("128B-1000f", 9e5), ("1518B-1f", 5e5), ("1518B-1000f", 4e5))
    assert len({line["meta"]["colour"] for line in figure.variants["PDR"]["data"]}) == 2
