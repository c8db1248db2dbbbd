"""Pages of density and of one test: throughput, latency, fairness, losses, failures, environments, power, reruns."""

import base64
import hashlib
import re
import shlex
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from csit_utils.analysis.grouping import all_series
from csit_utils.dataset.items import Problem, Status, Unrecorded
from csit_utils.dataset.rows import TestRow
from csit_utils.report.details.capsule import capsule, command
from csit_utils.report.details.machines import (
    energy_figure,
    energy_lines,
    energy_notes,
    load_words,
    qualification_view,
)
from csit_utils.report.details.testview import burst_figure, bursts_text
from csit_utils.report.details.trial_plots import loss_pattern_figure, loss_patterns
from csit_utils.report.figures import Figure
from csit_utils.report.messages import message_parts
from csit_utils.report.pages import environment, failures, spread
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import RenderedPage, every_page, render
from csit_utils.report.site import rendered as rendered_test
from csit_utils.report.study import Page
from csit_utils.report.units import DASH
from csit_utils.studies.density import headlines
from csit_utils.studies.density.analysis.density import CellState, matrices
from csit_utils.studies.density.analysis.efficiency import efficiencies
from csit_utils.studies.density.pages import fairness, latency, losses
from csit_utils.studies.density.throughput import flows_figure
from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.findings import CpuLoad, HopLoss, LocatedLosses, ThreadLoad, Usage
from resources.libraries.python.model.measurements.energy import IDLE, Energy
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.result import MeasurementRequest, Rerun
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.search.losses import flow_in_words, worst_flow
from resources.libraries.python.studies.density.model import DensityRecord
from tests.builders import cpus, plan_of, qualification, qualified_point
from tests.loaded import Dataset, rows_of_tests
from tests.unit.csit_utils.approved import wording_of_page
from tests.unit.csit_utils.builders import (
    CSC,
    CSP,
    IMIX,
    NDR,
    PROFILE,
    RECORD,
    VERDICT,
    VSC,
    does_not_fit,
    goal_result,
    mrr_result,
    refused_cell,
    result,
    soaked,
)
from tests.unit.csit_utils.builders import PDR as PDR_GOAL
from tests.unit.csit_utils.characterized_pages import words
from tests.unit.csit_utils.datasets import dataset_of, latency_test, plain
from tests.unit.csit_utils.histories import Rows, planted, row
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.measured_extras import BURSTS, LOSSES, METERED, power_at
from tests.unit.csit_utils.rendered_pages import page_of

CELLS = [result(kind, chains, 1) for kind in (CSC, VSC) for chains in (1, 2)]


def contents(*results: DensityRecord, unrecorded: tuple[Unrecorded, ...] = ()) -> ReportContents:
    return ReportContents(InMemory(dataset_of(*results, unrecorded=unrecorded)))


def rendered(name: str, shown: ReportContents) -> RenderedPage:
    return render(next(page for page in every_page() if page.name == name), shown)


def sentences(shown: ReportContents) -> dict[str, str]:
    views = headlines.testbed_views(shown.systems, shown.trends_by_cell)
    return {each.service: each.text for view in views for block in view.blocks for each in block.carried}


def test_a_sentence_is_of_the_densest_cell_with_the_limits_of_all_and_the_change_or_how_cells_ended() -> None:
    cells = [(2e5, 1, 1, "vswitch-bound"), (1e5, 2, 2, "nf-bound"), (1.5e5, 4, 1, "vswitch-bound")]
    nights = [row(rate, cell=("CSC", chains, nfs), verdicts=verdict) for rate, chains, nfs, verdict in cells]
    found = sentences(ReportContents(Rows([*nights, row(3e5, cell=("VSC", 1, 1))])))
    for said in ("150 kpps", "4 NFs in 4 instances", "vSwitch in 2 and", "NFs in 1 of 3 cells"):
        assert said in found["CSC"], "of 4 NFs, the cell with more instances"
    assert "1 NF in 1 instance" in found["VSC"]

    def text(*rows: TestRow) -> str:
        (found,) = sentences(ReportContents(Rows(rows))).values()
        return found

    before = row(4e5, night=1)
    assert "500 kpps" in (both := text(before, row(5e5, night=2))) and "+25 %" in both
    assert "%" not in text(before)
    ended = text(row(1e5, pdr_lower_pps=None, pdr_upper_pps=None, pdr_lowest_tried_pps=9e3, ndr_lower_pps=None))
    assert "1 below range" in ended and "pps" not in ended


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


def lines(dataset: Dataset) -> list[dict[str, str]]:
    """Texts of the table by line and head; raw values of numbers."""
    made = rendered("results", ReportContents(InMemory(dataset)))
    head, _, body = made.html[: made.html.index("</table>")].partition("<tbody>")
    heads = [without_tags(each) for each in re.findall(r"<th[^>]*>(.*?)</th>", head)]
    found = []
    for line in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL):
        cells = re.findall(r'<td(?:[^>]*data-v="(.*?)"[^>]*|[^>]*)>(.*?)</td>', line, re.DOTALL)
        found.append(dict(zip(heads, (raw or without_tags(text) for raw, text in cells), strict=True)))
    return found


def without_tags(html: str) -> str:
    return re.sub(r"<[^>]*>", "", html).strip()


def test_all_tests_of_a_cell_are_one_line_with_failures_and_what_differs_between_cells() -> None:
    found_on_its_way = latency_test(result(CSC, 1, 1, ndr=None, pdr=plain(1, 1, 1e5).pdr))
    tests = (found_on_its_way, plain(1, 1, 2e5, 2.1e5), mrr_result(CSC, 1, 1), plain(2, 1, 1.5e5))
    one, two = lines(dataset_of(*tests))
    assert [one["Cell"], two["Cell"]] == ["CSC 1x1", "CSC 2x1"]
    assert (float(one["NDR, kpps"]), float(one["PDR, kpps"])) == (2e5, 2.1e5), "of the test that asked for it"
    assert float(one["MRR, kpps"]) > 0 and two["MRR, kpps"] == DASH
    assert float(one["p99, \N{MICRO SIGN}s"]) > 0, "of the latency test"
    assert one["Tests"].split() == ["LATENCY", "NDRPDR", "MRR"]
    assert not {"Frame", "NF / vSw", "Testbed", "Run"} & set(one), "all cells have the same"
    (line,) = lines(dataset_of(plain(1, 1, 2e5), mrr_result(CSC, 1, 1, passed=False, message="lost")))
    assert "failed" in line["Limit"] and "MRR" in line["Limit"] and float(line["NDR, kpps"]) == 2e5
    found = lines(dataset_of(result(CSC, 1, 1), result(CSC, 1, 1, size=NfSize.HALF), result(CSP, 1, 1)))
    assert [line["NF / vSw"] for line in found] == ["1c / 1c", "0.5c / 1c", "1c / 1c"]


def of(kind: ServiceType, chains: int, nodes: int, rate: float) -> DensityRecord:
    made = goal_result(NDR, rate), goal_result(PDR_GOAL, rate)
    return result(kind, chains, nodes, histograms=False, ndr=made[0], pdr=made[1])


def test_cores_are_counted_in_three_ways_and_efficiency_by_hand() -> None:
    (whole,) = rows_of_tests(dataset_of(result(CSC, 2, 4, histograms=False)))
    assert (whole.data_cores, whole.slide_cores) == (1 + 8, 2 + 1.5 * 8)
    assert whole.real_cores == 5 + 8 - 1, "the plan takes 13 cores, one of them for the generator"
    (half,) = rows_of_tests(dataset_of(result(CSC, 2, 4, size=NfSize.HALF, vs_dtc=2, histograms=False)))
    assert (half.data_cores, half.slide_cores) == (2 + 4, 1 + 2 + 8)
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
    page = page_of(of(VSC, 1, 2, 80e3), of(CSC, 1, 2, 100e3), of(CSC, 1, 1, 125e3), of(CSC, 2, 1, 120e3))
    assert "0.80 : 1.00 : \N{EN DASH}" in page.text
    assert "48 %" in page.text, "2x1: 120 of 2 x 125"
    assert "How many instances fit at 20.0 kpps each" in page.text


_REASON = "needs 33 cores on NUMA 0, 28 available"


@pytest.mark.parametrize(
    "changes", [{"source": "other.xml"}, {"nf_sizes": (NfSize("2c"),)}, {"vs_dtc": 4}, {"service_type": CSP}]
)
def test_a_refused_cell_is_shown_in_its_own_matrix_and_hides_no_figure(changes: dict[str, Any]) -> None:
    rows = rows_of_tests(dataset_of(plain(1, 1, 1e5), plain(10, 1, 5e4)))
    refused = [refused_cell(10, 2, _REASON), refused_cell(10, 4, _REASON, **changes), refused_cell(10, 1, _REASON)]
    (ndr, _) = matrices(rows, all_series(rows)[0], refused)
    assert (10, 4) not in ndr.cells and ndr.cells[10, 1].value_pps == 5e4
    assert (ndr.cells[10, 2].state, ndr.cells[10, 2].reason) == (CellState.DOES_NOT_FIT, _REASON)
    assert ndr.cells[1, 2].state is CellState.NOT_RUN


def drawn(*rates: tuple[str, float]) -> Figure | None:
    made = (plain(2, 1, rate, frame=frame(name), test_id=name, test_name=name) for name, rate in rates)
    rows = InMemory(dataset_of(*made)).tests
    return flows_figure("f", "Flows", [matrix for one in all_series(rows) for matrix in matrices(rows, one)])


def test_a_cell_has_a_line_per_version_of_ip_over_all_numbers_of_flows() -> None:
    flows = (("128B-1f", 1e6), ("128B-1000f", 9e5), ("128B-100000f", 5e5), ("128B-ip6-1000f", 8e5))
    variant = drawn(*flows).variants["NDR"]
    assert [(line["name"][-4:], line["x"], line["y"], line["line"]["dash"]) for line in variant["data"]] == [
        ("IPv4", [1, 1000, 100_000], [1.0, 0.9, 0.5], "solid"),
        ("IPv6", [1000], [0.8], "dash"),
    ]
    assert drawn(("128B-1f", 1e6), ("1518B-1f", 5e5)) is None, "of two frame sizes"
    assert drawn(("128B", 1e6), ("128B-1f", 5e5)) is None, "packets without ports are another load"


def page(which: Page, dataset: Dataset) -> RenderedPage | None:
    return render(which, ReportContents(InMemory(dataset)))


def fair(index: float, made: DensityRecord) -> DensityRecord:
    """A test whose instances share by this index."""
    items = [each.model_copy(update={"fairness": None if each.fairness is None else index}) for each in made.itemized]
    return made.model_copy(update={"itemized": tuple(items)})


def test_the_fairness_page_has_maps_of_unfair_series_and_a_sentence_for_others() -> None:
    tests = (result(CSC, 1, 1), fair(0.8, result(CSC, 2, 1)), fair(0.8, mrr_result(CSC, 2, 1)))
    made = page(fairness.PAGE, dataset_of(*tests, fair(1.0, result(CSP, 2, 1))))
    assert "all 1 cells of CSP" in words(made)
    assert len({figure.title for figure in made.figures}) == len(made.figures) == 3, "shares are of trials of MRR"
    fair_only = page(fairness.PAGE, dataset_of(fair(0.9995, result(CSC, 2, 1)), fair(1.0, result(CSC, 4, 1))))
    assert fair_only.figures == () and "All 2 cells with several instances are fair" in words(fair_only)
    assert page(fairness.PAGE, dataset_of(result(CSC, 1, 1))) is None


def located(lost_by: dict[str, int], busy: float) -> LocatedLosses:
    """Losses by owner in one trial."""
    hops = tuple(
        HopLoss(instance=1, direction=Direction.FORWARD, last="a", next="b", owner=owner, cause="queue", lost=lost)
        for owner, lost in lost_by.items()
    )
    thread = ThreadLoad(owner="vswitch", interface="csv1p1", cpu=2, running=busy, waiting=0.0)
    usage = Usage(threads=(thread,), cpus=(CpuLoad(cpu=2, user=0.0, system=busy, softirq=0.0, stolen=0.0),))
    sent = 10 * sum(lost_by.values())
    return LocatedLosses(
        purpose="locate", load_pps=1e6, offered_pps=1e6, trials=1, sent=sent, received=sent - sum(lost_by.values()),
        hops=hops, usage=usage,
    )  # fmt: skip


def test_the_losses_page_names_the_part_that_loses_most_in_each_cell() -> None:
    one = plain(1, 1, 2e5, located=located({"vswitch": 75, "nf-1-1": 25}, 0.97))
    two = plain(2, 2, 2e5, located=located({"nf-1-2": 10}, 0.5))
    maps, bars = page(losses.PAGE, dataset_of(one, two)).figures
    first = maps.variants["loses most"]["maps"][0][0][0]
    assert first[:2] == ["vSwitch", "75 %"]
    assert "its busiest data thread ran 97 % of the time" in first[4]
    of_nf = maps.variants["NF 1"]["maps"][0]
    assert (of_nf[0][0][0], of_nf[1][1][0]) == ("25 %", "0 %")
    assert maps.variants["vSwitch"]["maps"][0][0][1][0] == "not run"
    traces = {trace["name"]: dict(zip(trace["x"], trace["y"], strict=True)) for trace in bars.variants["CSC"]["data"]}
    assert traces == {"vSwitch": {"1x1": 75.0}, "NF 1": {"1x1": 25.0}, "NF 2": {"2x2": 100.0}}
    alike = [plain(chains, 1, 2e5, located=located({"vswitch": 75}, 0.97)) for chains in (1, 2)]
    same = page(losses.PAGE, dataset_of(*alike))
    assert same.figures == () and "All 2 tests with losses lose at one place: vSwitch" in words(same)


def nights(*rates: float) -> list[DensityRecord]:
    """A cell, night after night."""
    days = [f"2026-01-{day:02d}" for day in range(1, len(rates) + 1)]
    return [
        plain(1, 1, rate, started_at=f"{day}T00:00:00Z", finished_at=f"{day}T00:10:00Z")
        for day, rate in zip(days, rates, strict=True)
    ]


@cache
def measured() -> ReportContents:
    """Three nights of a cell whose instances share unfairly, and one of everything else that pages tell."""
    every = dataset_of(*nights(200e3, 210e3, 230e3))
    dense = fair(0.8, result(CSC, 2, 1, located=located({"vswitch": 75, "nf-1-1": 25}, 0.97), energy=METERED))
    lossy = result(VSC, 1, 1, losses=LOSSES, back_to_back=BURSTS, oversubscribed=True)
    others = dense, lossy, soaked(4), mrr_result(CSP, 2, 1), result(CSP, 1, 1, simulated=True), does_not_fit(CSC, 8, 2)
    failed = plain(4, 1, 2e5, passed=False, message="nf-4-1 is down", search=RECORD, verdict=VERDICT)
    every.recorded += dataset_of(*others, failed).recorded
    skipped = Unrecorded("S.u", "u", ("CSC", "4R1C"), "output.xml", Status.SKIP, "needs VPP")
    for each in (skipped, refused_cell(10, 2, _REASON), Problem("b.xml", "b.xml: broken off")):
        every.add(each)
    return ReportContents(InMemory(every))


PAGES = [page.name for page in every_page() if page.group != "Studies" and page.name != "metrics"]
OF_TESTS = {"search": (VSC, 1), "soak": (CSC, 4), "mrr": (CSP, 2), "unfit": (CSC, 8)}


@pytest.mark.parametrize("name", [*PAGES, *OF_TESTS])
def test_words_of_a_page_are_approved(name: str, approved: SnapshotAssertion) -> None:
    shown, cell = ReportContents(planted()) if name in {"compare", "trend"} else measured(), OF_TESTS.get(name)
    anchors = [row.anchor for row in shown.rows if (row.service_type, row.nf_chains) == cell]
    made = rendered_test(shown, anchors[0]) if anchors else rendered(name, shown)
    assert wording_of_page(str(made.html)) == approved


def test_three_runs_make_a_box_and_two_do_not() -> None:
    assert page(spread.PAGE, dataset_of(*nights(200e3, 210e3))) is None
    made = page(spread.PAGE, dataset_of(*nights(200e3, 210e3, 230e3)))
    (figure,) = made.figures
    (rates,) = figure.variants["rates|CSC|NDR"]["data"]
    assert (rates["q1"], rates["median"], rates["q3"]) == ([205.0], [210.0], [220.0])
    assert rates["y"] == [[200.0, 210.0, 230.0]], "every run is a point"
    assert "A search finds rates to ± 0.2" in words(made), "half of the width between bounds"
    made = page(spread.PAGE, dataset_of(*nights(*(200e3, 150e3, 201e3, 151e3, 149e3, 199e3, 150e3, 200e3))))
    assert "150 kpps in 50 % of runs, 200 kpps in the others" in words(made)
    marks = made.figures[0].variants["rates|CSC|NDR"]["layout"]["annotations"]
    assert [mark["text"] for mark in marks] == ["two bands"]


def test_environments_are_compared_by_relevance_and_nodes_of_a_lab_stand_beside_each_other() -> None:
    old, new = nights(200e3, 200e3)
    changes = {"kernel": "6.19.0", "hostname": "b2", "command_line": "isolcpus=1-27 nohz_full=1-27 mitigations=off"}
    changed = new.environment.model_copy(update=changes)
    dataset = dataset_of(old, source="one.xml")
    dataset.recorded += dataset_of(new.model_copy(update={"environment": changed}), source="two.xml").recorded
    text = words(page(environment.PAGE, dataset))
    pair = text[text.index("Differences of two environments") : text.index("Side by side")]
    relevant = ["command line intel_pstate=disable mitigations=off", "kernel 6.18.4-amd64 6.19.0", "host bench-1 b2"]
    places = [pair.index(each) for each in relevant]
    assert places == sorted(places) and "Xeon" not in pair, "what is equal is left out"
    tg = changed.model_copy(update={"hostname": "tg7", "cpu_model": "Other CPU"})
    lab = old.model_copy(update={"environment": old.environment.model_copy(update={"nodes": {"TG": tg}})})
    text = page_of(lab).text
    assert f"TG: Other CPU, {tg.cpus_online} CPUs, Linux 6.19.0" in text and "TG.host tg7" in text


def test_failures_are_grouped_and_linked() -> None:
    down = [plain(chains, 1, 2e5, passed=False, message=f"nf-{chains}-1 is down") for chains in (1, 2, 4)]
    skipped = Unrecorded("S.u", "u", ("CSC", "4R1C"), "output.xml", Status.SKIP, "needs VPP")
    made = dataset_of(*down, unrecorded=(skipped,))
    made.add(Problem("b.xml", "b.xml: broken off"))
    shown = page(failures.PAGE, made)
    assert "failed 3 … is down" in words(shown)
    assert shown.count == 4
    assert len(re.findall(r'href="#test-csc-\dr1c', str(shown.html))) == 3


@pytest.mark.parametrize("simulated", [True, False])
def test_every_page_says_simulated_of_simulated_results_and_of_no_others(*, simulated: bool) -> None:
    one = result(CSC, 2, 1, simulated=simulated, located=located({"vswitch": 5}, 1.0))
    rows = [one.model_copy(update={"started_at": f"2026-01-0{day}T00:00:00Z"}) for day in (1, 2, 3)]
    failed = rows[0].model_copy(update={"passed": False, "message": "down", "started_at": "2026-01-04T00:00:00Z"})
    for which in (latency.PAGE, fairness.PAGE, losses.PAGE, spread.PAGE, failures.PAGE):
        made = page(which, dataset_of(*rows, failed))
        assert ("SIMULATED" in str(made.html)) is simulated, which.name
        assert {figure.simulated for figure in made.figures} <= {simulated}, which.name


UNMETERED = Energy(
    trial_s=10.0,
    duts=("DUT1",),
    loads=(power_at("PDR0", None), power_at("PDR90", None, 2e6, 1.9)),
    unmetered={"DUT1": "no counters"},
)


def test_each_load_has_power_and_energy_per_packet_or_busy_cpus_where_there_is_no_meter() -> None:
    lines = {line.label: line for line in energy_lines(METERED)}
    assert lines["PDR50"].power == "90.00 ± 0.5 W"
    assert (lines["PDR50"].joules_per_packet, lines["PDR50"].above_idle) == (90e-6, 30e-6)
    assert lines["PDR0"].joules_per_packet is None
    assert lines["PDR90"].nodes == "DUT1 by powercap in 9.5 s: package-0 99.00 W"
    assert load_words("PDR50") == "50 % of PDR" and load_words(IDLE) == "before the deployment"
    power, idle = energy_figure("e", "t", METERED, simulated=False).variants[""]["data"]
    assert (power["x"], power["y"], power["error_y"]["array"]) == ([0, 1, 2], [80, 90, 99], [0.5, 0.5, 0.5])
    assert idle["y"] == [60, 60, 60]
    figure = energy_figure("e", "t", UNMETERED, simulated=False)
    assert figure.variants[""]["data"][0]["y"] == [1.0, 1.9]
    shared = plan_of("local", "CSC", cores=cpus(8))
    assert energy_notes(UNMETERED) == energy_notes(UNMETERED, shared) == ("DUT1: no counters.",)
    (note,) = energy_notes(METERED, shared)
    assert note.startswith("The generator runs on the same machine")
    for bare in (UNMETERED.model_copy(update={"loads": (power_at("PDR0", None, busy=None),)}), None):
        assert energy_figure("e", "t", bare, simulated=False) is None


def test_the_table_has_a_sentence_for_every_flow_and_the_test_one_of_the_worst() -> None:
    lines = loss_patterns(LOSSES)
    assert [(line.load, line.direction) for line in lines] == [
        (load, direction) for load in ("NDR", "PDR") for direction in ("forward", "reverse")
    ]
    assert lines[0].sentence == "none of 20,000 packets lost" and not lines[0].largest_extent
    lossy = lines[2]
    assert lossy.lost == LOSSES[1].flows[0].lost and lossy.longest >= 1
    assert lossy.largest_extent and lossy.three_reordered
    figure = loss_pattern_figure("losses-1", "loss patterns", LOSSES, simulated=True)
    assert figure.simulated
    assert figure.selectors == (("PDR",), ("over time", "loss periods by length", "reorder density"))
    (over_time,) = figure.variants["PDR|over time"]["data"]
    assert len(over_time["x"]) == len(LOSSES[1].flows[0].listed)
    assert loss_pattern_figure("losses-1", "loss patterns", LOSSES[:1], simulated=True) is None
    sentences = {row.label: flow_in_words(worst_flow(row)) for row in LOSSES}
    made = plain(1, 1, 2e5).model_copy(update={"losses": LOSSES, "loss_patterns": sentences})
    assert DensityRecord.model_validate_json(made.model_dump_json()) == made
    (row,) = rows_of_tests(dataset_of(made))
    assert row.loss_patterns.startswith("NDR: instance 1 forward: none of 20,000 packets lost; PDR: ")


def test_bursts_have_a_sentence_and_the_qualification_the_line_that_bounds_the_test() -> None:
    for said in ("310 ± 10 frames", "at 1.00 Mpps", "465 µs (620 µs implied)", "from 300 to 320 frames, 45 bursts"):
        assert said in bursts_text(BURSTS)
    assert "at least 310 " in bursts_text(BURSTS.model_copy(update={"endless": True}))
    assert burst_figure("b", "t", BURSTS, simulated=False).variants[""]["data"][0]["y"] == [300, 310, 320]
    found = qualification(qualified_point(), qualified_point(size="1518B", loss_free_pps=None))
    assert qualification_view(found, frame("IMIX"), 20).bound == found.points[0]


RERUN = Rerun(
    suite="tests/density/csc-ndrpdr.robot",
    topology="topologies/sim.yaml",
    topology_digest="d" * 64,
    variables={"CELLS": "1x1,4x2", "SEARCH": "quick,width=0.02", "FRAMES": "64B,IMIX", "PRIORS": ""},
)


def test_the_command_asks_for_this_cell_and_no_other() -> None:
    cell = Cell(service_type=CSC, nf_chains=4, nf_nodes=2, nf_sizes=(NfSize.ONE, NfSize.HALF), vs_dtc=2)
    asked = MeasurementRequest(test_type=TestType.NDRPDR, cell=cell, frame=IMIX, profile=PROFILE)
    argv = command(result(CSC, 4, 2, rerun=RERUN, asked=asked, test_name="IMIX-2c-eth[x]"))
    assert argv[:2] == ["./csit", "robot"]
    variables = " ".join(word for before, word in pairwise(argv) if before == "-v")
    cell_and_frame = "CELLS:4x2 NF_SIZES:1c+0.5c VSWITCH:2 FRAMES:IMIX"
    assert variables == f"TOPOLOGY:topologies/sim.yaml {cell_and_frame} SEARCH:quick,width=0.02"
    assert argv[-3:] == ["--test", "IMIX-2c-eth[[]x]", "tests/density/csc-ndrpdr.robot"]


def test_the_plan_that_is_saved_has_the_plans_digest() -> None:
    one = result(CSC, 2, 2)
    kind, packed = capsule(one).plan_href.split(",")
    assert kind == "data:application/json;base64"
    assert hashlib.sha256(base64.b64decode(packed)).hexdigest() == digest_of_model(one.plan)
    assert capsule(does_not_fit(CSC, 8, 2)).plan_href is None


def test_what_a_record_says_runs_no_other_command() -> None:
    evil = "x; rm -rf /\nreboot"
    rerun = RERUN.model_copy(update={"topology": evil, "suite": evil})
    one = result(CSC, 1, 1, rerun=rerun, test_id=evil, test_name=evil, drivers={"vswitch": evil})
    names = dict.fromkeys(("kernel", "command_line", "git_revision"), evil)
    environment = one.environment.model_copy(update={**names, "versions": {evil: evil}, "settings": {evil: evil}})
    words = shlex.split(capsule(one.model_copy(update={"environment": environment})).text, comments=True)
    assert words[:5] == ["git", "checkout", evil, "./csit", "robot"]
    assert words[-3:] == ["--test", evil, evil]
    assert not {"rm", "reboot", ";"} & set(words)
