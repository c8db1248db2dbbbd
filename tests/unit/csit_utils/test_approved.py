"""Approved wording is that of tests which exist."""

import importlib
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.csit_utils.approved import Approved

FOLDERS = sorted(Path(__file__).with_name("__snapshots__").iterdir())
_NAME = "# name: "


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_approval_is_left_of_a_test_that_is_gone(folder: Path) -> None:
    """By what test modules declare: syrupy reports it only where a whole module runs, and on all its workers."""
    found = vars(importlib.import_module(f"tests.unit.csit_utils.{folder.name}")).values()
    tests: list[Any] = [each for each in found if inspect.isfunction(each) and "approved" in each.__annotations__]
    names = {f"{test.__name__}[{word}]" for test in tests for mark in test.pytestmark for word in mark.args[1]}
    files = {name: Approved.get_file_basename(test_location=SimpleNamespace(testname=name), index=0) for name in names}
    for file in folder.iterdir():
        lines = file.read_text(encoding="utf-8").splitlines()
        kept = {line.removeprefix(_NAME) for line in lines if line.startswith(_NAME)}
        assert {name for name in kept if files.get(name) != file.stem} == set(), file
        assert kept, file
