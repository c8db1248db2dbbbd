"""Tables on a terminal: nothing is wider than it, nothing of a cell is lost, and words stay readable."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.cli import make_app
from csit_utils.commands.tables import TableForm, TableLine, fitted, print_table
from tests.unit.csit_utils.characterization_records import one_of_each
from tests.unit.csit_utils.study_records import chain_studied, interfered

_WIDTH = 80
_PROSE = "4x1 gives its worst instance 1.31 Mpps (instance 1 reverse) at PDR load 5.26 Mpps, p99 80 us at PDR50"


def shown(heads: tuple[str, ...], rows: list[tuple[str, ...]], *left: str, width: int = _WIDTH) -> list[str]:
    return [text for text, _ in fitted(heads, [TableLine(row, {}) for row in rows], left, width)]


def test_a_table_that_fits_is_one_line_per_row() -> None:
    assert shown(("cell", "NDR"), [("CSC 1x1", "6.44 Mpps"), ("CSC 10x1", "980 kpps")], "cell") == [
        "cell            NDR",
        "CSC 1x1   6.44 Mpps",
        "CSC 10x1   980 kpps",
    ]


def test_prose_is_wrapped_where_there_is_room_for_it() -> None:
    lines = shown(("service", "instances", "evidence"), [("CSC", "4", _PROSE)], "service", "evidence")
    assert lines[0].split() == ["service", "instances", "evidence"]
    assert max(map(len, lines)) <= _WIDTH and len(lines) == 3
    assert all(line[18:20] == "  " and line[20].strip() for line in lines[1:])


def test_prose_without_room_follows_below_its_row() -> None:
    heads = ("service", "NFs", "NF size", "vSwitch", "frame", "instances", "evidence", "next")
    rows = [("CSC", "1", "0.5c", "1c", "64B", "4", _PROSE, "5x1 was not measured")]
    lines = shown(heads, rows, "service", "NF size", "vSwitch", "frame", "evidence", "next")
    assert max(map(len, lines)) <= _WIDTH
    assert "    evidence: 4x1 gives its worst instance 1.31 Mpps (instance 1 reverse) at PDR" in lines
    assert lines[2].endswith("5x1 was not measured")


def test_heads_are_wrapped_and_empty_columns_left_out_before_anything_else() -> None:
    heads = ("target", "normalized throughput of the target", "sensitivity of the target", "notes")
    lines = shown(heads, [("gateway", "0.903", "0.859", "")], "target", "notes", width=34)
    assert lines[-1].split() == ["gateway", "0.903", "0.859"]
    assert max(map(len, lines)) <= 34 and "notes" not in " ".join(lines)


def test_a_long_name_has_a_line_of_its_own() -> None:
    heads = ("cell", "A", "B", "change", "outcome")
    row = ("sim-a (simulated) CSC 2R1C NF-1c vSwitch-1c 64B NDR", "5.97 Mpps", "5.99 Mpps", "0.3 %", "no change seen")
    lines = shown(heads, [row], "cell", "outcome")
    assert lines[1:] == [row[0], "5.97 Mpps  5.99 Mpps   0.3 %  no change seen"]


def test_numbers_that_do_not_fit_have_a_line_each() -> None:
    heads = tuple(f"head{number}" for number in range(12))
    lines = shown(heads, [tuple(str(10**8 + number) for number in range(12))])
    assert lines == [f"{head:<6}  {10**8 + number}" for number, head in enumerate(heads)]


@given(st.data(), st.integers(40, 120))
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(data: st.DataObject, width: int) -> None:
    count = data.draw(st.integers(1, 9))
    word = st.text("abcxyz0189", min_size=1, max_size=18)
    cell = st.lists(word, max_size=14).map(" ".join)
    heads = tuple(f"{data.draw(word)[:9]} {number}" for number in range(count))
    rows = data.draw(st.lists(st.tuples(*[cell] * count), max_size=4))
    left = data.draw(st.sets(st.sampled_from(heads)))
    lines = shown(heads, rows, *left, width=width)
    words = {text for row in rows for each in row for text in each.split()}
    assert words <= set(" ".join(lines).split())
    numbers = [each for row in rows for head, each in zip(heads, row, strict=True) if head not in left]
    if all(len(each) <= width - 26 for each in numbers):
        assert max(map(len, lines), default=0) <= width


def test_a_pipe_gets_a_line_per_row_with_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(
        ("cell", "evidence"), [TableLine(("CSC\t1x1", "lost\nat NF"), {}, below=("all of it",))], TableForm.TERMINAL
    )
    assert capsys.readouterr().out == "cell\tevidence\nCSC 1x1\tlost at NF\n\tall of it\n"


@pytest.mark.parametrize(
    "words",
    [
        ("show", "--why"),
        ("suspects",),
        ("place",),
        ("trend", "--all"),
    ],
    ids=" ".join,
)
def test_commands_fit_a_terminal_of_80_columns(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, record in enumerate([*one_of_each(), chain_studied(), interfered()]):
        (tmp_path / f"{number}.json").write_text(record.model_dump_json(), encoding="utf-8")
    monkeypatch.setenv("COLUMNS", str(_WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    arguments = [*words, str(tmp_path)]
    make_app(arguments)(arguments, standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    if words[0] != "show":  # characterizations are sentences, which a terminal wraps, as it does those below a table
        assert not [line for line in lines if len(line) > _WIDTH and not line.startswith("put ")]
