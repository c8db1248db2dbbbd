"""The table of faults: every cell names tests that exist, or an explanation."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.faults import load

FOLDER = Path(__file__).parents[1]
FAULTS = load()
MIN_FAULTS = 15


@cache
def functions(file: str) -> set[str]:
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_cell_has_known_codes_and_every_code_is_in_a_cell() -> None:
    used: set[str] = set()
    for columns, rows in FAULTS.tables.values():
        for fault, cells in rows.items():
            assert len(cells) == len(columns) - 1, fault
            codes = [code for cell in cells for code in cell.split(", ")]
            assert {*codes} <= FAULTS.tests.keys() | FAULTS.explanations.keys(), fault
            used |= {*codes}
    assert used == FAULTS.tests.keys() | FAULTS.explanations.keys()
    assert sum(len(section.rows) for section in FAULTS.tables.values()) >= MIN_FAULTS


@pytest.mark.parametrize("code", FAULTS.tests)
def test_a_test_that_a_cell_names_exists(code: str) -> None:
    file, _, name = FAULTS.tests[code].test.partition("::")
    assert name in functions(file)
