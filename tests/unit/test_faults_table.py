"""The tables of docs/faults.md: every cell names tests that exist, or an explanation of one sentence."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
TESTS = dict(re.findall(r"^- \*\*([A-Z]\d+)\*\* `([\w./]+::\w+)`: \S", TEXT, re.MULTILINE))
"""By code: file and name below `tests/`."""
REASONS = dict(re.findall(r"^- \*\*([a-z])\*\* (.+(?:\n  .+)*)$", TEXT, re.MULTILINE))
MIN_FAULTS = 15


def rows() -> list[list[str]]:
    """Cells of all tables, without their headings."""
    lines = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| fault")]
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]


def test_every_row_has_a_cell_for_each_heading() -> None:
    widths: dict[int, set[int]] = {}
    table = 0
    for line in TEXT.splitlines():
        if line.startswith("| fault"):
            table += 1
        if line.startswith("| "):
            cells = line.strip().strip("|").split("|")
            assert all(cell.strip() for cell in cells), line
            widths.setdefault(table, set()).add(len(cells))
    assert [len(each) for each in widths.values()] == [1, 1, 1], widths


@cache
def functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_tables_are_complete() -> None:
    faults = [row[0] for row in rows()]
    assert len(faults) >= MIN_FAULTS
    assert len(set(faults)) == len(faults)
    used: set[str] = set()
    for name, *cells in rows():
        for cell in cells:
            codes = cell.split(", ")
            unknown = [code for code in codes if code not in TESTS and code not in REASONS]
            assert not unknown, f"{name}: {unknown}"
            used |= set(codes)
    assert used == {*TESTS, *REASONS}, "every test and every explanation is in a table"


@pytest.mark.parametrize("code", TESTS)
def test_a_test_that_a_cell_names_exists(code: str) -> None:
    file, _, name = TESTS[code].partition("::")
    assert name in functions(file)


@pytest.mark.parametrize("code", REASONS)
def test_an_explanation_is_one_sentence(code: str) -> None:
    text = " ".join(REASONS[code].split())
    assert text[0].isupper()
    assert text.endswith(".")
    assert ". " not in text
