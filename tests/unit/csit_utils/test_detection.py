"""The measure of false alarms and power."""

from csit_utils.bench.detection import AFTER, KINDS, NO_STEP, SIZES, measure, power


def test_noise_is_called_a_step_no_more_often_than_promised() -> None:
    row = measure(series=40)
    assert "failed" not in row
    assert row["ratio"] == row["ours"] / row["peer"]
    assert set(row["detail"]) == set(KINDS) >= set(NO_STEP)
    assert row["detail"]["two bands, 10 apart, 25 % low"]["two_bands"] > 0.8
    assert row["detail"]["drift by 10 in all"]["drift"] > 0.5


def test_larger_steps_and_more_nights_are_found_more_often() -> None:
    found = power(series=4)
    assert set(found) == set(SIZES)
    assert found[2.0][2] == 0.0
    assert found[12.0][4] == 1.0
    assert all(found[size][AFTER[-1]] >= found[size][3] for size in SIZES)
