"""Marks of integration tests: what `-m` and the turns of traffic choose by is in the text of the file with the tests.

`pytest_ignore_collect` and `takes_turns` read that text and import nothing, so they would not see a mark that a helper
makes and a test takes from there.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CHOSEN = {"parallel", "emulated", "root"}
"""By the environments of tox.ini, and by `takes_turns`."""


def marks(code: str) -> Iterator[str]:
    """Marks that a module makes; docstrings may mention them."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Attribute(value=ast.Attribute(attr="mark") | ast.Name(id="mark"), attr=name):
                yield name


def test_no_helper_makes_a_mark_that_tests_are_chosen_by() -> None:
    helpers = [path for path in TESTS.rglob("*.py") if not path.name.startswith("test_")]
    made = {str(path.relative_to(TESTS)): CHOSEN.intersection(marks(path.read_text("utf-8"))) for path in helpers}
    assert "integration/browser.py" in made
    assert {path: names for path, names in made.items() if names} == {}


@pytest.mark.parametrize(
    ("code", "made"),
    [
        ("NEEDS = [pytest.mark.root, pytest.mark.skipif(True, reason='')]", ["root", "skipif"]),
        ("from pytest import mark\n@mark.parallel\ndef f(): ...", ["parallel"]),
        ("'''A test says `pytestmark = pytest.mark.parallel`.'''\n# pytest.mark.root", []),
        ("run.parallel(mark)", []),
    ],
)
def test_marks_of_a_module_are_found(code: str, made: list[str]) -> None:
    assert list(marks(code)) == made
