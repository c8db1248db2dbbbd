"""Texts and times of results that others wrote: what `import` takes, every command reads, and none moves a cursor."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from csit_utils.cli import make_app
from csit_utils.commands.tables import TableForm, TableLine, print_sentence, print_table
from resources.libraries.python.errors import CsitError
from resources.libraries.python.recording.records import NotARecord, read_record
from resources.libraries.python.recording.writer import pack
from tests.unit.csit_utils.builders import CSC, result
from tests.unit.csit_utils.foreign_files import csit, csit_ndrpdr, packed, pps
from tests.unit.examples import share

HOSTILE = "a\x1b[31mb\x1b[Kc\x1b]8;;file:///x\x1b\\d\x9b2Je\x07f\u202eg"
"""Among them what the command line itself writes to a terminal: a colour, the rest of a line, a link."""
_MOVING = {"\x1b", "\x9b", "\x07", "\u202e"}
READING = (
    ("show", "--why", "{data}"),
    ("show", "--format", "json", "{data}"),
    ("compare", "label=a", "label=b", "--data", "{data}"),
    ("compare", "label=a", "label=b", "--data", "{data}", "--format", "markdown"),
    ("gate", "label=a", "label=b", "--data", "{data}"),
    ("trend", "{data}"),
    ("why", "label=a", "label=b", "--data", "{data}"),
    ("answer", "{data}", "--rate", "100kpps"),
)
"""Commands that print results of a dataset."""


def call(*arguments: str) -> Result:
    done = CliRunner().invoke(make_app([arguments[0]]), list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit | CsitError), (arguments, done.exception)
    return done


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of a tool whose names, versions and messages move the cursor; in the second a test failed."""
    folder = tmp_path_factory.mktemp("hostile")
    for label, rate in (("a", 5e6), ("b", 2e6)):
        named: dict[str, Any] = {"hosts": [HOSTILE], "dut_version": HOSTILE, "test_name_long": f"64b-{HOSTILE}"}
        found = csit(csit_ndrpdr(ndr={"lower": pps(rate)}, pdr={"lower": pps(rate)}), **named)
        failed = csit({}, **named, passed=label == "a", message=HOSTILE, test_id=f"tests.{HOSTILE}")
        run = folder / label
        run.mkdir()
        (run / "one.info.json").write_bytes(packed(found))
        (run / "two.info.json").write_bytes(packed(failed))
        assert not call("import", str(run), "-o", str(folder / "data"), "--label", label).stderr
    return folder / "data"


def read(data: Path, command: tuple[str, ...]) -> str:
    done = call(*(each.format(data=data) for each in command))
    assert done.exit_code in {0, 1, 2} and "internal error" not in done.output, done.output
    return done.output


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_no_command_lets_a_text_move_the_cursor(hostile: Path, command: tuple[str, ...]) -> None:
    assert not _MOVING & set(read(hostile, command))


def test_a_table_and_a_sentence_show_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    line = TableLine((HOSTILE, "1\n2"), {"a": HOSTILE, "b": 1}, below=(HOSTILE,))
    for form in TableForm:
        print_table(("a", "b"), [line], form)
        print_sentence(HOSTILE, HOSTILE)
        said = capsys.readouterr().out
        assert not _MOVING & set(said), form
        assert "\\x1b[31m" in said.replace("\\\\", "\\").replace("\\u001b", "\\x1b"), form


RECORD = json.loads(result(CSC, 2, 1, histograms=False).model_dump_json())


@pytest.mark.parametrize(
    "time",
    [
        *("2026-01-100", "", "soon", "2026-01-32T00:00:00+00:00", "2026-01-01T22:00:00", "2026-01-01"),
        *("0001-01-01T00:00:00+10:00", "2026-W01-1T00:00:00+00:00", "20260101T000000Z"),
    ],
)
@pytest.mark.parametrize("key", ["started_at", "finished_at"])
def test_a_record_with_an_impossible_time_is_refused(key: str, time: str) -> None:
    with pytest.raises(NotARecord, match=f"not valid: {key}: '{time[:9]}.*' is no time with a zone, such as 2026"):
        read_record(json.dumps(RECORD | {key: time}))


def test_what_import_refuses_the_dataset_does_not_have(tmp_path: Path) -> None:
    """As a record file, and packed in an output.xml; what it has is of any time, also of no night."""
    (bad := tmp_path / "bad.json").write_text(json.dumps(RECORD | {"started_at": "2026-01-100"}), encoding="utf-8")
    text = pack(result(CSC, 3, 1, histograms=False)).replace('"started_at":"2', '"started_at":"2026-01-100')
    log = f"<kw name='k'><msg level='INFO'>CSIT-RESULT {text.replace('&', '&amp;').replace('<', '&lt;')}</msg></kw>"
    (tmp_path / "output.xml").write_text(
        f"<robot><suite name='S'><test name='t'>{log}<status status='PASS'/></test></suite></robot>", encoding="utf-8"
    )
    good = [tmp_path / f"{time}.json" for time in ("0001-01-01T06:00:00+00:00", "9999-12-31T23:59:59+00:00")]
    for path in good:
        path.write_text(json.dumps(RECORD | {"started_at": path.stem}), encoding="utf-8")
    data = tmp_path / "data"
    done = call("import", *map(str, (tmp_path / "output.xml", bad, *good)), "-o", str(data))
    assert done.exit_code == 1
    assert f"{bad}: the record is not valid: started_at: '2026-01-100' is no time" in done.stderr
    assert f"{tmp_path / 'output.xml'}: test 'S.t': the record is not valid: started_at: '2026-01-100" in done.stderr
    for command in READING:
        read(data, command)


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12) | st.sampled_from(
    [".", "..", "a/b", "ü" * 200, "a=b", "%2F", "__HIVE_DEFAULT_PARTITION__"]
)
NAMED = ("test_id", "test_name", "message", "testbed")


@settings(max_examples=share(20), deadline=None)
@example(dict.fromkeys(NAMED, "x" * 300))
@example(dict.fromkeys(NAMED, "\0/.."))
@example(dict.fromkeys(NAMED, ""))
@given(changes=st.fixed_dictionaries(dict.fromkeys(NAMED, TEXTS)))
def test_records_of_any_text_are_read(tmp_path_factory: pytest.TempPathFactory, changes: dict[str, str]) -> None:
    folder = tmp_path_factory.mktemp("texts")
    (folder / "a.json").write_text(json.dumps(RECORD | changes), encoding="utf-8")
    data = str(folder / "data")
    assert call("import", str(folder / "a.json"), "-o", data).exit_code == 0
    (shown,) = map(json.loads, call("show", "--format", "json", data).stdout.splitlines())
    assert {key: shown[key] for key in changes} == changes
