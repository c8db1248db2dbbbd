"""Tables as CSV: what a spreadsheet would take for a formula is text, in every exporter."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.commands.tables import TableForm, TableLine, print_table
from csit_utils.dataset.flatten import write_csv
from csit_utils.dataset.items import Status, Unrecorded
from resources.libraries.python.csv_tables import csv_text, harmless, original
from tests.loaded import Dataset
from tests.unit.csit_utils.in_memory import InMemory

FORMULA = '=HYPERLINK("http://203.0.113.1", "1")'


def test_a_text_that_looks_like_a_formula_gets_an_apostrophe_and_others_stay() -> None:
    for text in (FORMULA, "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\uff1d1+1"):
        assert harmless(text) == f"'{text}"
    for cell in ("-1.5", "+3", "-inf", "a=b", "", None, -2, -0.5, True):
        assert harmless(cell) == cell


@pytest.mark.parametrize(
    ("text", "safe"), [("\n=1", "'\n'=1"), ("x\n@y\n-2", "x\n'@y\n'-2"), ("'=1", "''=1"), ("x;=1", "x;'=1")]
)
def test_a_part_within_a_text_begins_no_formula(text: str, safe: str) -> None:
    assert (harmless(text), original(safe)) == (safe, text)


@given(st.text("=-@'a1\t\n.;\uff0b", max_size=6))
def test_the_apostrophe_can_be_taken_away(text: str) -> None:
    assert original(str(harmless(text))) == text


@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=3), max_size=4))
def test_no_field_is_a_formula(rows: list[list[str]]) -> None:
    for row in csv.reader(io.StringIO(csv_text(rows), newline="")):
        for field in row:
            assert field.startswith("'") or harmless(field) == field


def test_every_exporter_quotes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["a"], [TableLine(("x",), {"a": FORMULA, "b": -1.5})], TableForm.CSV)
    _, line = csv.reader(io.StringIO(capsys.readouterr().out))
    assert line == [f"'{FORMULA}", "-1.5"]
    lost = Unrecorded("S.t", FORMULA, (), "output.xml", Status.FAIL, f"@{json.dumps(FORMULA)}", None)
    (path, *_) = write_csv(InMemory(Dataset(unrecorded=[lost])).tests, (), tmp_path)
    (row,) = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    assert (row["test_name"], row["message"][:2]) == (f"'{FORMULA}", "'@")
