"""Matrices, series, runs, percentiles, cells and what is said of them, against numbers worked out by hand."""

import base64
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.analysis.cells import when
from csit_utils.analysis.grouping import (
    ThroughputBounds,
    all_series,
    belongs,
    bounds,
    error_of,
    per_core,
    series_of,
    system_of,
)
from csit_utils.analysis.latency import curve, merge, percentiles
from csit_utils.analysis.runs import history
from csit_utils.dataset import rows as columns
from csit_utils.dataset.items import Status, Unrecorded
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import MRR, NDR, ORR, PDR, SOAK
from csit_utils.studies.density.analysis.density import (
    CellState,
    Matrix,
    MatrixCell,
    layouts,
    matrices,
    short,
    verdict_of,
)
from csit_utils.studies.density.analysis.efficiency import NF, VSWITCH, ratios, speedups
from csit_utils.studies.density.analysis.latency_cells import BOTH, Quantile, UnknownReason, figure
from csit_utils.studies.density.analysis.losses import order, shares
from csit_utils.studies.density.analysis.summary import changes, headlines
from csit_utils.studies.density.pages.energy import energy_blocks
from csit_utils.studies.density.pages.fairness import fairness_of
from csit_utils.studies.density.sentences import rare_losses
from resources.libraries.python.model.request.goal import GoalResult
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.result import Finding, ReceiveRate, Verdict, VerdictKind
from tests.loaded import rows_of_tests
from tests.unit.csit_utils.builders import CSC, CSP, IMIX, does_not_fit, mrr_result, result
from tests.unit.csit_utils.builders import NDR as NDR_GOAL
from tests.unit.csit_utils.builders import PDR as PDR_GOAL
from tests.unit.csit_utils.datasets import dataset_of, latency_test, plain
from tests.unit.csit_utils.histories import row


def test_the_matrix_has_values_relations_and_reasons() -> None:
    failed = Unrecorded("S.t", "t", ("CSC", "2R2C", "64B", "NDRPDR"), "output.xml", Status.FAIL, "nf-2-1 is down")
    skipped = Unrecorded("S.u", "u", ("CSC", "8R2C", "64B", "NDRPDR"), "output.xml", Status.SKIP, "needs VPP")
    broken = plain(8, 1, 1e5, passed=False, message="clean-up failed")
    made = dataset_of(
        plain(1, 1, 200e3), plain(2, 1, 150e3), does_not_fit(CSC, 4, 2), broken, unrecorded=(failed, skipped)
    )
    rows = rows_of_tests(made)
    (series,) = all_series(rows)
    ndr, pdr = matrices(rows, series)
    assert (ndr.metric, pdr.metric) == (NDR, PDR)
    assert (ndr.chains, ndr.nodes) == ((1, 2, 4, 8), (1, 2))
    assert ndr.cells[1, 1].value_pps == 200e3
    assert ndr.cells[2, 1].relative == pytest.approx(0.75)
    states = {place: (cell.state, cell.reason) for place, cell in ndr.cells.items() if cell.value_pps is None}
    not_run = (CellState.NOT_RUN, ndr.cells[1, 2].reason)
    assert states == {
        (1, 2): not_run,
        (2, 2): (CellState.FAILED, "nf-2-1 is down"),
        (4, 1): not_run,
        (4, 2): (CellState.DOES_NOT_FIT, "needs 33 cores on NUMA 0, 28 available"),
        (8, 1): (CellState.FAILED, "clean-up failed"),
        (8, 2): (CellState.SKIPPED, "needs VPP"),
    }


def test_limits_are_not_values() -> None:
    base = {"goal": NDR_GOAL, "lower_pps": None, "upper_pps": None, "throughput_pps": None, "complete": False}
    no_upper = GoalResult(**base | {"lower_pps": 9e5})
    no_lower = GoalResult(**base, lowest_tried_pps=1e4)
    tests = (result(CSC, n, 1, histograms=False, ndr=ndr) for n, ndr in ((1, no_upper), (2, no_lower)))
    rows = rows_of_tests(dataset_of(*tests))
    matrix = matrices(rows, all_series(rows)[0])[0]
    assert (matrix.cells[1, 1].state, matrix.cells[1, 1].value_pps) == (CellState.AT_LEAST, 9e5)
    assert (matrix.cells[2, 1].state, matrix.cells[2, 1].value_pps) == (CellState.BELOW, 1e4)
    assert matrix.cells[2, 1].relative is None


def test_a_rate_at_overload_is_of_the_tests_of_mrr() -> None:
    """It is measured where a search begins below the load of MRR; a search does not ask for it."""
    orr = ReceiveRate(offered_pps=1e6, receive_rates_pps=(4e5,), mean_pps=4e5, stdev_pps=None)
    rows = rows_of_tests(dataset_of(mrr_result(CSC, 1, 1, orr=orr), plain(2, 1, 1e5)))
    found = {each.metric: each for each in matrices(rows, all_series(rows)[0])}
    assert found[ORR].cells[1, 1].value_pps == pytest.approx(4e5)
    assert found[ORR].cells[2, 1].state is CellState.NOT_RUN


def test_the_figure_of_a_cell_is_a_mean_of_its_runs_or_that_of_a_latency_test() -> None:
    runs = [plain(1, 1, rate, started_at=f"2026-11-2{day}T00:00:00Z") for day, rate in enumerate((90e3, 100e3, 110e3))]
    rows = rows_of_tests(dataset_of(*runs))
    cell = matrices(rows, all_series(rows)[0])[0].cells[1, 1]
    assert (cell.value_pps, cell.spread_pps, len(cell.runs)) == (pytest.approx(100e3), pytest.approx(10e3), 3)
    latency = [latency_test(plain(chains, 1, 50e3), started_at="2026-11-21T00:00:00Z", ndr=None) for chains in (1, 2)]
    rows = rows_of_tests(dataset_of(plain(1, 1, 100e3), *latency))
    pdr = matrices(rows, all_series(rows)[0])[1]
    assert (pdr.cells[1, 1].value_pps, pdr.cells[2, 1].value_pps) == (100e3, 50e3)


def test_unlike_things_never_share_a_matrix() -> None:
    base = result(CSC, 1, 1, histograms=False)
    goals = (NDR_GOAL, PDR_GOAL.model_copy(update={"loss_ratio": 0.001}))
    asked = base.asked.model_copy(update={"profile": base.asked.profile.model_copy(update={"goals": goals})})
    drivers = {"generator": "ring", "vswitch": "ovs"}
    changes = [{"simulated": True}, {"frame": IMIX}, {"size": NfSize.HALF}, {"vs_dtc": 2}, {"testbed": "other"},
               {"drivers": drivers}, {"asked": asked}, {"service": CSP}]  # fmt: skip
    variants = [base, *(result(**{"service": CSC, "histograms": False, **change}) for change in changes)]
    series = all_series(rows_of_tests(dataset_of(*variants)))
    assert len(series) == len(variants)
    assert [one.system.simulated for one in series] == sorted(one.system.simulated for one in series)


def test_each_number_has_its_own_verdict() -> None:
    findings = (
        Finding(kind=VerdictKind.GENERATOR_BOUND, text="a", numbers=("PDR",)),
        Finding(kind=VerdictKind.OVERSUBSCRIBED, text="b"),
        Finding(kind=VerdictKind.VSWITCH_BOUND, text="c", numbers=("NDR",)),
    )
    found = Verdict(findings=findings)
    (row,) = rows_of_tests(dataset_of(plain(1, 1, 2e5, verdict=found)))
    assert verdict_of(row, NDR) == ("oversubscribed", "vswitch-bound")
    assert verdict_of(row, PDR) == ("generator-bound", "oversubscribed")
    assert (short(verdict_of(row, NDR)), short(["oversubscribed"])) == ("vSwitch", "shared")
    assert found.evidence_of("PDR") == ("a", "b")


def _histogram(*values: int) -> HdrHistogram:
    made = HdrHistogram(1, 10_000_000_000, 3)
    for value in values:
        made.record_value(value)
    return made


@given(st.lists(st.lists(st.integers(0, 10**10), min_size=1, max_size=20), min_size=1, max_size=4), st.booleans())
def test_a_sum_of_histograms_agrees_with_the_library(several: list[list[int]], alike: bool) -> None:
    made = [HdrHistogram(1, 10**10, 3 if alike or number % 2 == 0 else 2) for number in range(len(several))]
    whole = HdrHistogram(1, 10**10, 3)
    for histogram, values in zip(made, several, strict=True):
        for value in values:
            histogram.record_value(value)
        whole.add(histogram)
    found = percentiles(merge([each.encode().decode() for each in made]))
    assert (found.count, found.min_ns) == (whole.get_total_count(), whole.get_min_value())
    assert found.max_ns == whole.get_max_value()


def test_histograms_are_merged_without_bad_ones_and_give_percentiles_and_curves() -> None:
    made = _histogram(*range(1, 10_001))
    found = percentiles(merge([made.encode().decode()]))
    own = (found.p50_ns, found.p90_ns, found.p99_ns, found.p999_ns)
    assert own == tuple(map(made.get_value_at_percentile, (50, 90, 99, 99.9)))
    line = curve(merge([_histogram(*[100] * 90, *[200] * 9, 300).encode().decode()]))
    assert (line.quantiles[0], line.quantiles[-1], line.values_ns[-1]) == (0, 1, 300)
    assert dict(zip(line.quantiles, line.values_ns, strict=True))[0.9] == 100, "90 of 100 do not exceed 100"
    one, other = _histogram(10, 20).encode().decode(), _histogram(30).encode().decode()
    bomb = base64.b64encode(b"\x1c\x84\x93\x14\x00\x00\x40\x00" + zlib.compress(bytes(40_000_000))).decode()
    merged = merge([one, "!!", "", bomb, other[:20], other])
    assert percentiles(merged).count == 3
    assert merge(["nonsense"]) is None
    assert merge([_histogram().encode().decode()]) is None


@pytest.mark.parametrize("begun", [None, "", "zzz", "0001-01-01T00:00:00+14:00"])
def test_a_test_whose_start_is_no_time_sorts_before_all_others(begun: str | None) -> None:
    (dated,) = rows_of_tests(dataset_of(plain(1, 1, 90e3)))
    assert when(replace(dated, started_at=begun)) < when(dated)


SEARCHED = {NDR: "ndr", PDR: "pdr", SOAK: "soak"}


@pytest.mark.parametrize("metric", SEARCHED)
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((100.0, 110.0, False, 50.0), ThroughputBounds(100.0, 110.0, False)),
        ((100.0, None, True, 50.0), ThroughputBounds(100.0, None, True)),  # nothing above could be offered
        ((100.0, None, None, None), ThroughputBounds(100.0, 100.0, True)),  # a tool that gives figures only
        ((None, 60.0, True, 50.0), ThroughputBounds(None, 60.0, True)),
        ((None, None, True, 50.0), ThroughputBounds(None, 50.0, True)),
        ((None, None, True, None), None),
    ],
)
def test_bounds_of_a_search(
    metric: Measure,
    found: tuple[float | None, float | None, bool | None, float | None],
    expected: ThroughputBounds | None,
) -> None:
    """Of `found`: the lower and upper bound, whether the search is complete, and the lowest load that was tried."""
    fields: dict[str, Any] = {
        f"{name}_{part}": 7.0 for name in SEARCHED.values() for part in ("lower_pps", "upper_pps")
    }
    parts = ("lower_pps", "upper_pps", "complete", "lowest_tried_pps")
    fields |= {f"{SEARCHED[metric]}_{part}": value for part, value in zip(parts, found, strict=True)}
    searched = row(1e6, **fields)
    assert bounds(searched, metric) == expected
    assert bounds(replace(searched, status="FAIL"), metric) is None
    assert bounds(replace(searched, recorded=False), metric) is None


def test_receive_rates_have_a_standard_error_bandwidth_both_layers_and_throughput_its_cores() -> None:
    mrr = row(1e6, mrr_pps=9e5, mrr_stdev_pps=300.0, mrr_trials=9, orr_pps=8e5, orr_stdev_pps=100.0, orr_trials=4)
    assert bounds(mrr, MRR) == ThroughputBounds(9e5, 9e5, True)
    assert bounds(mrr, ORR) == ThroughputBounds(8e5, 8e5, True)
    assert [error_of(mrr, metric) for metric in (MRR, ORR, NDR)] == [100.0, 50.0, 0.0]
    (made,) = rows_of_tests(dataset_of(plain(1, 1, 1e6)))
    assert (made.ndr_l2_bps, made.ndr_l1_bps) == (pytest.approx(64 * 8 * 1e6), pytest.approx(84 * 8 * 1e6))
    searched = row(1e6, data_cores=4)
    assert per_core(searched, PDR) == 2.5e5
    assert per_core(replace(searched, data_cores=None), PDR) is None
    assert per_core(replace(searched, pdr_lower_pps=None), PDR) is None


HERE = ({}, {"frame": None}, {"frame": "64b"}, {"nf_size": None, "vs_dtc": None})
ELSEWHERE = ({"frame": "1518B"}, {"nf_size": "0.5c"}, {"vs_dtc": 2}, {"service_type": "CSP"})


@pytest.mark.parametrize("changes", [*HERE, *ELSEWHERE])
def test_a_test_without_a_record_belongs_where_nothing_speaks_against_it(changes: dict[str, Any]) -> None:
    measured = row(1e6)
    lost = replace(measured, recorded=False, simulated=None, **changes)
    assert belongs(lost, series_of(measured), system_of(measured)) is (changes in HERE)
    assert not belongs(lost, series_of(measured), None)


def test_a_run_is_called_by_testbed_and_day_or_its_label_and_runs_are_in_the_order_of_time() -> None:
    found = history([row(1e6, night, testbed) for night in (2, 0, 1) for testbed in ("lab-b", "lab-a")])
    assert [run.name for run in found.of(found.testbeds[0])] == [f"lab-a 2026-11-0{day}" for day in (1, 2, 3)]
    assert [one.name for one in found.testbeds] == ["lab-a", "lab-b"]
    assert found.latest(found.testbeds[1]).name == "lab-b 2026-11-03"
    assert found.previous(found.testbeds[1]).name == "lab-b 2026-11-02"
    again = row(1e6, 1, run="again.xml", started_at="2026-11-02T23:30:00Z")
    names = [run.name for run in history([row(1e6, 0, label="26.10"), row(1e6, 1), again]).runs]
    assert names == ["lab-a 26.10", "lab-a 2026-11-02 22:11:00", "lab-a 2026-11-02 23:30:00"]
    rows = [row(1e6, run="x", started_at="2026-11-02T01:00:00+05:00"), row(1e6, run="y", started_at="tomorrow")]
    assert [run.name for run in history(rows).runs] == ["lab-a undated", "lab-a 2026-11-01"]


def test_tests_without_a_record_are_of_the_testbed_of_their_run_and_simulated_ones_never_of_a_measured_one() -> None:
    lost = replace(row(None), testbed=None, simulated=None, world=None, started_at=None, recorded=False)
    (run,) = history([row(1e6), lost]).runs
    assert len(run.rows) == 2
    elsewhere = row(1e6, testbed="lab-b", run=row(1e6).run)
    assert [len(run.rows) for run in history([row(1e6), elsewhere, lost]).runs] == [1, 1]
    found = history([row(1e6), row(1e6, 1, simulated=True)])
    assert [(one.name, one.simulated) for one in found.testbeds] == [("lab-a", False), ("lab-a", True)]
    assert found.previous(found.testbeds[0]) is None


def hop(owner: str, lost: int, cause: str = "queue", instance: int = 1) -> columns.HopRow:
    return columns.HopRow("a", "t", "locate", 1e6, instance, "forward", owner, cause, "x", "y", lost, 0.0)


def thread(owner: str, cpu: int, running: float) -> columns.ThreadRow:
    return columns.ThreadRow("a", "t", owner, "x", cpu, running, 0.0)


def test_losses_and_times_are_added_up_by_owner_along_the_path() -> None:
    found = shares([hop("nf-1-2", 30), hop("nf-7-2", 20), hop("vswitch", 40), hop("nf-1-1", 10, "inside")])
    told = [(each.owner, each.lost, each.share) for each in found]
    assert told == [("NF 2", 50, 0.5), ("vSwitch", 40, 0.4), ("NF 1", 10, 0.1)]
    links = shares([hop("nf-1-1", 5, "link"), hop("vswitch", 1)])
    assert [each.owner for each in links] == ["link", "vSwitch"], "what no counter saw is the link's loss"
    assert shares([]) == shares([hop("vswitch", 0)]) == [], "no loss is no share"
    path = ["generator", "vSwitch", "vSwitch-2", "NF 2", "NF 10", "link"]
    assert order(["link", "NF 10", "NF 2", "vSwitch-2", "vSwitch", "generator", "NF 2"]) == path
    threads = [thread("nf-1-1", 4, 0.5), thread("nf-2-1", 5, 0.9), thread("vswitch", 2, 0.3), thread("vswitch", 2, 0.4)]
    hops = [hop("nf-1-1", 1), hop("vswitch", 1), hop("generator", 1)]
    found = {each.owner: each.busy for each in shares(hops, threads)}
    assert found["NF 1"] == 0.9
    assert found["vSwitch"] == pytest.approx(0.7), "kernel threads on one CPU are one data thread"
    assert found["generator"] is None, "unknown is not 0"


P50, P99, P999 = Quantile


def flow(
    instance: int = 1,
    direction: str = "forward",
    p99_ns: int | None = 10_000,
    probes: tuple[int | None, int | None] = (5000, 5000),
) -> columns.LatencyRow:
    """One flow with probes sent and received; p50 is a tenth of p99 and p99.9 twice as much."""
    p50, p999 = (None, None) if p99_ns is None else (p99_ns // 10, 2 * p99_ns)
    return columns.LatencyRow(
        "a", "t", "PDR50", 1e5, instance, direction, *probes, 1, None, p50, None, p99_ns, p999, None, None
    )  # fmt: skip


def test_the_worst_instance_and_direction_count_and_other_tools_may_lack_samples() -> None:
    rows = [flow(1), flow(1, "reverse", 30_000), flow(2, "forward", 20_000), flow(2, "reverse", 5_000)]
    worst, forward = figure(rows, P99, "PDR50"), figure(rows, P99, "PDR50", "forward")
    assert (worst.value_ns, worst.instance, worst.direction, worst.best_ns) == (30_000, 1, "reverse", 5_000)
    assert (forward.value_ns, forward.instance) == (20_000, 2)
    assert figure(rows, P99, "PDR90", BOTH) is None, "not measured at that load"
    found = figure([flow(probes=(None, None)), flow(2)], P99, "PDR50")
    assert (found.value_ns, found.samples) == (10_000, None)
    assert figure([flow(1, "forward", None, (None, None))], P99, "PDR50").unknown is UnknownReason.NOT_MEASURED


@pytest.mark.parametrize(
    ("quantile", "lost", "known"),
    [(P50, 2499, True), (P50, 2501, False), (P99, 50, True), (P99, 51, False), (P999, 5, True), (P999, 6, False)],
)
def test_a_percentile_is_unknown_when_all_above_it_may_be_lost(quantile: Quantile, lost: int, known: bool) -> None:
    found = figure([flow(1), flow(2, probes=(5000, 5000 - lost))], quantile, "PDR50")
    assert (found.value_ns is not None) is known
    if not known:
        assert (found.unknown, found.instance, found.load_pps) == (UnknownReason.LOST, 2, 1e5)
        assert found.samples == 5000 - lost
        assert found.reason.startswith(f"{lost:,} of 5,000 probes were lost")


@pytest.mark.parametrize(("quantile", "needs"), [(P50, 2), (P99, 100), (P999, 1000)])
def test_no_percentile_from_too_few_samples(quantile: Quantile, needs: int) -> None:
    assert quantile.samples_needed == needs
    enough, few = (figure([flow(probes=(count, count))], quantile, "PDR50") for count in (needs, needs - 1))
    assert enough.value_ns is not None
    assert (few.value_ns, few.unknown) == (None, UnknownReason.FEW)
    assert f"{quantile} needs {needs:,} samples, {needs - 1:,} available" == few.reason


def spent(waiting: str | None, watts: float | None, **more: Any) -> columns.TestRow:
    values = dict.fromkeys(("pdr0_w", "pdr50_w"), watts) | dict.fromkeys(("pdr0_busy_cpus", "pdr50_busy_cpus"), 1.0)
    joules = None if watts is None else watts / 5e5
    values |= {"anchor": f"{waiting}-{watts}", "waiting": waiting, "pdr50_j_per_packet": joules}
    return row(1e6, testbed="local-ovs", **(values | {"pdr50_energy_p99_ns": 36_000} | more))


def test_ways_of_waiting_have_rows_of_the_newest_tests_and_without_a_meter_busy_cpus_are_drawn() -> None:
    (block,) = energy_blocks([spent("never sleep", 100.0), spent("sleeping up to 100 µs", 80.0)])
    half = [row for row in block.rows if row["load"] == "50 % of PDR"]
    assert [row["way"] for row in half] == ["local-ovs: never sleep", "local-ovs: sleeping up to 100 µs"]
    figures = [(row["watts"], row["joules_per_packet"], row["received_pps"]) for row in half]
    assert figures == [(100.0, 2e-4, 5e5), (80.0, 1.6e-4, 5e5)]
    assert [trace["y"][0] for trace in block.figure.variants[""]["data"]] == [100.0, 80.0]
    newer = spent("never sleep", 90.0, started_at="2026-12-02T00:00:00+00:00")
    (block,) = energy_blocks([newer, spent("never sleep", 100.0)])
    assert [row["watts"] for row in block.rows if row["load"] == "no traffic"] == [90.0]
    rows = [spent("a", 1.0), spent("a", 1.0, nf_chains=2), spent("a", 1.0, simulated=True)]
    assert len(energy_blocks(rows)) == 3
    (block,) = energy_blocks([spent(None, None)])
    assert not block.metered and {row["way"] for row in block.rows} == {"local-ovs"}
    assert block.figure.variants[""]["data"][0]["y"] == [1.0, None, 1.0, None]
    assert energy_blocks([spent("a", None, pdr0_busy_cpus=None)]) == []


VALUE, AT_LEAST, BELOW, NOT_RUN = CellState.VALUE, CellState.AT_LEAST, CellState.BELOW, CellState.NOT_RUN


def cell(value_pps: float | None, state: CellState = VALUE, upper: float = 1.01, noise_pps: float = 0.0) -> MatrixCell:
    upper_pps = None if value_pps is None else upper * value_pps
    return MatrixCell(state, value_pps, upper_pps, noise_pps=noise_pps)


def matrix(cells: Mapping[tuple[int, int], MatrixCell], metric: Measure = columns.NDR, **sizes: object) -> Matrix:
    chains, nodes = (tuple(sorted({place[axis] for place in cells})) for axis in (0, 1))
    return Matrix(series_of(replace(row(1e6), **sizes)), metric, chains, nodes, dict(cells))


def test_a_headline_is_of_the_metric_that_says_most() -> None:
    by_metric = {
        metric: matrix({(1, 1): cell(float(rate))}, metric) for rate, metric in enumerate(columns.THROUGHPUTS, 1)
    }
    for best in (columns.PDR, columns.NDR, columns.SOAK, columns.MRR, columns.ORR):
        (found,) = headlines(by_metric.values())
        assert found.metric is best
        assert found.cell(best, found.most) == by_metric.pop(best).cells[1, 1]


def test_speedup_has_at_least_two_figures_of_the_same_cell() -> None:
    one = matrix({(1, 1): cell(100), (2, 1): cell(90), (4, 1): cell(80)}, vs_dtc=1)
    two = matrix({(1, 1): cell(180, AT_LEAST), (2, 1): cell(80, BELOW), (4, 1): cell(None, NOT_RUN)}, vs_dtc=2)
    other = matrix({(1, 1): cell(70)}, vs_dtc=2, nf_size="0.5c")
    vswitch, nf = sorted(speedups([two, one, other]), key=lambda found: found.axis != VSWITCH)
    assert (vswitch.axis, vswitch.place, vswitch.other, vswitch.service_type) == (VSWITCH, (1, 1), "NF-1c", "CSC")
    assert [(point.cores, point.rate_pps) for point in vswitch.points] == [(1.0, 100), (2.0, 180)]
    assert (vswitch.factor(vswitch.points[1]), vswitch.perfect_pps(3)) == (1.8, 300)
    assert (nf.other, [(point.cores, point.rate_pps) for point in nf.points]) == ("vSwitch-2c", [(0.5, 70), (1.0, 180)])
    cells = {(1, 1): cell(100)}
    sized = [found.axis for found in speedups([matrix(cells, nf_size=size) for size in ("2c", "1c")])]
    assert sized == [nf.axis] == [NF]
    for none in (
        [matrix(cells, nf_size=size) for size in ("1c-2c", "1c")],
        [matrix(cells, vs_dtc=cores) for cores in (None, 2)],
        [matrix(cells), matrix(cells, columns.PDR, vs_dtc=2)],
    ):
        assert speedups(none) == [], "sizes that are no number, unknown vSwitches, another metric"


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("low", "high", "resolved"),
    [
        (cell(100, upper=1.05), cell(105), False), (cell(100, upper=1.05), cell(105.1), True),
        (cell(100, upper=1, noise_pps=3), cell(110, noise_pps=4), False),
        (cell(100, upper=1, noise_pps=3), cell(110.1, noise_pps=4), True), (cell(100, BELOW), cell(105), True),
        (cell(100), cell(105, AT_LEAST), True),
    ],
)  # fmt: skip
def test_changes_beyond_bounds_and_double_noise(low: MatrixCell, high: MatrixCell, resolved: bool, order: int) -> None:
    one, other = (low, high)[::order]
    (found,) = changes([matrix({(1, 1): one, (2, 1): other})])
    assert found.resolved is resolved
    assert (found.ratio is not None) is (low.state is high.state is VALUE)


def test_changes_go_along_the_axes_and_limits_that_may_lie_either_way_are_none() -> None:
    found = changes([matrix({(1, 1): cell(100), (4, 1): cell(80), (1, 2): cell(60), (4, 2): cell(10)})])
    assert [(each.axis, each.start, each.end, each.start_pps, each.end_pps, each.resolved) for each in found] == [
        ("instances", (1, 1), (4, 1), 100, 80, True),
        ("NFs", (1, 1), (1, 2), 100, 60, True),
    ]
    for pair in ((cell(100, AT_LEAST), cell(200)), (cell(100), cell(200, BELOW))):
        for one, other in (pair, pair[::-1]):
            assert changes([matrix({(1, 1): one, (2, 1): other})]) == []


def test_the_newest_test_that_has_it_stands_for_a_cell() -> None:
    rows = [row(1e6, 1), row(1e6, 3), row(1e6, 2), row(1e6, 4, verdicts="lost")]
    rows += [row(1e6, 5, cell=("CSC", 2, 2), verdicts="lost"), row(None, 6, cell=("CSC", 2, 1), verdicts="lost")]
    (asked,) = layouts([replace(rows[0], test_type="LATENCY"), row(1e6)], lambda _: True, test_type="NDRPDR")
    assert (asked.cells[1, 1].row.test_type, asked.cells[1, 1].tests) == ("NDRPDR", 2), "though it is older"
    (layout,) = layouts(rows, lambda one: one.verdicts != "lost", missing="no sample")
    assert (layout.chains, layout.nodes) == ((1, 2), (1, 2))
    assert [(place, own.run) for place, own in layout.found()] == [((1, 1), "lab-a/3/output.xml")]
    assert layout.cells[1, 1].tests == 3
    reasons = [(layout.cells[place].state, layout.cells[place].reason) for place in ((2, 2), (2, 1))]
    assert reasons == [(NOT_RUN, "no sample"), (CellState.FAILED, "no traffic at hop 2")]
    assert layouts(rows, lambda one: one.verdicts == "other") == []


def served(instance: int, forwarded_pps: float, loss_ratio: float, number: str = "NDR") -> columns.InstanceRow:
    return columns.InstanceRow(
        anchor="a", test_name="t", number=number, load_pps=400.0, trials=1, instance=instance, direction="forward",
        sent=100, received=90, offered_pps=100.0, forwarded_pps=forwarded_pps, loss_ratio=loss_ratio, worst=False,
        fairness=0.9, verdict="measured",
    )  # fmt: skip


def test_rates_of_an_instance_are_of_both_directions_together() -> None:
    rows = [served(2, 70, 0.3), served(2, 60, 0.4), served(1, 90, 0.1), served(1, 100, 0.0), served(1, 5, 0.9, "PDR")]
    ndr, pdr = fairness_of(rows).values()
    assert (ndr.number, ndr.load_pps, ndr.index, ndr.worst_loss_ratio) == ("NDR", 400, 0.9, 0.4)
    assert (ndr.rates_pps, ndr.lowest, ndr.highest) == (((1, 190), (2, 130)), (2, 130), (1, 190))
    assert ndr.ratio == pytest.approx(130 / 190)
    assert (pdr.number, pdr.ratio, fairness_of([served(1, 0, 1)])["NDR"].ratio) == ("PDR", 1, None)


def test_service_types_are_held_against_csc_or_the_first_with_a_figure() -> None:
    def of(**cells: MatrixCell) -> list[Matrix]:
        return [matrix({(1, 1): one}, service_type=kind) for kind, one in cells.items()]

    (found,) = ratios(of(VSC=cell(50), CSC=cell(100), CSP=replace(cell(300), oversubscribed=True)))
    assert (found.base, found.oversubscribed, found.share("CSP"), found.share("VSC")) == ("CSC", True, 3, 0.5)
    limit = replace(cell(100, AT_LEAST), oversubscribed=True)
    (found,) = ratios(of(VSC=cell(50), CSC=limit, CSP=cell(75)))
    assert (found.base, found.oversubscribed, found.share("CSP"), found.share("CSC")) == ("VSC", False, 1.5, None)
    assert ratios(of(VSC=cell(50), CSC=limit)) == []


def test_an_ndr_far_below_mrr_is_a_finding_and_a_noisy_or_limited_one_is_none() -> None:
    def said(ndr: MatrixCell, mrr: MatrixCell) -> tuple[str, ...]:
        found = [matrix({(1, 1): cell(100), (4, 2): ndr}), matrix({(1, 1): cell(101), (4, 2): mrr}, columns.MRR)]
        return rare_losses(found, {found[0].series: "VSC"})

    (text,) = said(cell(7e4, BELOW, upper=1.0), cell(4e6))
    assert all(part in text for part in ("VSC", "1 of 2", "4x2 below 70.0 kpps of 4.00 Mpps"))
    assert said(cell(1.9e6), cell(4e6))
    assert not said(cell(1.9e6), cell(4e6, noise_pps=1e5))
    for ndr in (cell(2e6), cell(1e6, AT_LEAST), cell(None, NOT_RUN)):
        assert not said(ndr, cell(4e6))
