"""Ordinary files of other people, with the commands that users type."""

from pathlib import Path

from tests.foreign_cases import CASES, failures, make_inputs


def test_ordinary_files_of_others_are_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    make_inputs(tmp_path)
    found = dict(failures(tmp_path))
    assert len(found) >= len(CASES)
    assert {command: what for command, what in found.items() if what} == {}
