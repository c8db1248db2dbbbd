"""Pages of latency, fairness, losses, repeated runs, failures and environments: what they say of which data."""

import re
from dataclasses import replace
from typing import Any

import pytest

from csit_utils.dataset.items import Problem, Status, Unrecorded
from csit_utils.dataset.rows import InstanceRow, LatencyRow
from csit_utils.report.cell_maps import CellMaps, MapSquare
from csit_utils.report.environments import environment_views, first_pair, payload
from csit_utils.report.pages import environment, failures, spread
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import RenderedPage, render
from csit_utils.report.study import Page
from csit_utils.studies.density.analysis.density import layouts
from csit_utils.studies.density.analysis.latency_cells import BOTH
from csit_utils.studies.density.figures.latency_maps import NO_LATENCY, matrix_maps
from csit_utils.studies.density.pages import fairness, latency, losses
from csit_utils.studies.density.pages.fairness import fairness_of
from resources.libraries.python.model.findings import CpuLoad, HopLoss, LocatedLosses, ThreadLoad, Usage
from resources.libraries.python.model.measurements.trial import Direction, FlowLatency
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.result import LatencyAtLoad
from resources.libraries.python.studies.density.model import DensityRecord
from tests.loaded import Dataset, rows_of_tests, table_rows
from tests.unit.csit_utils.builders import mrr_result, refused_cell, result
from tests.unit.csit_utils.characterized_pages import words
from tests.unit.csit_utils.datasets import dataset_of, latency_test, plain
from tests.unit.csit_utils.in_memory import InMemory

CSC = ServiceType.CSC


def flow(instance: int, direction: Direction, p99_ns: int, *, sent: int = 1000, lost: int = 0) -> FlowLatency:
    """Latency of one flow without a histogram."""
    figures = {"min_ns": 1, "p50_ns": p99_ns // 10, "p90_ns": p99_ns // 2, "p99_ns": p99_ns, "p999_ns": 2 * p99_ns}
    counts = {"instance": instance, "direction": direction, "sent": sent, "received": sent - lost}
    return FlowLatency.model_validate({**counts, **figures, "mean_ns": 2.0, "max_ns": 3 * p99_ns, "histogram": None})


def timed(chains: int, nodes: int, p99_ns: int, started: str = "2026-01-01T00:00:00Z", **flows: int) -> DensityRecord:
    """A latency test; instance i in reverse has i times the latency."""
    load = LatencyAtLoad(
        label="PDR50",
        load_pps=1e5,
        flows=tuple(
            flow(i, d, p99_ns * (i if d is Direction.REVERSE else 1), **flows)
            for i in range(1, chains + 1)
            for d in Direction
        ),
    )
    return latency_test(plain(chains, nodes, 2e5, latency=(load,), started_at=started))


def page(which: Page, dataset: Dataset) -> RenderedPage | None:
    return render(which, ReportContents(InMemory(dataset)))


def square(maps: CellMaps, line: int, column: int, *choice: str) -> MapSquare:
    """A cell of the first map."""
    return maps.maps[0].square(line, column, choice)


def latency_maps_of(dataset: Dataset) -> CellMaps:
    """Maps of the only block."""
    rows = rows_of_tests(dataset)
    timings: dict[str, list[Any]] = {}
    for row in table_rows(dataset, LatencyRow):
        timings.setdefault(row.anchor, []).append(row)
    found = layouts(rows, lambda row: row.anchor in timings, dataset.refused, NO_LATENCY)
    return matrix_maps("maps", found, timings)


def test_a_latency_map_shows_the_worst_and_says_why_cells_are_empty() -> None:
    failed = Unrecorded("S.t", "t", ("CSC", "4R1C", "64B", "LATENCY"), "output.xml", Status.FAIL, "nf-1-1 is down")
    made = dataset_of(timed(1, 1, 10_000), timed(2, 1, 20_000), plain(1, 2, 2e5), unrecorded=(failed,))
    made.add(refused_cell(8, 2, "needs 33 cores"))
    maps = latency_maps_of(made)
    assert (maps.maps[0].lines, maps.maps[0].columns) == (("1", "2", "4", "8"), ("1", "2"))
    worst = square(maps, 1, 0, "p99", "PDR50", BOTH)
    assert (worst.text, worst.note, worst.value) == ("40.0", "µs", 40_000.0)
    assert "instance 2 reverse" in worst.tip
    assert square(maps, 1, 0, "p99", "PDR50", "forward").value == 20_000.0
    said = {place: square(maps, *place, "p99", "PDR50", BOTH) for place in ((0, 1), (2, 0), (3, 1), (3, 0))}
    assert {place: (each.text, each.value) for place, each in said.items()} == {
        (0, 1): ("no latency", None),
        (2, 0): ("failed", None),
        (3, 1): ("does not fit", None),
        (3, 0): ("not run", None),
    }
    assert said[2, 0].tip.endswith("nf-1-1 is down")
    assert said[3, 1].tip.endswith("needs 33 cores")


def test_a_latency_map_does_not_invent_percentiles() -> None:
    lossy = latency_maps_of(dataset_of(timed(1, 1, 10_000, sent=1000, lost=11)))
    assert square(lossy, 0, 0, "p50", "PDR50", BOTH).value == 1_000.0
    assert square(lossy, 0, 0, "p99", "PDR50", BOTH).text == "probes lost"
    few = latency_maps_of(dataset_of(timed(1, 1, 10_000, sent=500)))
    cell = square(few, 0, 0, "p99.9", "PDR50", BOTH)
    assert (cell.text, cell.value) == ("few samples", None)
    assert "p99.9 needs 1,000 samples, 500 available" in cell.tip


def shares(*rates: float) -> list[InstanceRow]:
    """Instances in overload with these rates, half in each direction."""
    total, squares = sum(rates), sum(rate**2 for rate in rates)
    index = total**2 / (len(rates) * squares) if len(rates) > 1 else None
    return [
        InstanceRow("a", "t", "overload", 1e6, 1, i, d, 100, 90, rate, rate / 2, 0.1 * i, False, index, "")
        for i, rate in enumerate(rates, 1)
        for d in ("forward", "reverse")
    ]


def test_fairness_names_the_instance_that_gets_least() -> None:
    found = fairness_of(shares(100.0, 50.0, 200.0))["overload"]
    assert (found.lowest, found.highest, found.ratio) == ((2, 50.0), (3, 200.0), 0.25)
    assert found.index == pytest.approx(350**2 / (3 * (100**2 + 50**2 + 200**2)))
    assert found.worst_loss_ratio == pytest.approx(0.3)
    alone = fairness_of(shares(100.0))["overload"]
    assert (alone.index, alone.ratio) == (None, 1.0)


def fair(index: float, made: DensityRecord) -> DensityRecord:
    """A test whose instances share by this index."""
    items = [each.model_copy(update={"fairness": None if each.fairness is None else index}) for each in made.itemized]
    return made.model_copy(update={"itemized": tuple(items)})


def test_the_fairness_page_has_maps_of_unfair_series_and_a_sentence_for_others() -> None:
    tests = (result(CSC, 1, 1), fair(0.8, result(CSC, 2, 1)), fair(0.8, mrr_result(CSC, 2, 1)))
    made = page(fairness.PAGE, dataset_of(*tests, fair(1.0, result(ServiceType.CSP, 2, 1))))
    assert "all 1 cells of CSP" in words(made) and "Least fair cells" in words(made)
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
    assert maps.selectors == (("loses most", "vSwitch", "NF 1", "NF 2"),)
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
    other = plain(4, 1, 2e5, located=located({"nf-1-1": 75}, 0.97))
    assert len(page(losses.PAGE, dataset_of(*alike, other)).figures) == 2, "cells of a series differ"
    assert page(losses.PAGE, dataset_of(plain(1, 1, 2e5))) is None


def nights(*rates: float) -> list[DensityRecord]:
    """A cell, night after night."""
    days = [f"2026-01-{day:02d}" for day in range(1, len(rates) + 1)]
    return [
        plain(1, 1, rate, started_at=f"{day}T00:00:00Z", finished_at=f"{day}T00:10:00Z")
        for day, rate in zip(days, rates, strict=True)
    ]


def test_three_runs_make_a_box_and_two_do_not() -> None:
    assert page(spread.PAGE, dataset_of(*nights(200e3, 210e3))) is None
    made = page(spread.PAGE, dataset_of(*nights(200e3, 210e3, 230e3)))
    (figure,) = made.figures
    (rates,) = figure.variants["rates|CSC|NDR"]["data"]
    assert (rates["q1"], rates["median"], rates["q3"]) == ([205.0], [210.0], [220.0])
    assert rates["y"] == [[200.0, 210.0, 230.0]], "every run is a point"
    (against,) = figure.variants["against the median|CSC|NDR"]["data"]
    assert against["y"][0] == pytest.approx([-4.7619, 0.0, 9.5238])
    assert "3 runs each" in figure.variants["rates|CSC|NDR"]["layout"]["xaxis"]["title"]["text"]
    assert "A search finds rates to ± 0.2" in words(made), "half of the width between bounds"


def test_two_bands_are_said_beside_their_box() -> None:
    made = page(spread.PAGE, dataset_of(*nights(*(200e3, 150e3, 201e3, 151e3, 149e3, 199e3, 150e3, 200e3))))
    text = words(made)
    assert "cells go back and forth between two bands" in text
    assert "150 kpps in 50 % of runs, 200 kpps in the others" in text
    marks = made.figures[0].variants["rates|CSC|NDR"]["layout"]["annotations"]
    assert [mark["text"] for mark in marks] == ["two bands"]


def test_failures_are_grouped_and_linked() -> None:
    down = [plain(chains, 1, 2e5, passed=False, message=f"nf-{chains}-1 is down") for chains in (1, 2, 4)]
    skipped = Unrecorded("S.u", "u", ("CSC", "4R1C"), "output.xml", Status.SKIP, "needs VPP")
    made = dataset_of(*down, unrecorded=(skipped,))
    made.add(Problem("b.xml", "b.xml: broken off"))
    shown = page(failures.PAGE, made)
    for said in ("failed 3 … is down", "b.xml: broken off", "./csit doctor"):
        assert said in words(shown)
    assert shown.count == 4
    assert len(re.findall(r'href="#test-csc-\dr1c', str(shown.html))) == 3


def test_environments_are_compared_by_relevance() -> None:
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
    contents = InMemory(dataset)
    views = environment_views(contents.environments, ReportContents(contents).history.runs, {})
    assert views[0].environment.kernel == "6.19.0", "that of the newest run comes first"
    assert first_pair(views) == (1, 0)
    data = payload(views).variants
    at = data["names"].index("kernel")
    assert [data["texts"][row[at]] for row in data["rows"]] == ["6.19.0", "6.18.4-amd64"]


@pytest.mark.parametrize("simulated", [True, False])
def test_every_page_says_simulated_of_simulated_results_and_of_no_others(*, simulated: bool) -> None:
    one = result(CSC, 2, 1, simulated=simulated, located=located({"vswitch": 5}, 1.0))
    rows = [one.model_copy(update={"started_at": f"2026-01-0{day}T00:00:00Z"}) for day in (1, 2, 3)]
    failed = rows[0].model_copy(update={"passed": False, "message": "down", "started_at": "2026-01-04T00:00:00Z"})
    for which in (latency.PAGE, fairness.PAGE, losses.PAGE, spread.PAGE, failures.PAGE):
        made = page(which, dataset_of(*rows, failed))
        assert ("SIMULATED" in str(made.html)) is simulated, which.name
        assert {figure.simulated for figure in made.figures} <= {simulated}, which.name


def test_placing_prefers_the_type_that_was_asked_for_and_then_the_newest() -> None:
    newer = timed(1, 1, 10_000, "2026-01-09T00:00:00Z")
    rows = rows_of_tests(dataset_of(plain(1, 1, 2e5, started_at="2026-01-01T00:00:00Z"), newer))
    (layout,) = layouts(rows, lambda _: True, test_type="NDRPDR")
    assert (layout.cells[1, 1].row.test_type, layout.cells[1, 1].tests) == ("NDRPDR", 2)
    (layout,) = layouts([replace(row, test_type="LATENCY") for row in rows], lambda _: True)
    assert layout.cells[1, 1].row.started_at == "2026-01-09T00:00:00Z"
