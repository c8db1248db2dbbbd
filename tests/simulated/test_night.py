"""Planned nights on the simulated testbed: what is written is what Robot runs, and results change the next plan."""

from pathlib import Path

import pytest

from tests.simulated.in_process import QUIETLY, SIM, csit, passed

NIGHT = ("night", SIM, "--format", "json", "--types", "CSC", "--tests", "MRR", "--search", "quick", "--data")


@pytest.mark.slow
def test_what_a_night_has_measured_is_not_planned_again(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    output = tmp_path / "night"
    choices = ("--cells", "1x1,2x1,9x9", "--studies", "OUTAGE AND FIREWALLS", "--within", "50%")
    first = passed(*NIGHT, tmp_path / "nothing", *choices, "-o", output)
    planned = {each["test"]: (each["reason"], each["planned"]) for each in first.objects}
    assert sorted(planned.values()) == [("unfit", 0), *[("unseen", 2)] * 3]
    runs = sorted(output.glob("*.args"))
    assert len(runs) == 4, "each measurement of the matrix and of the study"
    for run in runs:
        of_study = "characterization" in run.read_text(encoding="utf-8")
        passed("robot", *QUIETLY, *(["--dryrun", "--output", "NONE"] if of_study else []), "-A", run)
    assert len(list(output.glob("*/results/*-mrr.json"))) == 4
    again = {each["test"]: each["reason"] for each in passed(*NIGHT, output, *choices).objects}
    assert sorted(again.values()) == ["settled", "settled", "unfit", "unseen"]


def test_runs_that_robot_would_read_otherwise_are_not_written(tmp_path: Path) -> None:
    (nothing := tmp_path / "nothing").mkdir()
    words = (*NIGHT, nothing, "--cells", "1x1", "-o", tmp_path / "night")
    for line_end in ("\n", "\r", "\u2028"):
        wrong = csit(*words, "-v", f"PRIORS:x{line_end}--listener os.system")
        assert (wrong.status, wrong.stdout) == (2, ""), wrong
        assert "--listener os.system" in wrong.stderr
    assert not (tmp_path / "night").exists()
    assert passed(*words).status == 0
    assert csit(*words).status == 2, "the folder has runs already"


def test_the_duration_of_a_test_is_known_before_it_was_ever_measured(tmp_path: Path) -> None:
    planned = passed(*NIGHT, tmp_path, "--cells", "1x1", "--studies", "*").objects
    known = {each["test"].partition(": ")[0] for each in planned if (each["seconds"] or 0) > 0}
    assert known >= {"outage", "stateful", "chains", "interference", "sizing"}
