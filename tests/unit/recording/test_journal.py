"""The journal of a run: every line whole or told of, retries, quarantine, and what a resumed run refuses."""

import json
import resource
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError, CsitError, RunStopped
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.recording import lines
from resources.libraries.python.recording import run_journal as runs
from resources.libraries.python.recording.journal import Damage, Journal, TestFinished, TestStarted, read
from resources.libraries.python.recording.lines import read_lines
from tests.unit.csit_utils import builders
from tests.unit.examples import share
from tests.unit.recording.journals import AT, CHOICES, header

ENVIRONMENT = builders.ENVIRONMENT


def key(chains: int = 1, test: str = "MRR", digest: str = "d") -> runs.TestKey:
    return runs.TestKey(f"CSC {chains}R1C {test}", digest, f"CSC {chains}R1C")


def begin(folder: Path, boot_id: str = "boot-1") -> runs.RunJournal:
    return runs.RunJournal.begin(folder, CHOICES, ENVIRONMENT, runs.Command(), boot_id)


def resume(folder: Path, boot_id: str = "boot-1", *, killed: runs.RunJournal | None = None) -> runs.RunJournal:
    """Go on, after another process that is gone without a word."""
    if killed is not None:
        killed._held.pop_all()
        killed._journal.__exit__(None, None, None)
    return runs.RunJournal.resume(folder, CHOICES, ENVIRONMENT, World.LOCAL, boot_id)


def test_a_finished_test_is_carried_over_by_the_name_of_its_record_and_by_its_settings(tmp_path: Path) -> None:
    run = begin(tmp_path)
    run.started(key())
    run.ended(key(), "PASS", "1.json")
    run = resume(tmp_path, killed=run)
    ended = run.history(key()).ended
    assert ended is not None
    assert (ended.status, ended.record) == ("PASS", "1.json")
    assert run.history(key(2)).ended is None
    assert run.history(key(digest="e")).ended is None
    run.ended(key(digest="e"), "PASS", "2.json")
    assert run.history(key()).ended is not None
    run.discard(key())
    assert run.history(key()).ended is None, "its record cannot be read any more"
    run.close()


def test_a_test_that_was_interrupted_or_killed_is_measured_again_from_its_first_attempt(tmp_path: Path) -> None:
    run = begin(tmp_path)
    run.started(key())
    run.interrupted(key(), "signal", "1.json")
    run.close()
    run = resume(tmp_path)
    assert run.started(key()) == 1
    run = resume(tmp_path, killed=run)
    assert run.history(key()).broken == ()
    assert run.started(key()) == 1
    run.close()


def test_a_machine_that_goes_down_in_a_test_counts_as_an_attempt(tmp_path: Path) -> None:
    run = begin(tmp_path)
    for number in (1, 2):
        assert run.started(key()) == number
        run = resume(tmp_path, f"boot-{number + 1}", killed=run)
    assert run.history(key()).broken == (runs.MACHINE_DOWN, runs.MACHINE_DOWN)
    run = resume(tmp_path, "boot-4", killed=run)  # nothing was running this time
    assert run.history(key()).broken == (runs.MACHINE_DOWN, runs.MACHINE_DOWN)
    run.close()


def test_broken_attempts_and_quarantine_survive(tmp_path: Path) -> None:
    run = begin(tmp_path)
    run.started(key())
    assert run.broken(key(), "the bridge is gone") == ("the bridge is gone",)
    run = resume(tmp_path, killed=run)
    assert run.started(key()) == 2
    assert run.broken(key(), "the NF is gone") == ("the bridge is gone", "the NF is gone")
    run.ended(key(), "FAIL", "1.json", "the NF is gone")
    run = resume(tmp_path, killed=run)
    assert run.history(key(test="NDRPDR")).quarantine == "the NF is gone"
    assert run.history(key(2)).quarantine is None
    ended = run.history(key()).ended
    assert ended is not None and ended.status == "FAIL"
    run.discard(key())
    assert run.history(key(test="NDRPDR")).quarantine is None, "a test that runs again decides anew"
    run.close()


def test_several_cells_in_a_row_mean_that_the_machine_is_broken_and_they_are_measured_again(tmp_path: Path) -> None:
    run = begin(tmp_path)
    for chains in range(11, 19):  # a good cell between bad ones keeps the run going
        bad = chains % 3
        run.ended(key(chains), "FAIL" if bad else "PASS", "", "it broke" if bad else None)
    run.ended(key(9), "PASS", "9.json")
    for chains in (1, 2):
        run.ended(key(chains), "FAIL", "", "the disk is on fire")
    with pytest.raises(RunStopped, match="3 cells in a row broke the system under test, the last one because the disk"):
        run.ended(key(3), "FAIL", "", "the disk is on fire")
    run.close()
    run = resume(tmp_path)
    for chains in (1, 2, 3):
        assert (run.history(key(chains)).ended, run.history(key(chains)).quarantine) == (None, None)
    assert run.history(key(9)).ended is not None
    run.close()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"topology_digest": "e"}, "the topology has changed"),
        ({"variables": {"CELLS": "2x2"}}, "with CELLS '1x1' and cannot be resumed with '2x2'"),
        ({"include": ("CSC",)}, "with --include nothing and cannot be resumed with CSC"),
        ({"exclude": ("CSC",)}, "with --exclude nothing and cannot be resumed with CSC"),
        ({"profile": CHOICES.profile.model_copy(update={"mrr_trials": 77})}, "has other settings than at the"),
    ],
)
def test_other_choices_are_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        runs.differences(header(), CHOICES.model_copy(update=change), ENVIRONMENT, World.SIM)


def of_node(name: str, **changes: Any) -> Environment:
    """The environment of a run with another node, whose own has changes."""
    return ENVIRONMENT.model_copy(update={"nodes": {name: ENVIRONMENT.model_copy(update=changes)}})


@pytest.mark.parametrize("change", [{"cpu_model": "Z80"}, {"cpus_online": 28}])
def test_another_processor_of_any_node_is_refused_but_for_simulated_results(change: dict[str, Any]) -> None:
    """A board that was replaced, or hyper-threading that was switched off, between a run and its resumption."""
    other = ENVIRONMENT.model_copy(update=change)
    with pytest.raises(ConfigError, match=f"cannot be resumed on .* with {other.cpus_online}"):
        runs.differences(header(), CHOICES, other, World.LOCAL)
    ((what, now),) = change.items()
    assert runs.differences(header(), CHOICES, other, World.SIM) == (
        f"{what.replace('_', ' ')} was {getattr(ENVIRONMENT, what)} at the start of the run and is {now} now",
    )
    before = header().model_copy(update={"environment": of_node("DUT2")})
    with pytest.raises(ConfigError, match=r"DUT2: the run was started on .* and cannot be resumed on"):
        runs.differences(before, CHOICES, of_node("DUT2", **change), World.LAB)
    assert runs.differences(before, CHOICES, of_node("DUT2"), World.LAB) == ()


def test_changes_on_machines_are_reported() -> None:
    before = header().model_copy(update={"environment": of_node("TG", kernel="5.15", memory_bytes=1)})
    (said,) = runs.differences(before, CHOICES, of_node("TG", kernel="5.16", memory_bytes=2), World.LAB)
    assert said.startswith("kernel of TG was 5.15 ")
    other = ENVIRONMENT.model_copy(update={"kernel": "7.0", "versions": {"robotframework": "8"}})
    said = " ".join(runs.differences(header(), CHOICES, other, World.LOCAL))
    assert "kernel was 6.18.4-amd64 " in said and "robotframework was 7.5 " in said and "MLRsearch was 1.2.1 " in said
    assert runs.differences(header(), CHOICES, ENVIRONMENT, World.LOCAL) == ()


def test_a_folder_without_a_run_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not the folder of a run"):
        runs.past_of(tmp_path)
    (tmp_path / "journal.jsonl").write_text('{"event": "ru', encoding="utf-8")
    with pytest.raises(ConfigError, match="the journal has no header"):
        runs.past_of(tmp_path)


def test_another_suite_of_a_run_may_choose_other_cells_on_the_same_testbed(tmp_path: Path) -> None:
    begin(tmp_path).close()
    other = CHOICES.model_copy(update={"variables": {**CHOICES.variables, "FRAMES": "IMIX"}})
    run = runs.RunJournal.next_suite(tmp_path, other, ENVIRONMENT, "boot-1")
    run.started(key())
    run.ended(key(), "PASS", "1.json")
    run.close()
    assert len(runs.past_of(tmp_path).done) == 1
    elsewhere = CHOICES.model_copy(update={"topology_digest": "other"})
    with pytest.raises(ConfigError, match="suites of a run need the same testbed"):
        runs.RunJournal.next_suite(tmp_path, elsewhere, ENVIRONMENT, "boot-1")


def started(line: int, test: str = "CSC 1R1C", attempt: int = 1) -> TestStarted:
    return TestStarted(line=line, at=AT, test=test, attempt=attempt)


def write(path: Path, count: int) -> None:
    with Journal(path) as journal:
        journal.append(header(journal.next_line))
        for _ in range(count - 1):
            journal.append(started(journal.next_line))


def said(path: Path) -> tuple[list[int], list[str]]:
    """Line numbers of what can be read, and what is told of the rest."""
    items = list(read(path))
    return [item.line for item in items if not isinstance(item, Damage)], [
        item.text for item in items if isinstance(item, Damage)
    ]


def test_what_is_written_is_read_back_and_an_unknown_event_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    finished = TestFinished(line=2, at=AT, test="t", status="PASS", digest="d", record="t.json")
    with Journal(path) as journal:
        journal.append(header())
        journal.append(finished)
    assert list(read(path)) == [header(), finished]
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"line": 3, "at": AT, "event": "danced"}) + "\n")
    with pytest.raises(ConfigError, match=r"line 3 is no event of a run"):
        list(read(path))


def test_lines_longer_than_any_record_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 8)
    path = tmp_path / "lines"
    path.write_bytes(b"short\n" + b"x" * 7 + b"\n" + b"x" * 30 + b"\n\nlast")
    assert list(read_lines(path)) == [b"short\n", b"x" * 7 + b"\n", None, b"\n", b"last"]
    path.write_bytes(b"x" * 8)
    assert list(read_lines(path)) == [None]


@given(cut=st.integers(min_value=1, max_value=400))
@settings(max_examples=share(60))
def test_a_truncated_line_costs_no_other_line(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "journal.jsonl"
    write(path, 6)
    whole = path.read_bytes()
    kept = whole[: len(whole) - min(cut, len(whole) - 1)]
    path.write_bytes(kept)
    intact = kept.count(b"\n")
    last = whole[len(kept) :].startswith(b"\n")  # all of the line is there but its end
    torn = not last and not kept.endswith(b"\n")
    with Journal(path) as journal:
        assert journal.next_line == intact + last + torn + 1
        journal.append(started(journal.next_line, "after"))
    lines, damage = said(path)
    assert lines == [*range(1, intact + last + 1), intact + last + torn + 1]
    assert len(damage) == torn
    assert path.read_bytes().startswith(kept)


def test_a_missing_line_is_reported_and_a_second_writer_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, 5)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[4:]]))
    assert said(path) == ([1, 2, 5], [f"{path}: after line 2 comes line 5"])
    with Journal(path) as journal:
        assert journal.next_line == 6
    with Journal(path), pytest.raises(CsitError, match="still active"):
        Journal(path).__enter__()
    with Journal(path):
        pass


def test_a_line_that_does_not_fit_on_the_disk_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, 3)
    before = path.read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal(path) as journal:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, limit[1]))  # the line needs more
        try:
            with pytest.raises(RunStopped, match=r"cannot be written: File too large; fix that, then resume"):
                journal.append(started(journal.next_line))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert path.read_bytes() == before
        journal.append(started(journal.next_line, "with space again"))
    assert said(path) == ([1, 2, 3, 4], [])
