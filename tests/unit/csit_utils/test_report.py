"""The report: all derived and escaped, simulated never beside measured, verdicts, which tests have pages, links."""

import base64
import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from csit_utils.analysis.comparisons.comparison import compare
from csit_utils.analysis.grouping import all_series
from csit_utils.analysis.runs import history, latest_runs
from csit_utils.dataset.items import Problem, Status, Unrecorded
from csit_utils.dataset.load import read_foreign
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import NDR, PDR, HopRow, InstanceRow, LatencyRow, TestRow, ThreadRow
from csit_utils.dataset.store.layout import Layout
from csit_utils.dataset.store.stored_contents import Stored
from csit_utils.report.figures import Figure
from csit_utils.report.html import html_templates
from csit_utils.report.links import cell_anchor
from csit_utils.report.report_context import Details, ReportContents
from csit_utils.report.site import single_file, write_site
from csit_utils.studies.density.analysis.density import matrices, verdict_of
from csit_utils.studies.density.results_table import print_results
from csit_utils.studies.density.speedup import SpeedupLimits, speedup_figure
from resources.libraries.python.model.findings import HopLoss, LocatedLosses, ThreadLoad, Usage
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.result import Affinity, Finding, Verdict, VerdictKind
from resources.libraries.python.redaction import outgoing
from resources.libraries.python.studies.density.model import DensityRecord
from tests.loaded import Dataset, load, rows_of_tests, table_rows
from tests.unit.csit_utils.builders import CSC, CSP, goal_result, result, trial, verdict_with
from tests.unit.csit_utils.builders import NDR as NDR_GOAL
from tests.unit.csit_utils.builders import PDR as PDR_GOAL
from tests.unit.csit_utils.datasets import dataset_of, html_of, imported, plain
from tests.unit.csit_utils.foreign_files import csit, csit_ndrpdr, nfvbench, packed, pps, searched
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.measured_extras import LOSSES
from tests.unit.csit_utils.rendered_pages import Page, page_of
from tests.unit.csit_utils.robot_output import write_output_xml

HOSTILE = "</script></style><img src=x onerror=alert(1)>\"'`{{7*7}}"


def test_a_page_alone_and_offline() -> None:
    html = html_of(dataset_of(result(CSC, 1, 1)))
    page = Page(html)
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "img", "object", "embed", "base")]
    assert not [attributes for _, attributes in page.tags if attributes.get("src")]
    inside = ("#", "data:application/json;base64,")
    links = [str(attributes["href"]) for tag, attributes in page.tags if tag == "a"]
    assert all(link.startswith(inside) for link in links) and any(link.startswith(inside[1]) for link in links)
    assert "default-src 'none'" in html and 'id="packed-' not in html
    assert len(page.ids) == len(set(page.ids)), "an id is there once"
    packed_script = re.search(r'<script type="text/plain" id="plotly" data-deflated>([^<]*)</script>', html)
    assert b"plotly.js v" in zlib.decompress(base64.b64decode(packed_script[1]))[:200]


_SPECIAL = st.sampled_from("<>&'\"\r\n\t\x1b\x7f\xad\u202e\u2028\ufeff\ud800µ")


@given(st.text(st.characters() | _SPECIAL) | st.integers() | st.floats())
def test_values_are_escaped_and_visible(value: str | float) -> None:
    page = html_templates().from_string("{{ value }}").render(value=value)
    assert page == escape(outgoing(value) if isinstance(value, str) else value)


def test_markup_in_names_stays_text() -> None:
    verdict = verdict_with(VerdictKind.FAILED, HOSTILE)
    affinity = (Affinity(owner=HOSTILE, interface=HOSTILE, planned_cpu=1, actual_cpus=()),)
    names = dict.fromkeys(("test_name", "test_id", "testbed"), HOSTILE)
    drivers = {"generator": HOSTILE}
    one = result(CSC, 1, 1, verdict=verdict, affinity=affinity, drivers=drivers, tags=(HOSTILE,), **names)
    failed = Unrecorded(HOSTILE, HOSTILE, (HOSTILE,), HOSTILE, Status.FAIL, HOSTILE)
    made = dataset_of(one, unrecorded=(failed,), source=HOSTILE)
    made.add(Problem(HOSTILE, HOSTILE))
    html = html_of(made)
    page = Page(html)
    assert not [tag for tag, _ in page.tags if tag == "img"]
    scripts = [tag for tag, _ in page.tags if tag == "script"]
    assert len(scripts) == html.count("</script>") == html_of(dataset_of(result(CSC, 1, 1))).count("</script>")
    assert HOSTILE in page.text
    assert "{{7*7}}" in page.text, "a name is no template"


def test_simulated_results_never_meet_measured_ones_and_a_report_of_them_says_so_everywhere() -> None:
    page = page_of(plain(1, 1, 2e5), result(CSC, 1, 1, simulated=True), result(CSC, 2, 1, simulated=True))
    classes = [str(attributes.get("class")) for tag, attributes in page.tags if tag == "section"]
    assert [each for each in classes if "system" in each] == ["system", "system is-simulated"]
    assert "come from a model" in page.text
    tips = [tip for tip in page.tips() if "NDR (no packet lost)" in tip]
    assert ["SIMULATED" in tip for tip in tips] == [False, True, True]
    html = html_of(dataset_of(result(CSC, 1, 1, simulated=True), result(CSC, 2, 1, simulated=True)))
    assert "<title>SIMULATED: " in html
    assert 'class="all-simulated"' in html and "No packet was sent" in html
    figures = json.loads(re.findall(r'id="figures">(.*?)</script>', html)[0])
    assert len(figures) > 2
    assert all(figure["simulated"] for figure in figures.values()), "figures are marked inside too"
    measured = re.sub(r"<(script|style).*?</\1>", "", html_of(dataset_of(result(CSC, 1, 1))), flags=re.S)
    assert "SIMULATED" not in measured.split('id="reading"')[0]


def test_oversubscribed_is_marked_wherever_its_number_is() -> None:
    html = html_of(dataset_of(result(CSC, 1, 1), result(CSC, 2, 1, oversubscribed=True)))
    page = Page(html)
    assert len(re.findall(r'class="c-value over"', html)) == 2
    assert sum("OVERSUBSCRIBED: data threads shared cores" in tip for tip in page.tips()) == 2
    assert "1 of 2 tests ran oversubscribed" in page.text and "Oversubscribed: 2x1." in page.text


def test_the_summary_has_rates_and_changes_and_limits_are_written_as_limits() -> None:
    page = page_of(plain(1, 1, 212e3, 230e3), plain(2, 1, 180e3, 230.1e3))
    assert "from 1x1 to 2x1 NDR goes from 212 kpps to 180 kpps (\N{MINUS SIGN}15 %), PDR stays at 230 kpps" in page.text
    unlimited = goal_result(NDR_GOAL, 9e5).model_copy(update={"upper_pps": None})
    none = {"lower_pps": None, "upper_pps": None, "lowest_tried_pps": 9e3}
    below = goal_result(PDR_GOAL, 1.0).model_copy(update=none)
    page = page_of(result(CSC, 1, 1, ndr=unlimited, pdr=below, histograms=False))
    assert "\N{GREATER-THAN OR EQUAL TO} 900 kpps" in page.text and "< 9.00 kpps" in page.text
    ndr = below.model_copy(update={"goal": NDR_GOAL})
    page = page_of(plain(1, 1, 56e3), plain(1, 2, 50e3).model_copy(update={"ndr": ndr}))
    assert "from 1x1 to 1x2 NDR goes from 56.0 kpps to below 9.00 kpps, PDR from 56.0 kpps to 50.0 kpps" in page.text


def test_core_map_shows_lost_affinity() -> None:
    lost = (
        Affinity(owner="nf-1-1", interface="csn1x1i1", planned_cpu=4, actual_cpus=(0, 1)),
        Affinity(owner="vswitch", interface="csv1p1", planned_cpu=3, actual_cpus=(3,)),
    )
    page = page_of(result(CSC, 1, 1, affinity=lost))
    assert "1 of 2 data threads ran on their planned CPU" in page.text and "NOT as planned" in page.text
    assert {"vswitch data 0", "nf-1-1 data 0", "generator data 0"} <= {word.strip() for word in page.words}


def test_nothing_but_failures_makes_a_page_too() -> None:
    failed = Unrecorded("S.t", "t", (), "output.xml", Status.FAIL, "all is lost")
    page = Page(html_of(Dataset(unrecorded=[failed], problems=[Problem("b.xml", "b.xml: broken off")])))
    for said in ("all is lost", "b.xml: broken off", "No test has a result record."):
        assert said in page.text


@pytest.mark.slow
def test_names_cannot_end_what_a_large_file_holds_back() -> None:
    tests = [result(CSC, 2, 2, test_name=HOSTILE), *(plain(1, 1, 2e5 + n, test_id=f"S.{n}") for n in range(129))]
    html = html_of(dataset_of(*tests))
    assert "data-into=" in html and HOSTILE not in html
    assert html.count("<script") == html.count("</script>")
    assert len(re.findall(r'<details class="test[^>]* id=', html)) == 130, "each once, in the page or held back"


NDR_PPS, PDR_PPS = 6.47e6, 6.41e6
RATES = ("PDR of 6.41 Mpps", "NDR of 6.47 Mpps")


def has_remark(text: str) -> bool:
    return all(each in text for each in RATES)


def check(rows: Sequence[TestRow]) -> None:
    wrong, right = sorted(rows, key=lambda row: row.nf_chains or 0)
    assert [has_remark(line) for line in wrong.evidence.splitlines()].count(True) == 1
    for metric in (NDR, PDR):
        assert "unstable" in verdict_of(wrong, metric)
        assert verdict_of(right, metric) == ("measured",)
    assert not has_remark(right.evidence)


def test_rows_records_pages_datasets_and_comparisons_have_the_remark(tmp_path: Path) -> None:
    each = {"trials": (trial(NDR_PPS, 1, 0.0),)}
    records = [plain(1, 1, NDR_PPS, PDR_PPS, **each), plain(2, 1, PDR_PPS, NDR_PPS, **each)]
    dataset = load([write_output_xml(tmp_path / "output.xml", records)])
    check(rows_of_tests(dataset))
    assert [has_remark(" ".join(item.record.verdict.evidence)) for item in dataset.recorded] == [True, False]
    assert has_remark(html_of(dataset))
    imported(tmp_path / "dataset", tmp_path / "output.xml")
    stored = Stored(Layout(tmp_path / "dataset"))
    check(stored.tests)
    (wrong,) = [row.anchor for row in stored.tests if row.nf_chains == 1]
    assert has_remark(" ".join(stored.record(wrong).verdict.evidence))
    for rows in (stored.rows(InstanceRow, anchors=[wrong]), table_rows(dataset, InstanceRow)):
        assert {row.verdict for row in rows if row.anchor == wrong} == {"unstable"}
    wrong, right = sorted(rows_of_tests(dataset), key=lambda row: row.nf_chains or 0)
    sides = [[text[:3] for text in change.remarks if has_remark(text)] for change in compare([wrong], [wrong]).changes]
    assert sides == [["A: ", "B: "]] * 2
    assert not any(has_remark(" ".join(each.remarks)) for each in compare([right], [right]).changes)


def test_files_of_other_tools_get_it() -> None:
    result = csit_ndrpdr(ndr={"lower": pps(NDR_PPS)}, pdr={"lower": pps(PDR_PPS)})
    swapped = searched()
    swapped |= {"ndr": swapped["pdr"], "pdr": swapped["ndr"]}
    files = (csit(result), nfvbench({"64": swapped}), csit(csit_ndrpdr()), nfvbench({"64": searched()}))
    rows = [item.row for data in files for item in read_foreign(packed(data), "a.json")]
    assert ["PDR of " in row.evidence for row in rows] == [True, True, False, False]
    assert [verdict_of(row, PDR) for row in rows] == [("unstable",), ("unstable",), (), ()]
    assert has_remark(rows[0].evidence)


WHY_NDR = "90 of them at nf-2-1: 90 met a full receive queue"
WHY_PDR = "still met at 9 pps"
FINDINGS = (
    Finding(kind=VerdictKind.GENERATOR_BOUND, text=WHY_PDR, numbers=("PDR",)),
    Finding(kind=VerdictKind.NF_BOUND, text=WHY_NDR, numbers=("NDR", "overload")),
)
HOPS = tuple(
    HopLoss(instance=instance, direction=direction, last="a", next="b", owner=owner, cause=cause, lost=lost)
    for instance, direction, owner, cause, lost in (
        (2, Direction.REVERSE, "nf-2-1", "queue", 90),
        (1, Direction.FORWARD, "vswitch", "inside", 10),
    )
)
LOCATED = LocatedLosses(
    purpose="locate", load_pps=1e5, offered_pps=1e5, trials=1, sent=50_000, received=49_900, hops=HOPS,
    usage=Usage(threads=(ThreadLoad(owner="nf-2-1", interface="csn2x1i2", cpu=5, running=0.97, waiting=0.01),)),
)  # fmt: skip


def made(**changes: object) -> DensityRecord:
    verdict = Verdict(findings=FINDINGS)
    return result(CSC, 2, 1, verdict=verdict, located=LOCATED, **changes)  # type: ignore[arg-type]


def test_each_number_of_a_test_has_its_verdict_beside_it() -> None:
    html = html_of(dataset_of(made()))
    ndr, pdr = re.findall(r'<tr><th scope="row">(?:NDR|PDR)</th>.*?</tr>', html, re.S)
    assert "v-nf-bound" in ndr and WHY_NDR in ndr and "v-generator-bound" not in ndr
    assert "v-generator-bound" in pdr and WHY_PDR in pdr
    assert "v-measured" in re.search(r"<caption>[^/]*?Latency by load.*?</caption>", html, re.S)[0]
    row = re.search(r'<table[^>]* id="list".*?<tbody>\s*(<tr>.*?</tr>)', html, re.S)[1]
    limits = re.findall(r'<small>(\w+)</small> <span class="verdict v-([\w-]+)"', row)
    assert limits == [("NDR", "nf-bound"), ("PDR", "generator-bound")], "in the list of results too"
    assert re.findall(r'<small class="why">(.*?)</small>', html) == ["NF", "TG"], "and in the matrices"


def test_counts_are_grouped_where_they_are_read_and_plain_where_they_are_saved() -> None:
    html = html_of(dataset_of(made(losses=LOSSES)))
    for name in ("trials", "instances", "loss-patterns"):
        table = re.search(rf'<table class="data[^>]* data-name="{name}".*?</table>', html, re.S)[0]
        cells = re.findall(r'<td class="num[^"]*"(?: data-v="([^"]*)")?>([^<]*)</td>', table)
        grouped = [(raw, text) for raw, text in cells if "," in text]
        assert grouped and all(raw == text.replace(",", "") for raw, text in grouped)
        assert not [text for _, text in cells if re.search(r"\d{4}", text)]


@pytest.mark.parametrize("why", [False, True])
def test_the_terminal_distinguishes_numbers(capsys: pytest.CaptureFixture[str], why: bool) -> None:
    print_results(InMemory(dataset_of(made())), why=why)
    _, line, *evidence = capsys.readouterr().out.splitlines()
    assert line.endswith("NDR nf-bound; PDR generator-bound")
    assert [sentence.strip() for sentence in evidence] == ([WHY_PDR, WHY_NDR] if why else [])


def test_rows_for_tables_carry_them_too() -> None:
    data = dataset_of(made())
    hops = [(row.owner, row.lost, row.lost_share) for row in table_rows(data, HopRow)]
    assert hops == [("nf-2-1", 90, 0.9), ("vswitch", 10, 0.1)]
    assert [(row.owner, row.cpu, row.running) for row in table_rows(data, ThreadRow)] == [("nf-2-1", 5, 0.97)]
    verdicts = {(row.number, row.verdict) for row in table_rows(data, InstanceRow)}
    assert verdicts == {("NDR", "nf-bound"), ("PDR", "generator-bound")}
    assert {row.verdict for row in table_rows(data, LatencyRow)} == {"measured"}


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


def test_the_latest_run_is_shown_also_of_several_suites_and_testbeds_and_a_mean_where_it_is_asked_for() -> None:
    shown = ReportContents(together(*TWO_NIGHTS))
    assert shown_pps(shown, (1, 1)) == 300e3
    assert [row.source for row in shown.latest] == ["2.xml"], "a cell of another night does not fill a hole of this one"
    shown = ReportContents(together(*TWO_NIGHTS), mean=True)
    assert shown_pps(shown, (1, 1)) == 250e3
    assert "means over 2 runs" in single_file(shown)
    other = result(CSP, 1, 1, histograms=False)
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


@pytest.mark.slow
def test_several_processes_write_the_same_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csit_utils.report.site._MANY", 0)
    many = together(*(night(day, *(plain(s, 1, 1e5 * s) for s in range(1, 6))) for day in range(1, 9)))
    write_site(ReportContents(many), tmp_path / "one")
    write_site(ReportContents(many), tmp_path / "two", processes=2)
    for page in (tmp_path / "one").rglob("*.html"):
        assert page.read_text() == (tmp_path / "two" / page.relative_to(tmp_path / "one")).read_text()


def sized(size: NfSize, vs_dtc: int, ndr: float) -> DensityRecord:
    """CSC 1x1 with these sizes."""
    return plain(1, 1, ndr, size=size, vs_dtc=vs_dtc)


def test_speedup_is_drawn_beside_a_perfect_one_and_line_rate_and_of_one_size_alone_not_at_all() -> None:
    tests = (sized(NfSize.ONE, 1, 1e6), sized(NfSize.ONE, 2, 1.5e6), sized(NfSize.HALF, 1, 0.8e6))

    def drawn(*results: DensityRecord) -> Figure | None:
        rows = InMemory(dataset_of(*results)).tests
        found = [matrix for series in all_series(rows) for matrix in matrices(rows, series)]
        return speedup_figure("s", "", found, SpeedupLimits(line_pps=2e6, generator_pps=40e6))

    rates, relative = (
        drawn(*tests).variants[f"NDR|vSwitch cores|{name}"] for name in ("throughput", "relative to the fewest cores")
    )
    assert [note["text"] for note in rates["layout"]["annotations"]] == ["line rate of both links: 2.00 Mpps"]
    assert [line for line in relative["data"] if "name" in line][1]["y"] == [1.0, 2.0], "the perfect one"
    assert drawn(tests[0]) is None


def test_an_address_of_a_cell_does_not_depend_on_the_report() -> None:
    alone = InMemory(dataset_of(plain(1, 1, 2e5))).tests
    beside = InMemory(dataset_of(plain(1, 1, 3e5), sized(NfSize.HALF, 1, 1e5))).tests
    anchors = {
        cell_anchor(series, NDR, (1, 1)) for rows in (alone, beside) for series in all_series(rows)
    }  # fmt: skip
    assert len(anchors) == 2, "the same for the same cell, another one for another NF size"
    assert all(re.fullmatch(r"csc-1x1-ndr-64b-(1|0\.5)c-vs1-[a-z0-9.-]+", anchor) for anchor in anchors)
