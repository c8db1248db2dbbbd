"""Commands read of a dataset the runs and columns that they need, say what they leave out, and answer the same."""

import shutil
from pathlib import Path

import pytest

from csit_utils.commands.results.selections import COMPARED
from csit_utils.dataset.store.columns import NAMES
from csit_utils.dataset.store.layout import TESTS, Layout
from csit_utils.dataset.store.stored_contents import Stored
from tests.simulated.in_process import csit
from tests.unit.csit_utils.datasets import history

FIRST = "night=2026-11-01/"


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Three nights of two cells, of the last one two files, and a failed test."""
    return history(tmp_path_factory.mktemp("history"))


@pytest.fixture(scope="module")
def folder(layout: Layout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, with damaged rows of the first night."""
    copied = Layout(Path(shutil.copytree(layout.folder, tmp_path_factory.mktemp("damaged") / "dataset")))
    for part in (part for each in copied.imports() for part in each.parts if FIRST in part.path):
        copied.path(TESTS, part).write_bytes(b"PAR1")
    return copied.folder


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


def test_rows_have_the_columns_that_are_read_and_refuse_others(layout: Layout) -> None:
    wanted = ["anchor", "run", "recorded", "started_at", "pdr_lower_pps"]
    whole, some = Stored(layout).tests, Stored(layout, wanted=wanted).tests
    assert [(row.anchor, row.pdr_lower_pps) for row in some] == [(row.anchor, row.pdr_lower_pps) for row in whole]
    with pytest.raises(AttributeError, match="ndr_lower_pps"):
        _ = some[0].ndr_lower_pps


@pytest.mark.parametrize(
    "words",
    [
        "trend {0} --all --format json",
        "trend {0} --all --format json --new-with {1}/output-3.xml",
        "trend {0} --steps {1}/steps.json",
        "compare night=2026-11-01..2026-11-02 night=2026-11-03 --data {0} --format json",
        "gate before=2 {1}/output-3.xml --data {0} --junit {1}/gate.xml",
        "gate night=2026-11-01..2026-11-02 night=2026-11-03 --data {0} --steps {1}/steps.json",
    ],
)
def test_answers_are_those_of_all_columns(layout: Layout, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = words.format(layout.folder, layout.folder.parent).split()
    some = csit(*asked)
    for command in ("trend", "gate", "compare"):
        monkeypatch.setattr(f"csit_utils.commands.results.{command}.COMPARED", NAMES)
    assert some == csit(*asked)
    assert some.status != 70, "a defect: a column that it needs is not read"
    assert set(COMPARED) < set(NAMES)
