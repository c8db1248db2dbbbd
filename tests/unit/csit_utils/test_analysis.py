"""Matrices, series, runs and percentiles against numbers worked out by hand."""

import base64
import zlib
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.analysis.cells import figure, when
from csit_utils.analysis.comparisons.comparison import interval
from csit_utils.analysis.grouping import (
    ThroughputBounds,
    all_series,
    asks_for,
    belongs,
    bounds,
    error_of,
    per_core,
    series_of,
    system_of,
)
from csit_utils.analysis.latency import curve, merge, percentiles
from csit_utils.analysis.runs import SideKind, history
from csit_utils.dataset.items import Status, Unrecorded
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import MEASURES, MRR, NDR, ORR, PDR, SOAK
from csit_utils.studies.density.analysis.density import CellState, matrices, short, verdict_of
from csit_utils.studies.density.analysis.summary import changes
from resources.libraries.python.model.request.goal import GoalResult
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.result import Finding, ReceiveRate, Verdict, VerdictKind
from tests.loaded import rows_of_tests
from tests.unit.csit_utils.builders import IMIX, does_not_fit, mrr_result, result
from tests.unit.csit_utils.builders import NDR as NDR_GOAL
from tests.unit.csit_utils.builders import PDR as PDR_GOAL
from tests.unit.csit_utils.datasets import CSC, CSP, dataset_of, latency_test, plain
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
    (change,) = changes([matrix])
    assert (change.ratio, change.resolved) == (None, True), "between limits there is a direction and no number"


@pytest.mark.parametrize(("rate", "resolved"), [(100.5e3, False), (90e3, True)])
def test_mrr_changes_by_more_than_its_noise(rate: float, *, resolved: bool) -> None:
    mean = mrr_result(CSC, 1, 1).mrr
    rates = [mean.model_copy(update={"mean_pps": each, "stdev_pps": 1e3}) for each in (100e3, rate)]
    rows = rows_of_tests(dataset_of(*(mrr_result(CSC, n, 1, mrr=each) for n, each in enumerate(rates, 1))))
    (change,) = changes(matrices(rows, all_series(rows)[0]))
    assert change.resolved is resolved


def test_a_rate_at_overload_is_of_the_tests_of_mrr() -> None:
    """It is measured where a search begins below the load of MRR; a search does not ask for it."""
    orr = ReceiveRate(offered_pps=1e6, receive_rates_pps=(4e5,), mean_pps=4e5, stdev_pps=None)
    rows = rows_of_tests(dataset_of(mrr_result(CSC, 1, 1, orr=orr), plain(2, 1, 1e5)))
    found = {each.metric: each for each in matrices(rows, all_series(rows)[0])}
    assert found[ORR].cells[1, 1].value_pps == pytest.approx(4e5)
    assert found[ORR].cells[2, 1].state is CellState.NOT_RUN
    (failed,) = rows_of_tests(dataset_of(mrr_result(CSC, 1, 1, orr=orr, passed=False, message="the card is gone")))
    assert asks_for(failed, ORR), "so its message says why there is none"
    assert not asks_for(rows[1], ORR)
    (without,) = rows_of_tests(dataset_of(mrr_result(CSC, 1, 1)))
    assert not asks_for(without, ORR), "its search begins at the load of MRR"


def test_a_test_without_a_place_is_in_no_cell() -> None:
    rows = rows_of_tests(dataset_of(plain(1, 1, 2e5), plain(2, 1, 1e5)))
    for gone in ({"nf_nodes": None}, {"nf_chains": None}):
        (matrix, *_) = matrices([rows[0], replace(rows[1], **gone)], all_series(rows)[0])
        assert set(matrix.cells) == {(1, 1)}


def test_runs_of_one_cell_are_averaged_with_their_spread() -> None:
    runs = [plain(1, 1, rate, started_at=f"2026-11-2{day}T00:00:00Z") for day, rate in enumerate((90e3, 100e3, 110e3))]
    rows = rows_of_tests(dataset_of(*runs))
    cell = matrices(rows, all_series(rows)[0])[0].cells[1, 1]
    assert (cell.value_pps, cell.spread_pps, len(cell.runs)) == (pytest.approx(100e3), pytest.approx(10e3), 3)


def test_a_latency_test_stands_in_where_pdr_was_not_requested() -> None:
    later = {"started_at": "2026-11-21T00:00:00Z", "ndr": None}
    latency = [latency_test(plain(chains, 1, 50e3), **later) for chains in (1, 2)]
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


def test_percentiles_agree_with_the_histogram_itself() -> None:
    made = _histogram(*range(1, 10_001))
    found = percentiles(merge([made.encode().decode()]))
    own = (found.p50_ns, found.p90_ns, found.p99_ns, found.p999_ns)
    assert own == tuple(map(made.get_value_at_percentile, (50, 90, 99, 99.9)))


def test_a_curve_ends_where_its_samples_end() -> None:
    found = curve(merge([_histogram(*[100] * 90, *[200] * 9, 300).encode().decode()]))
    assert (found.quantiles[0], found.quantiles[-1], found.values_ns[-1]) == (0, 1, 300)
    assert max(quantile for quantile in found.quantiles if quantile < 1) <= 0.99
    assert dict(zip(found.quantiles, found.values_ns, strict=True))[0.9] == 100, "90 of 100 do not exceed 100"


def test_histograms_are_merged_and_bad_ones_left_out() -> None:
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
        ((100.0, 110.0, True, 50.0), ThroughputBounds(100.0, 110.0, True)),
        ((100.0, 110.0, False, 50.0), ThroughputBounds(100.0, 110.0, False)),
        ((100.0, None, True, 50.0), ThroughputBounds(100.0, None, True)),  # nothing above could be offered
        ((100.0, None, None, None), ThroughputBounds(100.0, 100.0, True)),  # a tool that gives figures only
        ((100.0, 110.0, None, None), ThroughputBounds(100.0, 110.0, True)),
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


def test_a_receive_rate_is_both_bounds_with_the_standard_error_of_its_trials() -> None:
    mrr = row(1e6, mrr_pps=9e5, mrr_stdev_pps=300.0, mrr_trials=9, orr_pps=8e5, orr_stdev_pps=100.0, orr_trials=4)
    assert bounds(mrr, MRR) == ThroughputBounds(9e5, 9e5, True)
    assert bounds(mrr, ORR) == ThroughputBounds(8e5, 8e5, True)
    assert [error_of(mrr, metric) for metric in (MRR, ORR, NDR)] == [100.0, 50.0, 0.0]


def test_a_figure_has_the_bounds_that_its_measure_names(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [f"ndr_predicted_{part}pps" for part in ("", "low_", "high_")]
    predicted = Measure("predicted", goal="NDR", lower_bound=columns[1], upper_bound=columns[2])
    monkeypatch.setitem(MEASURES, predicted, columns[0])
    rows = [row(1e6, **dict(zip(columns, values, strict=True))) for values in ((2.0, 1.0, 4.0), (2.0, 1.0, None))]
    found = [figure(each, predicted) for each in rows]
    assert [interval(each, predicted) for each in found if each is not None] == [(1.0, 4.0), (1.0, inf)]
    assert figure(row(1e6), predicted) is None


def test_bandwidth_counts_both_layers_and_throughput_per_data_core_needs_both() -> None:
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


def test_series_are_in_the_order_of_their_numbers_of_cores() -> None:
    sizes = ["", "0.5c", "1c", "1c-2c", "2c", "10c"]
    assert [series.nf_size for series in all_series(row(1e6, nf_size=size) for size in sizes[::-1])] == sizes
    cores = [None, 1, 2, 10]
    assert [series.vs_dtc for series in all_series(row(1e6, vs_dtc=count) for count in cores[::-1])] == cores


def test_a_run_is_called_by_testbed_and_day_and_runs_are_in_the_order_of_time() -> None:
    found = history([row(1e6, night, testbed) for night in (2, 0, 1) for testbed in ("lab-b", "lab-a")])
    assert [run.name for run in found.of(found.testbeds[0])] == [f"lab-a 2026-11-0{day}" for day in (1, 2, 3)]
    assert [one.name for one in found.testbeds] == ["lab-a", "lab-b"]
    assert found.latest(found.testbeds[1]).name == "lab-b 2026-11-03"
    assert found.previous(found.testbeds[1]).name == "lab-b 2026-11-02"


def test_a_label_is_the_name_and_two_runs_of_one_name_show_their_time() -> None:
    again = row(1e6, 1, run="again.xml", started_at="2026-11-02T23:30:00Z")
    names = [run.name for run in history([row(1e6, 0, label="26.10"), row(1e6, 1), again]).runs]
    assert names == ["lab-a 26.10", "lab-a 2026-11-02 22:11:00", "lab-a 2026-11-02 23:30:00"]


def test_a_test_without_a_record_is_of_the_testbed_of_its_run() -> None:
    lost = replace(row(None), testbed=None, simulated=None, world=None, started_at=None, recorded=False)
    (run,) = history([row(1e6), lost]).runs
    assert len(run.rows) == 2
    elsewhere = row(1e6, testbed="lab-b", run=row(1e6).run)
    assert [len(run.rows) for run in history([row(1e6), elsewhere, lost]).runs] == [1, 1]


def test_simulated_and_measured_runs_are_never_of_one_testbed() -> None:
    found = history([row(1e6), row(1e6, 1, simulated=True)])
    assert [(one.name, one.simulated) for one in found.testbeds] == [("lab-a", False), ("lab-a", True)]
    assert found.previous(found.testbeds[0]) is None


def test_what_can_be_compared_are_testbeds_releases_and_runs() -> None:
    old = [row(1e6, night, label="26.06", version="VPP 26.06") for night in (0, 1)]
    new = [row(1e6, night, version="VPP 26.10") for night in (2, 3)]
    found = history([*old, *new])
    assert [(side.kind, side.name, side.runs) for side in found.sides] == [
        (SideKind.TESTBED, "lab-a, all runs", found.runs),
        (SideKind.LABEL, "lab-a 26.06, all runs", found.runs[:2]),
        (SideKind.VERSION, "lab-a VPP 26.10, all runs", found.runs[2:]),
        (SideKind.VERSION, "lab-a VPP 26.06, all runs", found.runs[:2]),
        *((SideKind.RUN, run.name, (run,)) for run in reversed(found.runs)),
    ]


def test_times_of_any_zone_and_none() -> None:
    rows = [row(1e6, run="x", started_at="2026-11-02T01:00:00+05:00"), row(1e6, run="y", started_at="tomorrow")]
    assert [run.name for run in history(rows).runs] == ["lab-a undated", "lab-a 2026-11-01"]
