"""The measure of false alarms and power."""

import sys
from pathlib import Path

import pytest

from csit_utils.bench.studies import trends
from csit_utils.bench.studies.trends import AFTER, KINDS, NO_STEP, SIZES, false_alarms, power, table
from resources.libraries.python.errors import CommandFailed


@pytest.fixture
def otava(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Path of the Python of Apache Otava, where there is none."""
    monkeypatch.setattr(trends, "_OTAVA", tmp_path / "python")
    return tmp_path / "python"


@pytest.mark.slow
@pytest.mark.usefixtures("otava")
def test_noise_is_called_a_step_no_more_often_than_promised() -> None:
    (line,) = table(studies=8)
    assert line.unit == "% of series"
    assert line.value <= line.bound
    found = false_alarms(series=20)
    (line,) = table(studies=4)  # of the same series
    assert line.value == max(100 * found[kind]["alone"] for kind in NO_STEP)
    assert set(found) == set(KINDS) >= set(NO_STEP)
    assert found["two bands, 10 apart, 25 % low"]["two_bands"] > 0.8
    assert found["drift by a total of 10"]["drift"] > 0.5
    assert not any("otava" in row for row in found.values())


def test_otava_gets_the_same_series_and_its_failure_is_not_a_rate(otava: Path) -> None:
    package = otava.with_name("otava")
    package.mkdir()
    package.joinpath("analysis.py").write_text(
        "def compute_change_points(values):\n    return [1] * (len(values) == 30 and max(values) > 103), None\n"
    )
    otava.write_text(f'#!/bin/sh\nPYTHONPATH={otava.parent} exec {sys.executable} "$@"\n')
    otava.chmod(0o755)
    assert trends._otava([[100.0] * 30, [100.0] * 29 + [104.0]]) == 0.5
    otava.write_text("#!/bin/sh\necho no module otava >&2; exit 1\n")
    with pytest.raises(CommandFailed, match="no module otava"):
        trends._otava([[100.0] * 30])


@pytest.mark.slow
def test_larger_steps_and_more_nights_are_found_more_often() -> None:
    found = power(series=4)
    assert set(found) == set(SIZES)
    assert found[2.0][2] == 0.0
    assert found[12.0][4] == 1.0
    assert all(found[size][AFTER[-1]] >= found[size][3] for size in SIZES)
