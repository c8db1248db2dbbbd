"""The measure of false alarms and power."""

from csit_utils.bench.studies_trends import AFTER, KINDS, NO_STEP, SIZES, false_alarms, power, table


def test_noise_is_called_a_step_no_more_often_than_promised() -> None:
    (line,) = table(studies=8)
    assert line.unit == "% of series"
    assert line.value <= line.bound
    found = false_alarms(series=40)
    assert line.value == max(100 * found[kind]["alone"] for kind in NO_STEP)
    assert set(found) == set(KINDS) >= set(NO_STEP)
    assert found["two bands, 10 apart, 25 % low"]["two_bands"] > 0.8
    assert found["drift by a total of 10"]["drift"] > 0.5


def test_larger_steps_and_more_nights_are_found_more_often() -> None:
    found = power(series=4)
    assert set(found) == set(SIZES)
    assert found[2.0][2] == 0.0
    assert found[12.0][4] == 1.0
    assert all(found[size][AFTER[-1]] >= found[size][3] for size in SIZES)
