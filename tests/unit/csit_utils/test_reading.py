"""Reading of output.xml and of records: what is good is kept, what is bad is named."""

import json
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from csit_utils.dataset.inputs import files_of
from csit_utils.dataset.items import Problem, Status
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.recording.marker import RESULT_MARKER
from tests.loaded import items, load
from tests.unit.csit_utils.builders import does_not_fit, result
from tests.unit.csit_utils.foreign_files import EXAMPLES, packed
from tests.unit.csit_utils.robot_output import write_output_xml


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tests with records, one of which failed, and two without."""
    results = [result(ServiceType.CSC, 1, 1, histograms=False), does_not_fit(ServiceType.CSC, 8, 8)]
    unrecorded = [("No start", "Fail", "nf-1-1 is <down>", ("CSC", "2R1C")), ("No VPP", "Skip", "needs VPP", ())]
    return write_output_xml(tmp_path_factory.mktemp("good") / "output.xml", results, unrecorded)


def test_what_robot_writes_is_read_back(good: Path) -> None:
    dataset = load([good])
    assert dataset.problems == []
    assert dataset.recorded[0].record == result(ServiceType.CSC, 1, 1, histograms=False)
    assert [item.status for item in dataset.recorded] == [Status.PASS, Status.FAIL]
    assert dataset.recorded[1].message == "needs 33 cores on NUMA 0, 28 available"
    first, second = dataset.unrecorded
    assert (first.test_id, first.status, first.message) == ("Density.No start", Status.FAIL, "nf-1-1 is <down>")
    assert first.tags == ("2R1C", "CSC")
    assert (second.status, second.message) == (Status.SKIP, "needs VPP")


def test_a_failure_after_the_record_is_seen(tmp_path: Path) -> None:
    made = result(ServiceType.CSC, 1, 1, histograms=False)
    source = write_output_xml(tmp_path / "output.xml", [made])
    text = source.read_text().replace('<status status="PASS"', '<status status="FAIL"')
    source.write_text(text)
    assert load([source]).recorded[0].status is Status.FAIL


def test_a_file_that_breaks_off_loses_nothing_else(good: Path, tmp_path: Path) -> None:
    text = good.read_text()
    cut = tmp_path / "cut.xml"
    cut.write_text(text[: text.index('name="No start"') + 30])
    dataset = load([cut, good])
    (problem,) = dataset.problems
    assert (problem.source, problem.text.startswith(f"{cut}: truncated or damaged")) == (str(cut), True)
    assert len(dataset.recorded) == 2
    assert dataset.unrecorded[0].message == "the file ends in the middle of this test"


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
        '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE r SYSTEM "http://example.invalid/x.dtd">',
    ],
)
def test_declarations_that_attacks_need_are_refused(tmp_path: Path, declaration: str) -> None:
    bomb = tmp_path / "bomb.xml"
    bomb.write_text(f"<?xml version='1.0'?>{declaration}<robot><suite name='x'/></robot>")
    (problem,) = items(bomb)
    assert isinstance(problem, Problem)
    assert str(bomb) in problem.text
    assert "refused" in problem.text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "other.xml: the file is empty"),
        (b"\x00\x01\x02", "no result, looks like binary data; ./csit reads outputs of Robot Framework"),
        (b"load,loss\n1e6,0\n", "no result, looks like a table (CSV)"),
        (b"time;loss\n1;0\n", "no result, looks like a table (CSV)"),
        (b"TRex v3.03\nready\n", "no result, looks like text; "),
        ("größer\n".encode() * 1000, "no result, looks like text; "),
        (b"\xff" * 2000, "no result, looks like binary data; "),
        (b"\xd4\xc3\xb2\xa1\2\0\4\0", "no result, looks like a packet capture; "),
        (bytes(257) + b"ustar\0", "no result, looks like a tar archive; "),
        (b"<!DOCTYPE html>\n<html lang='en'>", "no result, looks like an HTML page; "),
        (b'{"ports": {}, "global": {}, "xx": 1}', "not a result record, but JSON with the keys 'ports', 'global', 'xx"),
    ],
)
def test_other_files_are_named(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "other.xml"
    file.write_bytes(content)
    (problem,) = items(file)
    assert isinstance(problem, Problem)
    assert reason in problem.text


def test_a_file_is_what_its_content_says(good: Path, tmp_path: Path) -> None:
    record, output = tmp_path / "record.xml", tmp_path / "output.json"
    record.write_text(_record(test_id="another"), encoding="utf-8")
    output.write_bytes(b"\n" + good.read_bytes())
    dataset = load([record, output])
    assert (len(dataset.recorded), dataset.problems) == (3, [])


def test_a_byte_order_mark_is_no_part_of_a_file(good: Path, tmp_path: Path) -> None:
    failed = {"name": "b", "status": "FAIL", "message": "no traffic", "body": []}
    outputs = [{"generator": "Robot 7.1 (Python)", "suite": {"name": "a", "tests": [failed]}}]
    contents = [good.read_bytes(), _record(test_id="another").encode(), *map(packed, [*EXAMPLES, *outputs])]
    for number, content in enumerate(contents):
        (file := tmp_path / f"{number}.json").write_bytes(b"\xef\xbb\xbf" + content)
        found = load([file])
        assert not found.problems and [*found.recorded, *found.foreign, *found.unrecorded], content[:80]


def _record(**changes: object) -> str:
    made = result(ServiceType.CSC, 1, 1, histograms=False).model_dump_json()
    return json.dumps({**json.loads(made), **changes}) if changes else made


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_record(schema_version="9.0"), "has schema version 9.0, and this release reads version 3.0: measure again"),
        (_record(passed="perhaps"), "not valid: passed"),
        (_record(surprise=1), "not valid: surprise"),
        ("{", "not valid JSON"),
        ("[1, 2]", "not a result record, but a JSON list"),
        ("{}", "not a result record, but an empty JSON object"),
        ("7", "not a result record, but a single JSON value"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_a_bad_record_is_named_with_file_and_test(good: Path, tmp_path: Path, text: str, reason: str) -> None:
    source = tmp_path / "output.xml"
    before = good.read_text()
    start = before.index(RESULT_MARKER, before.index("<msg")) + len(RESULT_MARKER)
    source.write_text(before[:start] + escape(text) + before[before.index("</msg>", start) :])
    dataset = load([source])
    (problem,) = dataset.problems
    for part in (reason, str(source), "Density.64B-1c-csc-1ch-1n-ndrpdr"):
        assert part in problem.text
    assert len(dataset.recorded) == 1, "the other record is still there"
    assert problem.text in {item.message for item in dataset.unrecorded}


def test_directories_and_records_as_files(good: Path, tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    other = result(ServiceType.CSC, 2, 1, histograms=False).model_dump_json()
    for name, text in (("one", _record()), ("other", other), ("old", _record(schema_version="0.9"))):
        (tmp_path / "records" / f"{name}.json").write_text(text)
    (tmp_path / "output.xml").write_bytes(good.read_bytes())
    dataset = load([tmp_path, tmp_path / "records" / "one.json"])
    assert len(dataset.recorded) == 3, "the record that is in output.xml too counts once"
    (problem,) = dataset.problems
    assert problem.source.endswith("old.json") and "0.9" in problem.text


def test_other_files_and_hidden_folders_of_results_are_left_out_unless_they_are_named(tmp_path: Path) -> None:
    others = ("qualifications/48bf", "bisect/bisection", "later/dataset", "history/dataset", ".venv/one")
    for other in (tmp_path / f"{name}.json" for name in others):
        other.parent.mkdir()
        other.write_text("{}", encoding="utf-8")
    (problem,) = load([tmp_path]).problems
    assert problem.text.endswith(f" no .json records; name the dataset {tmp_path / 'history'} instead")
    output = write_output_xml(tmp_path / "output.xml", [result(ServiceType.CSC, 1, 1)])
    assert files_of(tmp_path) == (output,)
    assert files_of(tmp_path / ".venv") == (tmp_path / ".venv" / "one.json",)
    (tmp_path / "empty").mkdir()
    (problem,) = load([tmp_path / "empty"]).problems
    assert "no output.xml" in problem.text
