"""The journal: every line whole or told of, one writer, and nothing half-written after a full disk."""

import json
import resource
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError, CsitError, RunStopped
from resources.libraries.python.recording import lines
from resources.libraries.python.recording.journal import Damage, Entry, Journal, TestFinished, TestStarted, read
from resources.libraries.python.recording.lines import read_lines
from tests.unit.examples import share
from tests.unit.recording.journals import AT, header


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
    return [item.line for item in items if isinstance(item, Entry)], [
        item.text for item in items if isinstance(item, Damage)
    ]


def test_what_is_written_is_read_back_and_an_unknown_event_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    finished = TestFinished(line=2, at=AT, test="t", status="PASS", digest="d", record="t.json")
    with Journal(path) as journal:
        journal.append(header())
        journal.append(finished)
    assert list(read(path)) == [Entry(1, header()), Entry(2, finished)]
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"line": 3, "at": AT, "event": "danced"}) + "\n")
    with pytest.raises(ConfigError, match=r"line 3 is no event of a run"):
        list(read(path))


def test_lines_longer_than_any_record_are_left_out_without_being_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 8)
    path = tmp_path / "lines"
    path.write_bytes(b"short\n" + b"x" * 7 + b"\n" + b"x" * 30 + b"\n\nlast")
    assert list(read_lines(path)) == [b"short\n", b"x" * 7 + b"\n", None, b"\n", b"last"]
    path.write_bytes(b"x" * 8)
    assert list(read_lines(path)) == [None]


@given(cut=st.integers(min_value=1, max_value=400))
@settings(max_examples=share(60), deadline=None)
def test_a_truncated_line_is_reported_and_costs_no_other_line(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
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


def test_a_missing_line_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, 5)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[4:]]))
    assert said(path) == ([1, 2, 5], [f"{path}: after line 2 comes line 5"])
    with Journal(path) as journal:
        assert journal.next_line == 6


def test_two_writers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
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
