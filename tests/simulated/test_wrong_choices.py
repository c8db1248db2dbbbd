"""What cannot be measured or read is refused before anything starts: one sentence, an exit status, no traceback."""

from pathlib import Path

import pytest

from tests.simulated.in_process import DENSITY, QUIETLY, SIM, Ended, csit

ON_SIM = ("robot", "-v", f"TOPOLOGY:{SIM}", *QUIETLY)


def refused(ended: Ended, word: str, status: int = 2) -> None:
    assert ended.status == status, ended.stdout + ended.stderr
    assert word in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert "Traceback" not in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ((*ON_SIM, "-v", "CELLS:banana"), "banana"),
        ((*ON_SIM, "-v", "CELS:1x1"), "CELS"),
        ((*ON_SIM, "-v", "AT_RATE:1000"), "AT_RATE is measured by latency suites only"),
        (("robot", *QUIETLY), "TOPOLOGY"),
        (("robot", "--unknown"), "--unknown"),
    ],
)
def test_a_run_with_a_wrong_choice_is_refused_and_leaves_nothing(
    options: tuple[str, ...], word: str, tmp_path: Path
) -> None:
    refused(csit(*options, "-d", tmp_path / "run", "--suite", "csc-mrr", DENSITY), word)
    assert list(tmp_path.iterdir()) == []


def test_a_matrix_of_which_nothing_fits_fails_with_the_numbers_and_without_a_record(tmp_path: Path) -> None:
    ended = csit(*ON_SIM, "-v", "CELLS:10x10", "-v", "NF_SIZES:1c", "-d", tmp_path, "--suite", "csc-mrr", DENSITY)
    assert ended.status == 1
    assert "needs 153 cores on NUMA 0, 28 available" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
    assert not (tmp_path / "results").exists()


def test_single_runs_of_few_cells_are_not_judged_and_do_not_pass_the_gate(density: Path) -> None:
    ended = csit("gate", density, density)
    assert ended.status == 1
    assert "0 cells judged" in ended.stdout
