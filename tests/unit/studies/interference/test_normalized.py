"""Normalized throughput with its interval, and what is read from the matrix: with the figures of Zeng et al."""

from statistics import fmean

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_ind

from resources.libraries.python.studies.interference.analysis.matrix import (
    aggressiveness,
    degradation,
    lowest,
    network_share,
    normalized,
    ratio_interval,
    sensitivity,
)
from resources.libraries.python.studies.interference.analysis.tables import by_frame_and_load
from resources.libraries.python.studies.interference.model.record import Interference
from tests.unit.studies.interference.measurements import every_pair, matrix_of, measured, measurement, spec_of

TABLE_3 = {"I": 0.8764, "II": 0.4969, "III": 0.6407, "IV": 0.6478, "V": 0.6114}


@pytest.mark.parametrize(("alone", "beside", "change"), [(955, 615.88, -0.3551), (169, 103.99, -0.3847)])
def test_snort_and_pktstat_of_table_1(alone: float, beside: float, change: float) -> None:
    (row,) = normalized([measurement("one", (), alone), measurement("one", ("other",), beside)])
    assert -degradation(row.mean) == pytest.approx(change, abs=5e-5)
    assert (row.samples, row.stdev, row.low) == (1, None, None)


def test_rows_of_table_3_name_the_most_sensitive_type() -> None:
    """Any matrix with these row means gives the paper's degradations, 12.36 to 50.31 %."""
    spread = (-0.05, -0.02, 0.0, 0.03, 0.04)
    pairs = {
        (target, other): mean + off
        for target, mean in TABLE_3.items()
        for other, off in zip(TABLE_3, spread, strict=True)
    }
    rows = sensitivity(matrix_of(pairs))
    assert rows == pytest.approx(TABLE_3)
    assert lowest(rows) == "II"
    assert sorted(round(100 * degradation(mean), 2) for mean in rows.values())[:: len(rows) - 1] == [12.36, 50.31]


def test_rows_are_sensitivity_and_columns_are_aggressiveness() -> None:
    pairs = every_pair("ABC", 1)
    matrix = matrix_of(pairs)
    assert sensitivity(matrix)["B"] == pytest.approx(fmean(pairs["B", other] for other in "ABC"))
    assert aggressiveness(matrix)["B"] == pytest.approx(fmean(pairs[target, "B"] for target in "ABC"))
    assert lowest({}) is None


def test_combinations_of_three_are_in_the_matrix_and_not_in_its_means() -> None:
    found = normalized(measured({"A": 10.0}, {("A", ("A",)): 0.5, ("A", ("A", "A")): 0.1}))
    assert [row.mean for row in found] == pytest.approx([0.5, 0.1])
    assert sensitivity(found) == {"A": pytest.approx(0.5)}


def test_a_target_without_a_baseline_has_no_row() -> None:
    assert not normalized([measurement("A", ("B",), 10), measurement("B", (), 0.0), measurement("B", ("A",), 1)])


def test_half_of_the_degradation_from_the_network() -> None:
    """As the paper found it: the guarantee gives half of the loss back."""
    plain = every_pair("AB", 2)
    better = {pair: mean + (1 - mean) / 2 for pair, mean in plain.items()}
    assert network_share(matrix_of(plain), matrix_of(better)) == pytest.approx(0.5)
    assert network_share(matrix_of(plain), ()) is None
    assert network_share(matrix_of({("A", "A"): 1.0}), matrix_of({("A", "A"): 1.0})) is None


def test_the_interval_of_a_ratio_has_the_truth_in_19_of_20_cases() -> None:
    draw = np.random.default_rng(7)
    inside = 0
    for _ in range(300):
        ends = ratio_interval(list(draw.normal(61.5, 3, 6)), list(draw.normal(100, 8, 6)))
        inside += ends is not None and ends[0] <= 0.615 <= ends[1]
    assert inside == pytest.approx(285, abs=10)


def test_an_end_of_the_interval_is_where_welchs_test_would_just_refuse() -> None:
    """Fieller's theorem: a ratio is inside when `above` and `ratio * below` are not told apart."""
    above, below = [60.0, 63, 58, 66, 61, 64], [100.0, 94, 108, 99, 103, 96]
    ends = ratio_interval(above, below)
    assert ends is not None
    for end in ends:
        pvalue = ttest_ind(above, [end * value for value in below], equal_var=False).pvalue
        assert pvalue == pytest.approx(0.05, abs=0.004)  # degrees of freedom are those at the mean ratio


def test_the_ends_of_the_interval_are_the_roots_of_fiellers_equation() -> None:
    """With the degrees of freedom of Welch at the ratio of the means."""
    above, below = [60.0, 63, 58, 66, 61, 64], [100.0, 70, 130, 95]
    ends, ratio = ratio_interval(above, below), fmean(above) / fmean(below)
    assert ends is not None
    freedom = ttest_ind(above, [ratio * value for value in below], equal_var=False).df
    for end in ends:
        error = np.sqrt(np.var(above, ddof=1) / 6 + end**2 * np.var(below, ddof=1) / 4)
        assert abs(fmean(above) - end * fmean(below)) == pytest.approx(float(student.isf(0.025, freedom)) * error)


def test_the_deviation_is_that_of_the_throughput_beside_others_over_the_mean_alone() -> None:
    alone = [measurement("A", (), pps) for pps in (15.0, 25.0)]
    (three,) = normalized([*alone, *(measurement("A", ("B",), pps) for pps in (8.0, 10.0, 12.0))])
    assert (three.mean, three.stdev, three.samples) == (0.5, pytest.approx(0.1), 3)
    (two,) = normalized([*alone, *(measurement("A", ("B",), pps) for pps in (8.0, 12.0))])
    assert two.stdev == pytest.approx(0.2 / 2**0.5)


def test_equal_values_have_no_width_and_single_or_wild_ones_no_interval() -> None:
    assert ratio_interval([5, 5], [10, 10]) == (0.5, 0.5)
    assert ratio_interval([5], [10, 10]) is None
    assert ratio_interval([5, 6], [1, 200]) is None


def test_a_sweep_has_a_point_for_each_frame_and_load() -> None:
    def study(frame: str, load_pps: float, share: float) -> Interference:
        measurements = measured(
            {"A": 10.0, "B": 10.0}, {("A", ("B",)): share, ("B", ("A",)): 0.9}, load_pps=load_pps, frame=frame
        )
        return Interference(spec=spec_of("A", "B"), measurements=tuple(measurements), matrix=())

    found = by_frame_and_load([study("64B", 2e5, 0.5), study("64B", 1e5, 0.7), study("512B", 1e5, 0.95)])
    assert [(point.frame, point.load_pps, point.most_sensitive) for point in found] == [
        ("64B", 1e5, "A"), ("64B", 2e5, "A"), ("512B", 1e5, "B"),
    ]  # fmt: skip
    assert [point.degradation for point in found] == pytest.approx([0.2, 0.3, 0.075])
    assert [point.lowest for point in found] == pytest.approx([0.7, 0.5, 0.9])
