"""Commands read of a dataset the runs that their question needs, and say how many they leave out."""

from pathlib import Path

import pytest

from csit_utils.dataset.store.layout import TESTS, Layout
from tests.simulated.in_process import csit
from tests.unit.csit_utils.datasets import history

FIRST = "night=2026-11-01/"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nights, of the last one two files; the rows of the first night are damaged."""
    layout: Layout = history(tmp_path_factory.mktemp("history"))
    for part in (part for each in layout.imports() for part in each.parts if FIRST in part.path):
        layout.path(TESTS, part).write_bytes(b"PAR1")
    return layout.folder


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        ("show {0} --max-tests 1", True),
        ("trend {0} --all --max-tests 1", True),
        ("report {0} --max-tests 1 -o {0}/../site", True),
        ("answer {0} --rate 1kpps", True),
        ("gate before=1 night=2026-11-03 --data {0}", False),
        ("compare night=2026-11-03 night=2026-11-03 --data {0}", False),
    ],
)
def test_files_of_other_nights_are_not_opened(folder: Path, words: str, left_out: bool) -> None:
    done = csit(*words.format(folder).split())
    assert done.status != 70
    assert done.stdout
    assert FIRST not in done.stderr
    assert (" of 4 runs" in done.stderr) is left_out


@pytest.mark.parametrize(
    "words", ["show {0}", "answer {0} --rate 1kpps --max-tests 100", "gate before=2 night=2026-11-03 --data {0}"]
)
def test_damage_is_reported_where_it_is_read(folder: Path, words: str) -> None:
    assert FIRST in csit(*words.format(folder).split()).stderr


def test_a_report_says_how_many_runs_it_leaves_out(folder: Path) -> None:
    csit("report", folder, "--max-tests", 1, "-o", folder.parent / "few")
    assert " of 4 runs" in (folder.parent / "few" / "index.html").read_text(encoding="utf-8")
