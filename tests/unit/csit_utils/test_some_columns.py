"""Commands that read some columns of a dataset get the same answers, and never a default for a column they left out."""

import pytest

from csit_utils.commands.results.selections import COMPARED
from csit_utils.dataset.store.columns import NAMES
from csit_utils.dataset.store.layout import Layout
from csit_utils.dataset.store.stored_contents import Stored
from tests.simulated.in_process import csit
from tests.unit.csit_utils.datasets import history


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Three nights of two cells, and a failed test."""
    return history(tmp_path_factory.mktemp("history"))


def test_rows_have_the_columns_that_are_read_and_refuse_others(layout: Layout) -> None:
    whole, some = (
        Stored(layout).tests,
        Stored(layout, wanted=["anchor", "run", "recorded", "started_at", "pdr_lower_pps"]).tests,
    )
    assert [(row.anchor, row.pdr_lower_pps) for row in some] == [(row.anchor, row.pdr_lower_pps) for row in whole]
    with pytest.raises(AttributeError, match="ndr_lower_pps"):
        _ = some[0].ndr_lower_pps


@pytest.mark.parametrize(
    "words",
    [
        ("trend", "{0}", "--all", "--format", "json"),
        ("trend", "{0}", "--all", "--format", "json", "--new-with", "{1}/output-3.xml"),
        ("trend", "{0}", "--steps", "{1}/steps.json"),
        ("compare", "night=2026-11-01..2026-11-02", "night=2026-11-03", "--data", "{0}", "--format", "json"),
        ("gate", "before=2", "{1}/output-3.xml", "--data", "{0}", "--junit", "{1}/gate.xml"),
        ("gate", "night=2026-11-01..2026-11-02", "night=2026-11-03", "--data", "{0}", "--steps", "{1}/steps.json"),
    ],
)
def test_answers_are_those_of_all_columns(
    layout: Layout, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [word.format(layout.folder, layout.folder.parent) for word in words]
    some = csit(*asked)
    for command in ("trend", "gate", "compare"):
        monkeypatch.setattr(f"csit_utils.commands.results.{command}.COMPARED", NAMES)
    assert some == csit(*asked)
    assert some.status != 70, "a defect: a column that it needs is not read"
    assert set(COMPARED) < set(NAMES)
