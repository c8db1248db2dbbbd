"""What a journal tells: what is done, what is tried again and how often, what is refused."""

from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.errors import ConfigError, RunStopped
from resources.libraries.python.model.cell import ServiceType
from resources.libraries.python.model.result import Result
from resources.libraries.python.model.topology import World
from resources.libraries.python.recording.journal_run import Command, Run
from resources.libraries.python.recording.resume import MACHINE_DOWN, asked_key, differences, past_of
from tests.unit.csit_utils import builders
from tests.unit.recording.test_journal import CHOICES, header

ENVIRONMENT = builders.ENVIRONMENT


def result(chains: int = 1, nodes: int = 1, **changes: Any) -> Result:
    return builders.result(ServiceType.CSC, chains, nodes, histograms=False).model_copy(update=changes)


def begin(folder: Path, boot_id: str = "boot-1") -> Run:
    return Run.begin(folder, CHOICES, ENVIRONMENT, Command(), boot_id)


def resume(folder: Path, boot_id: str = "boot-1") -> Run:
    return Run.resume(folder, CHOICES, ENVIRONMENT, World.LOCAL, boot_id)


def killed(run: Run) -> None:
    """The process is gone without a word."""
    run._held.pop_all()
    run._journal.__exit__(None, None, None)


def test_a_finished_test_is_carried_over_with_its_record(tmp_path: Path) -> None:
    run = begin(tmp_path)
    row = result()
    run.started(row.asked)
    run.ended(row, "PASS")
    killed(run)
    run = resume(tmp_path)
    ended = run.standing(row.asked).ended
    assert ended is not None
    assert (ended.status, ended.result) == ("PASS", row)
    assert run.standing(result(2).asked).ended is None
    run.close()


def test_a_test_that_was_interrupted_or_killed_is_measured_again_from_its_first_attempt(tmp_path: Path) -> None:
    run = begin(tmp_path)
    row = result()
    run.started(row.asked)
    run.interrupted(row.asked, "signal", row)
    run.close()
    run = resume(tmp_path)
    assert run.started(row.asked) == 1
    killed(run)
    run = resume(tmp_path)
    assert run.standing(row.asked).broken == ()
    assert run.started(row.asked) == 1
    run.close()


def test_a_machine_that_goes_down_in_a_test_counts_as_an_attempt(tmp_path: Path) -> None:
    run = begin(tmp_path)
    row = result()
    for number in (1, 2):
        assert run.started(row.asked) == number
        killed(run)
        run = resume(tmp_path, f"boot-{number + 1}")
    assert run.standing(row.asked).broken == (MACHINE_DOWN, MACHINE_DOWN)
    killed(run)
    run = resume(tmp_path, "boot-4")  # nothing was running this time
    assert run.standing(row.asked).broken == (MACHINE_DOWN, MACHINE_DOWN)
    run.close()


def test_broken_attempts_and_quarantine_survive(tmp_path: Path) -> None:
    run = begin(tmp_path)
    row = result()
    run.started(row.asked)
    assert run.broken(row.asked, "the bridge is gone") == ("the bridge is gone",)
    killed(run)
    run = resume(tmp_path)
    assert run.started(row.asked) == 2
    reasons = run.broken(row.asked, "the NF is gone")
    assert reasons == ("the bridge is gone", "the NF is gone")
    run.ended(row.model_copy(update={"quarantined": reasons[-1], "broken": reasons, "passed": False}), "FAIL")
    killed(run)
    run = resume(tmp_path)
    other = result(asked=row.asked.model_copy(update={"test_type": "MRR"}))
    assert run.standing(other.asked).quarantine == "the NF is gone"
    assert run.standing(result(2).asked).quarantine is None
    ended = run.standing(row.asked).ended
    assert ended is not None and ended.status == "FAIL"
    run.close()


def test_several_cells_in_a_row_mean_that_the_machine_is_broken_and_they_are_measured_again(tmp_path: Path) -> None:
    run = begin(tmp_path)
    good = result(1, 2)
    run.ended(good, "PASS")
    rows = [result(chains, quarantined="the disk is on fire", passed=False) for chains in (1, 2, 3)]
    for row in rows[:2]:
        run.ended(row, "FAIL")
    with pytest.raises(RunStopped, match="3 cells in a row broke the system under test, the last one because the disk"):
        run.ended(rows[2], "FAIL")
    run.close()
    run = resume(tmp_path)
    assert all(run.standing(row.asked).ended is None for row in rows)
    assert all(run.standing(row.asked).quarantine is None for row in rows)
    assert run.standing(good.asked).ended is not None
    run.close()


def test_a_good_cell_between_bad_ones_keeps_the_run_going(tmp_path: Path) -> None:
    run = begin(tmp_path)
    for chains in range(1, 9):
        bad = chains % 3
        run.ended(result(chains, quarantined="it broke" if bad else None, passed=not bad), "FAIL" if bad else "PASS")
    run.close()


def test_a_record_that_cannot_be_read_any_more_is_measured_again(tmp_path: Path) -> None:
    run = begin(tmp_path)
    row = result()
    run.ended(row, "PASS")
    run.close()
    journal = tmp_path / "journal.jsonl"
    journal.write_text(journal.read_text(encoding="utf-8").replace('"testbed":', '"testbad":'), encoding="utf-8")
    run = resume(tmp_path)
    assert run.standing(row.asked).ended is None
    run.close()


def test_other_settings_of_the_same_test_are_refused(tmp_path: Path) -> None:
    run = begin(tmp_path)
    row = result()
    run.ended(row, "PASS")
    profile = row.asked.profile.model_copy(update={"mrr_trials": 77})
    with pytest.raises(ConfigError, match="was measured with other settings"):
        run.standing(row.asked.model_copy(update={"profile": profile}))
    run.close()


def test_every_test_of_a_matrix_has_a_name_of_its_own() -> None:
    asked = result().asked
    cell, others = asked.cell, []
    for change in ({"nf_chains": 2}, {"nf_nodes": 2}, {"nf_sizes": ("0.5c",)}, {"vs_dtc": 2}, {"nf_kinds": ("sim",)}):
        others.append(asked.model_copy(update={"cell": type(cell).model_validate({**cell.model_dump(), **change})}))
    others.append(asked.model_copy(update={"test_type": "MRR"}))
    others.append(asked.model_copy(update={"frame": builders.IMIX}))
    assert len({asked_key(each) for each in (asked, *others)}) == 8


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"topology_digest": "e"}, "the testbed is not the same"),
        ({"variables": {"CELLS": "2x2"}}, "with CELLS '1x1' and cannot be resumed with '2x2'"),
        ({"include": ("CSC",)}, "with --include nothing and cannot be resumed with CSC"),
        ({"exclude": ("CSC",)}, "with --exclude nothing and cannot be resumed with CSC"),
        ({"profile": CHOICES.profile.model_copy(update={"mrr_trials": 77})}, "means something else than when"),
    ],
)
def test_other_choices_are_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        differences(header(), CHOICES.model_copy(update=change), ENVIRONMENT, World.SIM)


def test_another_processor_is_refused_but_for_simulated_results() -> None:
    other = ENVIRONMENT.model_copy(update={"cpu_model": "Z80"})
    with pytest.raises(ConfigError, match="cannot be resumed on Z80 with 56"):
        differences(header(), CHOICES, other, World.LOCAL)
    assert differences(header(), CHOICES, other, World.SIM) == (
        f"cpu model was {ENVIRONMENT.cpu_model} when the run began and is Z80 now",
    )


def test_what_changed_on_a_node_is_told_with_its_name() -> None:
    then, now = (ENVIRONMENT.model_copy(update={"kernel": kernel, "memory_bytes": size}) for kernel, size in _TG)
    before = header().model_copy(update={"environment": ENVIRONMENT.model_copy(update={"nodes": {"TG": then}})})
    assert differences(before, CHOICES, ENVIRONMENT.model_copy(update={"nodes": {"TG": now}}), World.LAB) == (
        "kernel of TG was 5.15 when the run began and is 5.16 now",
    )


_TG = (("5.15", 1), ("5.16", 2))


def test_what_changed_on_the_machine_is_told() -> None:
    other = ENVIRONMENT.model_copy(update={"kernel": "7.0", "versions": {"robotframework": "8"}, "memory_bytes": 1})
    assert differences(header(), CHOICES, other, World.LOCAL) == (
        "kernel was 6.18.4-amd64 when the run began and is 7.0 now",
        "versions robotframework was 7.5 when the run began and is 8 now",
        "versions MLRsearch was 1.2.1 when the run began and is None now",
    )
    assert differences(header(), CHOICES, ENVIRONMENT, World.LOCAL) == ()


def test_a_folder_without_a_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no run to resume"):
        past_of(tmp_path)
    (tmp_path / "journal.jsonl").write_text('{"event": "ru', encoding="utf-8")
    with pytest.raises(ConfigError, match="nothing was begun in this run"):
        past_of(tmp_path)


def test_another_suite_of_a_run_may_choose_other_cells_on_the_same_testbed(tmp_path: Path) -> None:
    begin(tmp_path).close()
    other = CHOICES.model_copy(update={"variables": {**CHOICES.variables, "FRAMES": "IMIX"}})
    run = Run.go_on(tmp_path, other, ENVIRONMENT, "boot-1")
    row = result()
    run.started(row.asked)
    run.ended(row, "PASS")
    run.close()
    assert len(past_of(tmp_path).done) == 1
    with pytest.raises(ConfigError, match="suites of one run are on one testbed"):
        Run.go_on(tmp_path, CHOICES.model_copy(update={"topology_digest": "other"}), ENVIRONMENT, "boot-1")
