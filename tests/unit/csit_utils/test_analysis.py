"""Matrices, ratios, fairness and percentiles against numbers worked out by hand."""

import base64
import zlib
from dataclasses import replace

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.analysis.cells import when
from csit_utils.analysis.grouping import all_series, asks_for
from csit_utils.analysis.latency import curve, merge, percentiles
from csit_utils.analysis.verdicts import short, verdict_of
from csit_utils.dataset import rows as columns
from csit_utils.dataset.items import Status, Unrecorded
from csit_utils.dataset.rows import ORR, frame_text
from csit_utils.studies.density.analysis.density import CellState, matrices
from csit_utils.studies.density.analysis.summary import changes
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.goal import GoalResult
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.result import Finding, ReceiveRate, Verdict, VerdictKind
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.loaded import rows_of_tests
from tests.unit.csit_utils.builders import IMIX, NDR, PDR, does_not_fit, mrr_result, result
from tests.unit.csit_utils.datasets import CSC, CSP, dataset_of, plain


def test_the_matrix_has_values_relations_and_reasons() -> None:
    failed = Unrecorded("S.t", "t", ("CSC", "2R2C", "64B", "NDRPDR"), "output.xml", Status.FAIL, "nf-2-1 is down")
    made = dataset_of(plain(1, 1, 200e3), plain(2, 1, 150e3), does_not_fit(CSC, 4, 2), unrecorded=(failed,))
    rows = rows_of_tests(made)
    (series,) = all_series(rows)
    ndr, pdr = matrices(rows, series)
    assert (ndr.metric, pdr.metric) == (columns.NDR, columns.PDR)
    assert (ndr.chains, ndr.nodes) == ((1, 2, 4), (1, 2))
    assert ndr.cells[1, 1].value_pps == 200e3
    assert ndr.cells[2, 1].relative == pytest.approx(0.75)
    states = {place: cell.state for place, cell in ndr.cells.items() if cell.value_pps is None}
    assert states == {
        (1, 2): CellState.NOT_RUN,
        (2, 2): CellState.FAILED,
        (4, 1): CellState.NOT_RUN,
        (4, 2): CellState.DOES_NOT_FIT,
    }
    assert ndr.cells[2, 2].reason == "nf-2-1 is down"
    assert ndr.cells[4, 2].reason == "needs 33 cores on NUMA 0, 28 available"


def test_limits_are_not_values() -> None:
    no_upper = GoalResult(goal=NDR, lower_pps=9e5, upper_pps=None, throughput_pps=None, complete=False)
    no_lower = GoalResult(
        goal=NDR, lower_pps=None, upper_pps=None, throughput_pps=None, complete=False, lowest_tried_pps=1e4
    )
    rows = rows_of_tests(
        dataset_of(result(CSC, 1, 1, histograms=False, ndr=no_upper), result(CSC, 2, 1, histograms=False, ndr=no_lower))
    )
    matrix = matrices(rows, all_series(rows)[0])[0]
    assert (matrix.cells[1, 1].state, matrix.cells[1, 1].value_pps) == (CellState.AT_LEAST, 9e5)
    assert (matrix.cells[2, 1].state, matrix.cells[2, 1].value_pps) == (CellState.BELOW, 1e4)
    assert matrix.cells[2, 1].relative is None
    (change,) = changes([matrix])
    assert change.ratio is None, "between limits there is a direction and no number"
    assert change.resolved


def test_mrr_changes_by_more_than_its_noise() -> None:
    rates = {1: 100e3, 2: 100.5e3, 4: 90e3}
    base = mrr_result(CSC, 1, 1).mrr

    def made(chains: int) -> DensityRecord:
        found = base.model_copy(update={"mean_pps": rates[chains], "stdev_pps": 1e3})
        return mrr_result(CSC, chains, 1, mrr=found)

    for chains, resolved in ((2, False), (4, True)):
        rows = rows_of_tests(dataset_of(made(1), made(chains)))
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


def test_what_a_failed_test_found_is_not_shown() -> None:
    made = dataset_of(plain(1, 1, 2e5), plain(2, 1, 1e5, passed=False, message="clean-up failed"))
    rows = rows_of_tests(made)
    matrix = matrices(rows, all_series(rows)[0])[0]
    assert matrix.cells[2, 1].state is CellState.FAILED
    assert matrix.cells[2, 1].reason == "clean-up failed"


def test_runs_of_one_cell_are_averaged_with_their_spread() -> None:
    runs = [plain(1, 1, rate, started_at=f"2026-11-2{day}T00:00:00Z") for day, rate in enumerate((90e3, 100e3, 110e3))]
    rows = rows_of_tests(dataset_of(*runs))
    cell = matrices(rows, all_series(rows)[0])[0].cells[1, 1]
    assert cell.value_pps == pytest.approx(100e3)
    assert cell.spread_pps == pytest.approx(10e3)
    assert len(cell.runs) == 3


def test_a_latency_test_stands_in_where_pdr_was_not_requested() -> None:
    def latency(chains: int) -> DensityRecord:
        base = plain(chains, 1, 50e3, started_at="2026-11-21T00:00:00Z")
        return base.model_copy(
            update={"asked": base.asked.model_copy(update={"test_type": TestType.LATENCY}), "ndr": None}
        )

    rows = rows_of_tests(dataset_of(plain(1, 1, 100e3), latency(1), latency(2)))
    pdr = matrices(rows, all_series(rows)[0])[1]
    assert (pdr.cells[1, 1].value_pps, pdr.cells[2, 1].value_pps) == (100e3, 50e3)


def test_unlike_things_never_share_a_matrix() -> None:
    other_goal = PDR.model_copy(update={"loss_ratio": 0.001})
    base = result(CSC, 1, 1, histograms=False)
    profile = base.asked.profile.model_copy(update={"goals": (NDR, other_goal)})
    variants = [
        base,
        result(CSC, 1, 1, histograms=False, simulated=True),
        result(CSC, 1, 1, frame=IMIX, histograms=False),
        result(CSC, 1, 1, size=NfSize.HALF, histograms=False),
        result(CSC, 1, 1, vs_dtc=2, histograms=False),
        result(CSP, 1, 1, histograms=False),
        result(CSC, 1, 1, histograms=False, testbed="other"),
        result(CSC, 1, 1, histograms=False, drivers={"generator": "ring", "vswitch": "ovs"}),
        result(CSC, 1, 1, histograms=False, asked=base.asked.model_copy(update={"profile": profile})),
    ]
    series = all_series(rows_of_tests(dataset_of(*variants)))
    assert len(series) == len(variants)
    assert [one.system.simulated for one in series] == sorted(one.system.simulated for one in series)


def test_bandwidth_counts_both_layers() -> None:
    (row,) = rows_of_tests(dataset_of(plain(1, 1, 1e6)))
    assert row.ndr_l2_bps == pytest.approx(64 * 8 * 1e6)
    assert row.ndr_l1_bps == pytest.approx(84 * 8 * 1e6)
    assert frame_text(IMIX) == "IMIX (7x64, 4x570, 1x1518)"


def test_each_number_has_its_own_verdict() -> None:
    found = Verdict(
        kinds=(VerdictKind.GENERATOR_BOUND, VerdictKind.OVERSUBSCRIBED, VerdictKind.VSWITCH_BOUND),
        evidence=("a", "b", "c"),
        findings=(
            Finding(kind=VerdictKind.GENERATOR_BOUND, text="a", numbers=("PDR",)),
            Finding(kind=VerdictKind.OVERSUBSCRIBED, text="b"),
            Finding(kind=VerdictKind.VSWITCH_BOUND, text="c", numbers=("NDR",)),
        ),
    )
    (row,) = rows_of_tests(dataset_of(plain(1, 1, 2e5, verdict=found)))
    assert verdict_of(row, columns.NDR) == ("oversubscribed", "vswitch-bound")
    assert verdict_of(row, columns.PDR) == ("generator-bound", "oversubscribed")
    assert short(verdict_of(row, columns.NDR)) == "vSwitch"
    assert short(["oversubscribed"]) == "shared"
    assert found.evidence_of("PDR") == ("a", "b")


def _histogram(*values: int) -> HdrHistogram:
    made = HdrHistogram(1, 10_000_000_000, 3)
    for value in values:
        made.record_value(value)
    return made


def test_percentiles_agree_with_the_histogram_itself() -> None:
    made = _histogram(*range(1, 10_001))
    decoded = merge([made.encode().decode()])
    assert decoded is not None
    found = percentiles(decoded)
    assert found.count == 10_000
    for ours, at in ((found.p50_ns, 50), (found.p90_ns, 90), (found.p99_ns, 99), (found.p999_ns, 99.9)):
        assert ours == made.get_value_at_percentile(at)
    assert (found.min_ns, found.max_ns) == (made.get_min_value(), made.get_max_value())


@given(st.lists(st.lists(st.integers(0, 10**10), min_size=1, max_size=20), min_size=1, max_size=4), st.booleans())
def test_a_sum_of_histograms_agrees_with_the_library(several: list[list[int]], alike: bool) -> None:
    made = [HdrHistogram(1, 10**10, 3 if alike or number % 2 == 0 else 2) for number in range(len(several))]
    whole = HdrHistogram(1, 10**10, 3)
    for histogram, values in zip(made, several, strict=True):
        for value in values:
            histogram.record_value(value)
        whole.add(histogram)
    merged = merge([each.encode().decode() for each in made])
    assert merged is not None
    found = percentiles(merged)
    assert (found.count, found.min_ns) == (whole.get_total_count(), whole.get_min_value())
    assert found.max_ns == whole.get_max_value()


def test_a_curve_ends_where_its_samples_end() -> None:
    decoded = merge([_histogram(*[100] * 90, *[200] * 9, 300).encode().decode()])
    assert decoded is not None
    found = curve(decoded)
    assert found.quantiles[0] == 0
    assert found.quantiles[-1] == 1
    assert max(quantile for quantile in found.quantiles if quantile < 1) <= 0.99
    assert found.values_ns[-1] == 300
    assert dict(zip(found.quantiles, found.values_ns, strict=True))[0.9] == 100, "90 of 100 do not exceed 100"


def test_histograms_are_merged_and_bad_ones_left_out() -> None:
    one, other = _histogram(10, 20).encode().decode(), _histogram(30).encode().decode()
    bomb = base64.b64encode(b"\x1c\x84\x93\x14\x00\x00\x40\x00" + zlib.compress(bytes(40_000_000))).decode()
    merged = merge([one, "!!", "", bomb, other[:20], other])
    assert merged is not None
    assert percentiles(merged).count == 3
    assert merge(["nonsense"]) is None
    assert merge([_histogram().encode().decode()]) is None


@pytest.mark.parametrize("begun", [None, "", "zzz", "0001-01-01T00:00:00+14:00"])
def test_a_test_whose_start_is_no_time_sorts_before_all_others(begun: str | None) -> None:
    (dated,) = rows_of_tests(dataset_of(plain(1, 1, 90e3)))
    assert when(replace(dated, started_at=begun)) < when(dated)
