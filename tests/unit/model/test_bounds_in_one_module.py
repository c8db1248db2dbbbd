"""Bounds of what is read are in `model.bounds`; other modules import them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.libraries.python.paths import PROJECT

LIBRARIES = PROJECT / "resources" / "libraries" / "python"
BOUND = re.compile(r"_?(MAX|LONGEST|LARGEST|DEEPEST|HIGHEST|LATEST)_\w+")
NOT_OF_INPUT = {
    "coverage.py": "sentences of a verdict",
    "attachment.py": "what hardware has",
    "run_journal.py": "attempts of a test",
    "parts.py": "units of other tools",
    "frames.py": "the name of a file in results",
    "cell.py": "addresses of a plan",
}
"""By name of the module: what its bounds are of."""


def readers() -> Iterator[Path]:
    """Modules that read files, specifications and results."""
    yield from (LIBRARIES / "model").rglob("*.py")
    yield from (LIBRARIES / "recording").rglob("*.py")
    yield from (LIBRARIES / "studies").glob("*/model/**/*.py")
    yield from (path for path in (PROJECT / "csit_utils" / "dataset").rglob("*.py") if path.parent.name != "store")
    yield from (LIBRARIES / "unpacking.py", PROJECT / "csit_utils" / "bisection" / "spec.py")


@pytest.mark.parametrize("path", sorted(readers()), ids=lambda path: str(path.relative_to(PROJECT)))
def test_a_reader_has_no_bounds_of_its_own(path: Path) -> None:
    if path.name in NOT_OF_INPUT or path == LIBRARIES / "model" / "bounds.py":
        return
    assigned = [line for line in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(line, ast.Assign)]
    names = [
        node.id for line in assigned for each in line.targets for node in ast.walk(each) if isinstance(node, ast.Name)
    ]
    assert not [name for name in names if BOUND.fullmatch(name)]
