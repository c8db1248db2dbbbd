"""Normalized throughput with its interval, and estimates that share errors: against figures of the paper and scipy."""

from statistics import fmean

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import t as student
from scipy.stats import ttest_ind

from resources.libraries.python.studies.interference.analysis.estimates import (
    SampledEstimate,
    average,
    difference,
    exact,
    mean_of,
    ratio,
    ratio_interval,
    told_apart,
)
from resources.libraries.python.studies.interference.analysis.matrix import degradation
from resources.libraries.python.studies.interference.analysis.tables import by_frame_and_load
from resources.libraries.python.studies.interference.model.record import Interference
from tests.unit.studies.interference.measurements import measured, measurement, normalized, spec_of


@pytest.mark.parametrize(("alone", "beside", "change"), [(955, 615.88, -0.3551), (169, 103.99, -0.3847)])
def test_snort_and_pktstat_of_table_1(alone: float, beside: float, change: float) -> None:
    (row,) = normalized([measurement("one", (), alone), measurement("one", ("other",), beside)])
    assert -degradation(row.mean) == pytest.approx(change, abs=5e-5)
    assert (row.samples, row.stdev, row.low) == (1, None, None)


def test_a_target_without_a_baseline_has_no_row() -> None:
    assert not normalized([measurement("A", ("B",), 10), measurement("B", (), 0.0), measurement("B", ("A",), 1)])


@pytest.mark.slow
def test_the_interval_of_a_ratio_has_the_truth_in_19_of_20_cases() -> None:
    draw = np.random.default_rng(7)
    inside = 0
    for _ in range(300):
        ends = _interval(list(draw.normal(61.5, 3, 6)), list(draw.normal(100, 8, 6)))
        inside += ends is not None and ends[0] <= 0.615 <= ends[1]
    assert inside == pytest.approx(285, abs=10)


def _interval(above: list[float], below: list[float]) -> tuple[float, float] | None:
    return ratio_interval(mean_of(above), mean_of(below))


def test_an_end_of_the_interval_is_where_welchs_test_would_just_refuse() -> None:
    """Fieller's theorem: a ratio is inside when `above` and `ratio * below` are not told apart."""
    above, below = [60.0, 63, 58, 66, 61, 64], [100.0, 94, 108, 99, 103, 96]
    ends = _interval(above, below)
    assert ends is not None
    for end in ends:
        pvalue = ttest_ind(above, [end * value for value in below], equal_var=False).pvalue
        assert pvalue == pytest.approx(0.05, abs=0.004)  # degrees of freedom are those at the mean ratio


def test_the_ends_of_the_interval_are_the_roots_of_fiellers_equation() -> None:
    """With the degrees of freedom of Welch at the ratio of the means."""
    above, below = [60.0, 63, 58, 66, 61, 64], [100.0, 70, 130, 95]
    ends, found = _interval(above, below), fmean(above) / fmean(below)
    assert ends is not None
    freedom = ttest_ind(above, [found * value for value in below], equal_var=False).df
    for end in ends:
        error = np.sqrt(np.var(above, ddof=1) / 6 + end**2 * np.var(below, ddof=1) / 4)
        assert abs(fmean(above) - end * fmean(below)) == pytest.approx(float(student.isf(0.025, freedom)) * error)


def test_a_ratio_of_sums_with_a_shared_sample_has_the_interval_of_the_ratio_without_it() -> None:
    """(b + a) / a = b / a + 1: an error that both share is not counted twice."""
    above, below = mean_of([60.0, 63, 58, 66, 61, 64]), mean_of([100.0, 70, 130, 95])
    plain = ratio_interval(above, below)
    shared = ratio_interval(average([above, below]), below)
    assert plain is not None and shared is not None
    assert [2 * end - 1 for end in shared] == pytest.approx(plain)


@given(st.lists(st.floats(50, 150), min_size=2, max_size=9), st.lists(st.floats(50, 150), min_size=2, max_size=9))
def test_a_difference_has_the_p_value_of_welchs_test(one: list[float], other: list[float]) -> None:
    assume(min(np.ptp(one), np.ptp(other)) > 1e-3)
    found = difference(mean_of(one), mean_of(other)).p_value()
    assert found == pytest.approx(float(ttest_ind(one, other, equal_var=False).pvalue), abs=1e-5)


def test_errors_that_are_shared_cancel_in_a_difference() -> None:
    alone, beside = mean_of([90.0, 110.0, 100.0]), mean_of([50.0, 50.0])
    twice = difference(ratio(beside, alone), ratio(beside, alone))
    assert twice.interval() == (0, 0) and twice.p_value() == 1.0


def test_the_deviation_is_that_of_the_throughput_beside_others_over_the_mean_alone() -> None:
    alone = [measurement("A", (), pps) for pps in (15.0, 25.0)]
    (three,) = normalized([*alone, *(measurement("A", ("B",), pps) for pps in (8.0, 10.0, 12.0))])
    assert (three.mean, three.stdev, three.samples) == (0.5, pytest.approx(0.1), 3)
    (two,) = normalized([*alone, *(measurement("A", ("B",), pps) for pps in (8.0, 12.0))])
    assert two.stdev == pytest.approx(0.2 / 2**0.5)


def test_equal_values_have_no_width_and_single_or_wild_ones_no_interval() -> None:
    assert _interval([5, 5], [10, 10]) == (0.5, 0.5)
    assert _interval([5], [10, 10]) is None
    assert _interval([5, 6], [1, 200]) is None
    assert mean_of([5.0]).interval() is None and mean_of([5.0]).p_value() is None
    assert exact(0.5).interval() == (0.5, 0.5)


def test_holms_procedure_goes_on_while_it_rejects_and_then_stops() -> None:
    """Three means an equal error apart from each other: the largest difference is tested at a third of 5 %."""

    def estimates(*values: float) -> dict[str, SampledEstimate]:
        return {name: mean_of([each - 0.01, each, each + 0.01]) for name, each in zip("ABC", values, strict=True)}

    assert told_apart(estimates(0.50, 0.50, 0.50)) == frozenset()
    assert told_apart(estimates(0.50, 0.51, 0.90)) == {("A", "C"), ("B", "C")}
    # p = 0.021 and 0.021 for neighbours 0.03 apart: more than a third, as much as a half, less than all of 5 %.
    assert told_apart(estimates(0.50, 0.53, 0.90)) == {("A", "C"), ("B", "C"), ("A", "B")}
    assert told_apart({"A": mean_of([0.5]), "B": mean_of([0.9])}) is None


def test_a_sweep_has_a_point_for_each_frame_and_load() -> None:
    def study(frame: str, load_pps: float, share: float) -> Interference:
        measurements = measured(
            {"A": 10.0, "B": 10.0}, {("A", ("B",)): share, ("B", ("A",)): 0.9}, load_pps=load_pps, frame=frame
        )
        frames = spec_of("A", "B").frame.model_copy(update={"name": frame})
        return Interference(
            spec=spec_of("A", "B", frame=frames), measurements=tuple(measurements), matrix=(), asked=len(measurements)
        )

    found = by_frame_and_load([study("64B", 2e5, 0.5), study("64B", 1e5, 0.7), study("512B", 1e5, 0.95)])
    assert [(point.frame.name, point.load_pps) for point in found] == [("64B", 1e5), ("64B", 2e5), ("512B", 1e5)]
    assert [point.findings and point.findings.degradation.value for point in found] == pytest.approx([0.2, 0.3, 0.075])
