"""Normalized throughput with its interval, and estimates that share errors: against figures of the paper and scipy."""

from statistics import fmean

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import t as student
from scipy.stats import ttest_ind

from resources.libraries.python.studies.interference.analysis import estimates
from resources.libraries.python.studies.interference.analysis.matrix import degradation
from tests.unit.studies.interference.measurements import measurement, normalized


@pytest.mark.parametrize(("alone", "beside", "change"), [(955, 615.88, -0.3551), (169, 103.99, -0.3847)])
def test_snort_and_pktstat_of_table_1(alone: float, beside: float, change: float) -> None:
    (row,) = normalized([measurement("one", (), alone), measurement("one", ("other",), beside)])
    assert -degradation(row.mean) == pytest.approx(change, abs=5e-5)
    assert (row.samples, row.stdev, row.low) == (1, None, None)


def _interval(above: list[float], below: list[float]) -> tuple[float, float] | None:
    return estimates.ratio_interval(estimates.mean_of(above), estimates.mean_of(below))


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
    above, below = estimates.mean_of([60.0, 63, 58, 66, 61, 64]), estimates.mean_of([100.0, 70, 130, 95])
    plain = estimates.ratio_interval(above, below)
    shared = estimates.ratio_interval(estimates.average([above, below]), below)
    assert plain is not None and shared is not None
    assert [2 * end - 1 for end in shared] == pytest.approx(plain)


@given(st.lists(st.floats(50, 150), min_size=2, max_size=9), st.lists(st.floats(50, 150), min_size=2, max_size=9))
def test_a_difference_has_the_p_value_of_welchs_test(one: list[float], other: list[float]) -> None:
    assume(min(np.ptp(one), np.ptp(other)) > 1e-3)
    found = estimates.difference(estimates.mean_of(one), estimates.mean_of(other)).p_value()
    assert found == pytest.approx(float(ttest_ind(one, other, equal_var=False).pvalue), abs=1e-5)


def test_the_deviation_is_that_of_the_throughput_beside_others_over_the_mean_alone() -> None:
    alone = [measurement("A", (), pps) for pps in (15.0, 25.0)]
    (three,) = normalized([*alone, *(measurement("A", ("B",), pps) for pps in (8.0, 10.0, 12.0))])
    assert (three.mean, three.stdev, three.samples) == (0.5, pytest.approx(0.1), 3)
    (two,) = normalized([*alone, *(measurement("A", ("B",), pps) for pps in (8.0, 12.0))])
    assert two.stdev == pytest.approx(0.2 / 2**0.5)
    assert not normalized([measurement("A", ("B",), 10), measurement("B", (), 0.0), measurement("B", ("A",), 1)])


def test_values_have_an_interval_where_they_are_several_and_not_wild() -> None:
    assert _interval([5, 5], [10, 10]) == (0.5, 0.5)
    assert _interval([5], [10, 10]) is None
    assert _interval([5, 6], [1, 200]) is None
    assert estimates.mean_of([5.0]).interval() is None and estimates.mean_of([5.0]).p_value() is None
    assert estimates.exact(0.5).interval() == (0.5, 0.5)
    alone, beside = estimates.mean_of([90.0, 110.0, 100.0]), estimates.mean_of([50.0, 50.0])
    twice = estimates.difference(estimates.ratio(beside, alone), estimates.ratio(beside, alone))
    assert twice.interval() == (0, 0) and twice.p_value() == 1.0


def test_holms_procedure_goes_on_while_it_rejects_and_then_stops() -> None:
    """Three means an equal error apart from each other: the largest difference is tested at a third of 5 %."""

    def means(*values: float) -> dict[str, estimates.SampledEstimate]:
        rows = ([each - 0.01, each, each + 0.01] for each in values)
        return dict(zip("ABC", map(estimates.mean_of, rows), strict=True))

    assert estimates.told_apart(means(0.50, 0.50, 0.50)) == frozenset()
    assert estimates.told_apart(means(0.50, 0.51, 0.90)) == {("A", "C"), ("B", "C")}
    # p = 0.021 and 0.021 for neighbours 0.03 apart: more than a third, as much as a half, less than all of 5 %.
    assert estimates.told_apart(means(0.50, 0.53, 0.90)) == {("A", "C"), ("B", "C"), ("A", "B")}
    assert estimates.told_apart({"A": estimates.mean_of([0.5]), "B": estimates.mean_of([0.9])}) is None
