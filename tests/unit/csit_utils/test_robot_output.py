"""Outputs of Robot Framework in all forms, and records: the same figures, or a sentence on what is missing or bad."""

import gzip
import html
import io
import json
import tracemalloc
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from robot.rebot import rebot

from csit_utils.dataset import robot_output
from csit_utils.dataset.blocks import JsonScanner, Scanned, ScannedTest
from csit_utils.dataset.inputs import Kind, files_of, output_of, sources
from csit_utils.dataset.items import Problem, Status
from resources.libraries.python.recording.marker import REFUSED_MARKER, plain_message
from resources.libraries.python.studies.density.model import REFUSED_CELLS
from tests.loaded import Dataset, items, load
from tests.unit.csit_utils.builders import CSC, does_not_fit, refused_cell, result
from tests.unit.csit_utils.datasets import imported, invoked
from tests.unit.csit_utils.foreign_files import EXAMPLES, packed
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.examples import share

PASSED = result(CSC, 1, 1, histograms=False), result(CSC, 2, 1, histograms=False)
FAILED = does_not_fit(CSC, 8, 8)
UNRECORDED = ("No start", "Fail", "nf-1-1 is <down>", ("CSC", "2R1C")), ("No VPP", "Skip", "needs VPP", ())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run with both outputs, and its records beside them, which begin when their tests do."""
    folder = tmp_path_factory.mktemp("run")
    # By another time zone than Robot's, and in the middle of what is permitted: neither a stall nor a zone counts.
    begun = (datetime.now(UTC) + timedelta(hours=1, seconds=15)).isoformat()
    records = [made.model_copy(update={"started_at": begun}) for made in (*PASSED, FAILED)]
    write_output_xml(folder / "output.xml", records, UNRECORDED)
    (folder / "results").mkdir()
    for made in records:
        (folder / "results" / f"density-{made.test_name}.json").write_text(made.model_dump_json())
    return folder


def _rebot(source: Path, output: Path, *more: Path, **options: object) -> Path:
    rebot(
        str(source), *map(str, more), output=str(output), log=None, report=None, console="none",
        stdout=io.StringIO(), stderr=io.StringIO(), **options,
    )  # fmt: skip
    return output


def _digests(dataset: Dataset) -> set[str]:
    return {item.digest for item in dataset.recorded}


def _told(dataset: Dataset) -> tuple[list[object], set[object]]:
    """What is known of tests with a record, and of those without one."""
    recorded = [(each.digest, each.status, each.message) for each in dataset.recorded]
    return recorded, {(each.name, each.tags, each.status, each.message) for each in dataset.unrecorded}


def test_what_robot_writes_as_json_is_what_it_writes_as_xml(tmp_path: Path) -> None:
    """Robot writes names of suites behind their tests, and rebot before them."""
    xml, live = (
        write_output_xml(tmp_path / name, (*PASSED, FAILED), UNRECORDED) for name in ("output.xml", "live.json")
    )
    for path in (live, _rebot(xml, tmp_path / "again.json", xml)):
        assert next(iter(sources(path))).kind is Kind.ROBOT_JSON  # type: ignore[union-attr]
        assert load([path]).problems == []
        assert _told(load([path])) == _told(load([xml]))
    assert {each.test_id for each in load([live]).unrecorded} == {"Density.No start", "Density.No VPP"}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What Robot writes as JSON."""
    return write_output_xml(tmp_path_factory.mktemp("live") / "live.json", PASSED, UNRECORDED).read_bytes()


@pytest.mark.parametrize("step", [64, 1000, 1 << 20])
def test_blocks_of_any_size_give_the_same(live: bytes, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    expected = list(JsonScanner("x").scan(io.BytesIO(live)))
    monkeypatch.setattr("csit_utils.dataset.blocks.BLOCK_BYTES", step)
    assert list(JsonScanner("x").scan(io.BytesIO(live))) == expected
    assert len(expected) == len(PASSED) + len(UNRECORDED)


@settings(max_examples=share(40), deadline=None)
@given(st.floats(0, 1, exclude_max=True))
def test_json_that_is_cut_anywhere_gives_its_complete_tests_and_one_problem(live: bytes, share_of_file: float) -> None:
    whole = {each.record for each in JsonScanner("x").scan(io.BytesIO(live)) if isinstance(each, ScannedTest)}
    *tests, problem = JsonScanner("x").scan(io.BytesIO(live[: 1 + int(share_of_file * (len(live) - 3))]))
    assert isinstance(problem, Problem) and "truncated or damaged JSON" in problem.text
    assert {each.record for each in tests if isinstance(each, ScannedTest)} <= whole | {None}


FLAT = {
    "xml": (
        robot_output.XmlScanner, ("<robot><suite name='s'>", "", "</suite></robot>"),
        "<test id='t' name='n'><kw name='k'>{}<status status='PASS'/></kw><status status='SKIP'/></test>",
        "<msg time='2026-11-20T10:00:00' level='INFO'>nothing of interest</msg>" * 50,
    ),
    "json": (
        JsonScanner, ('{"generator":"Robot 7","suite":{"tests":[', ",", '],"name":"S"}}'),
        '{{"name":"n","status":"FAIL","body":[{}]}}', ",".join(['{"message":"nothing of interest"}'] * 100),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("form", FLAT)
def test_memory_of_an_output_is_flat(form: str) -> None:
    scanner, (begin, between, end), test, messages = FLAT[form]

    def peak(tests: int) -> int:
        stream = io.BytesIO((begin + between.join([test.format(messages)] * tests) + end).encode())
        tracemalloc.start()
        assert sum(isinstance(each, ScannedTest) for each in scanner("x").scan(stream)) == tests
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    peak(10)
    # 1.7 MB and 3.4 MB, many times the block of 128 KiB that is held; what is known of each test is kept.
    assert peak(1000) < 1.2 * peak(500) + 500_000


@settings(max_examples=share(100), deadline=None)
@given(st.binary(max_size=200), st.text('{}[]":,\\ntseuig', max_size=60))
def test_any_bytes_end_in_tests_and_problems(content: bytes, text: str) -> None:
    for each in (content, text.encode(), b'{"generator":"Robot 7","suite":{"tests":[' + text.encode()):
        assert all(isinstance(found, Scanned) for found in JsonScanner("x").scan(io.BytesIO(each)))


def test_refused_cells_and_names_of_nested_suites_are_found_in_json() -> None:
    cell = refused_cell(8, 8, 'needs "33"', source="x")
    logged = json.dumps(REFUSED_MARKER + REFUSED_CELLS.dump_json((cell.refused,)).decode())
    test = '{"name":"t","status":"FAIL","message":"a } \\" ]","body":[{"name":"x","tests":[{}]}]}'
    inner = (
        f'{{"setup":{{"body":[{{"message":{logged}}}]}},"tests":[{test}],'
        '"metadata":{"name":"none of this"},"name":"In\\u00fc"}'
    )
    content = f'{{"generator":"Robot 7.5","suite":{{"suites":[{inner}],"name":"Out"}}}}'
    refused, found = JsonScanner("x").scan(io.BytesIO(content.encode()))
    assert refused == cell
    assert found == ScannedTest("Out.Inü.t", "t", (), Status.FAIL, 'a } " ]', None)


def test_removed_records_are_read_of_their_archive_and_merged_messages_as_text(run: Path, tmp_path: Path) -> None:
    removed = _rebot(run / "output.xml", tmp_path / "removed.xml", removekeywords="ALL")
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.write(removed, "run/night.txt")
        for record in (run / "results").iterdir():
            archive.write(record, f"run/results/{record.name}")
    found = load([tmp_path / "run.zip"])
    assert (found.problems, len(found.recorded)) == ([], 3)
    assert {each.source for each in found.recorded} == {f"{tmp_path / 'run.zip'}!run/night.txt"}
    merged = _rebot(run / "output.xml", tmp_path / "merged.xml", run / "output.xml", merge=True)
    found = load([merged])
    assert _digests(found) == _digests(load([run / "output.xml"]))
    assert all("<" not in each.message and "re-executed" in each.message for each in found.recorded)


def test_records_of_another_run_are_not_taken_and_a_test_without_a_log_is_named(run: Path, tmp_path: Path) -> None:
    removed = _rebot(run / "output.xml", tmp_path / "removed.xml", removekeywords="ALL")
    (tmp_path / "results").mkdir()
    for made in PASSED:  # measured at another time
        (tmp_path / "results" / f"{made.test_name}.json").write_text(made.model_dump_json())
    found = load([removed])
    (problem,) = found.problems
    assert found.recorded == [] and problem.text.startswith(f"{removed}: 4 tests without the result record, such as ")
    test = '<test name="A"><status status="PASS"/></test>'
    (tmp_path / "dry.xml").write_text(f'<robot generator="Robot"><suite name="Dry">{test}</suite></robot>')
    (problem,) = load([tmp_path / "dry.xml"]).problems
    assert "1 test without the result record, such as 'Dry.A': it is not in the log" in problem.text


WITHOUT_RECORDS = {
    "passed tests": {"removekeywords": "ALL", "test": [made.test_name for made in PASSED]},
    "passed tests beside a failure with its record": {"removekeywords": "PASSED"},
}


def test_an_import_adds_no_empty_tests_and_can_be_repeated(run: Path, tmp_path: Path) -> None:
    first = _rebot(run / "output.xml", tmp_path / "passed.xml", **WITHOUT_RECORDS["passed tests"])
    (outcome,) = imported(tmp_path / "history", first)
    assert (outcome.tests, outcome.known, len(outcome.problems)) == (0, False, 1)
    (tmp_path / "results").symlink_to(run / "results")
    (outcome,) = imported(tmp_path / "history", first)
    assert (outcome.tests, outcome.problems) == (2, ())


COMMANDS = (
    *("show {0}", "report {0} -o {1}/page.html", "import {0} -o {1}/history", "export {0} --uti -o {1}/uti"),
    *("answer {0} --rate 1kpps", "trend {0}", "compare {0} {0}", "gate {0} {0}", "regoal {0}", "why {0} {0}"),
    *("suspects {0}", "place {0}"),
)


@pytest.mark.parametrize("kind", WITHOUT_RECORDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_that_records_are_missing(run: Path, tmp_path: Path, command: str, kind: str) -> None:
    removed = _rebot(run / "output.xml", tmp_path / "removed.xml", **WITHOUT_RECORDS[kind])
    done = invoked(*command.format(removed, tmp_path).split())
    assert done.exit_code != 0
    assert "2 tests without the result record" in f"{done.exception} {done.output} {done.stderr}"


@given(st.text(st.characters(codec="ascii"), max_size=80))
def test_escaped_text_of_a_message_is_what_it_was_but_for_its_spaces(text: str) -> None:
    plain = plain_message(f"*HTML* <b>{html.escape(text)}</b><br>")
    assert plain.split() == text.split()


def test_outputs_are_recognized_by_their_beginning_and_empty_ones_are_named(run: Path, tmp_path: Path) -> None:
    content = (run / "output.xml").read_bytes()
    live = write_output_xml(tmp_path / "night.out.json", PASSED)
    forms = {
        "monday": content, "tuesday.xml.gz": gzip.compress(content), "log.json": content, "xunit.xml": b"<testsuite/>",
        "log.html": b"<!DOCTYPE html><html/>", "wednesday.txt": live.read_bytes(),
    }  # fmt: skip
    for name, text in forms.items():
        (tmp_path / name).write_bytes(text)
    names = [path.name for path in files_of(tmp_path) if isinstance(path, Path)]
    assert sorted(names) == ["log.json", "monday", "night.out.json", "tuesday.xml.gz", "wednesday.txt"]
    found = load([tmp_path])
    assert (found.problems, len(found.recorded)) == ([], 5)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in names:
            archive.write(tmp_path / name, f"inside/{name}")
        archive.writestr("readme.txt", "none of these")
        archive.writestr("output.xml", "")
    (tmp_path / "output.xml").touch()
    packed_up = load([tmp_path])
    assert _digests(packed_up) == _digests(load([tmp_path / "all.zip"])) == _digests(found)
    empty = sorted(problem.source for problem in packed_up.problems)
    assert empty == [f"{tmp_path}/all.zip!output.xml", f"{tmp_path}/output.xml"], "named, and not passed over"


def test_outputs_are_found_whatever_their_names_and_read_before_record_files(tmp_path: Path) -> None:
    assert output_of(tmp_path) == tmp_path / "output.xml"
    live = write_output_xml(tmp_path / "out.json", PASSED[:1])
    (tmp_path / "journal.jsonl").write_text("{}\n")
    assert output_of(tmp_path) == live
    (tmp_path / "a.json").write_text(PASSED[0].model_dump_json())
    assert [each.source for each in load([tmp_path]).recorded] == [str(live)]
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in ("a.json", "out.json"):
            archive.write(tmp_path / name, name)
    assert [each.source for each in load([tmp_path / "all.zip"]).recorded] == [f"{tmp_path}/all.zip!out.json"]


def test_elements_beyond_their_bounds_are_skipped_or_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robot_output, "LARGEST_BETWEEN_BYTES", 1000)
    monkeypatch.setattr("csit_utils.dataset.blocks.BLOCK_BYTES", 200)
    long = f'<msg time="2026-11-20T10:00:00" level="INFO">{{}}{"x" * 5000}</msg>'
    rest = '<test name="t"><status status="FAIL"/></test></suite></robot>'
    setup = f'<robot generator="R"><suite name="S"><kw name="k" type="SETUP">{long}</kw>{rest}'
    assert [type(each) for each in _xml(setup.format(""))] == [ScannedTest]
    *_, problem = _xml(setup.format(REFUSED_MARKER))
    assert isinstance(problem, Problem)
    assert "an element between tests is larger than 0 MB, the bound for these" in problem.text
    monkeypatch.setattr("csit_utils.dataset.blocks.LARGEST_TEST_BYTES", 2_000_000)
    monkeypatch.setattr("csit_utils.dataset.blocks.BLOCK_BYTES", 100_000)
    small = '<test name="t"><status status="FAIL"/></test>'
    content = f'<robot generator="R"><suite name="S">{small}<test name="u"><kw><msg>{"x" * 3_000_000}</msg></kw>'
    test, problem = _xml(content)
    assert isinstance(test, ScannedTest) and isinstance(problem, Problem)
    assert problem.text == "x: a test is larger than 2 MB, the bound for tests; complete parts were read"


def _xml(text: str) -> list[Scanned]:
    return list(robot_output.XmlScanner("x").scan(io.BytesIO(text.encode())))


KEYWORDS = ["ALL", "PASSED", "FOR", "WUKS", "NAME:BuiltIn.Log", "TAG:x"]
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "removekeywords": st.lists(st.sampled_from(KEYWORDS), min_size=1, max_size=2),
        "flattenkeywords": st.sampled_from(["NAME:*", "FOR", "ITERATION"]), "legacyoutput": st.just(True),
        "name": st.sampled_from(["A & B", "x"]), "loglevel": st.sampled_from(["TRACE", "WARN", "NONE"]),
        "settag": st.just("night"), "merge": st.just(True), "suitestatlevel": st.just(1),
    },
)  # fmt: skip


@settings(max_examples=share(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OPTIONS, st.sampled_from(["xml", "json"]), st.booleans())
def test_any_options_of_rebot_give_the_same_figures_or_a_problem(
    run: Path, tmp_path: Path, options: dict[str, object], suffix: str, beside: bool
) -> None:
    """Figures of a run are all there, or a sentence names the file, and none are others."""
    expected = load([run / "output.xml"])
    folder = run if beside else tmp_path
    more = [run / "output.xml"] if "merge" in options else []
    changed = _rebot(run / "output.xml", folder / f"changed.{suffix}", *more, **options)
    found = load([changed])
    with TemporaryDirectory() as history:
        (outcome,) = imported(Path(history) / "history", changed)
    changed.unlink()
    assert outcome.tests == len(found.recorded) + len(found.unrecorded)
    assert list(outcome.problems) == [problem.text for problem in found.problems]
    assert _digests(found) <= _digests(expected)
    if _digests(found) != _digests(expected):
        assert any(problem.text.startswith(f"{changed}: ") for problem in found.problems)
    assert all(each.status is not Status.PASS for each in found.unrecorded)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tests with records, one of which failed, and two without."""
    return write_output_xml(tmp_path_factory.mktemp("good") / "output.xml", (PASSED[0], FAILED), UNRECORDED)


def test_what_robot_writes_is_read_back_also_a_failure_after_the_record(good: Path, tmp_path: Path) -> None:
    dataset = load([good])
    assert dataset.problems == []
    assert dataset.recorded[0].record == PASSED[0]
    ended = [(item.status, item.message) for item in dataset.recorded]
    assert ended == [(Status.PASS, ""), (Status.FAIL, "needs 33 cores on NUMA 0, 28 available")]
    assert [(each.test_id, each.status, each.message, each.tags) for each in dataset.unrecorded] == [
        ("Density.No start", Status.FAIL, "nf-1-1 is <down>", ("2R1C", "CSC")),
        ("Density.No VPP", Status.SKIP, "needs VPP", ()),
    ]
    changed = good.read_text().replace('<status status="PASS"', '<status status="FAIL"')
    (tmp_path / "output.xml").write_text(changed)
    assert load([tmp_path]).recorded[0].status is Status.FAIL


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x00\x01\x02", "no result, looks like binary data; ./csit reads outputs of Robot Framework"),
        (b"load,loss\n1e6,0\n", "no result, looks like a table (CSV)"),
        (b"TRex v3.03\nready\n", "no result, looks like text; "),
        (b"\xd4\xc3\xb2\xa1\2\0\4\0", "no result, looks like a packet capture; "),
        (bytes(257) + b"ustar\0", "no result, looks like a tar archive; "),
        (b'{"ports": {}, "global": {}, "xx": 1}', "not a result record, but JSON with the keys 'ports', 'global', 'xx"),
    ],
)
def test_other_files_are_named(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "other.xml"
    file.write_bytes(content)
    (problem,) = items(file)
    assert isinstance(problem, Problem)
    assert reason in problem.text


def test_a_file_is_what_its_content_says_behind_any_byte_order_mark(good: Path, tmp_path: Path) -> None:
    record, output = tmp_path / "record.xml", tmp_path / "output.json"
    record.write_text(_record(test_id="another"), encoding="utf-8")
    output.write_bytes(b"\n" + good.read_bytes())
    dataset = load([record, output])
    assert (len(dataset.recorded), dataset.problems) == (3, [])
    failed = {"name": "b", "status": "FAIL", "message": "no traffic", "body": []}
    outputs = [{"generator": "Robot 7.1 (Python)", "suite": {"name": "a", "tests": [failed]}}]
    contents = [good.read_bytes(), _record(test_id="another").encode(), *map(packed, [*EXAMPLES, *outputs])]
    for number, content in enumerate(contents):
        (file := tmp_path / f"{number}.json").write_bytes(b"\xef\xbb\xbf" + content)
        found = load([file])
        assert not found.problems and [*found.recorded, *found.foreign, *found.unrecorded], content[:80]


def _record(**changes: object) -> str:
    made = result(CSC, 1, 1, histograms=False).model_dump_json()
    return json.dumps({**json.loads(made), **changes}) if changes else made


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_record(schema_version="9.0"), "has schema version 9.0, and this release reads version"),
        (_record(surprise=1), "not valid: surprise"), ("{", "not valid JSON"), ("[" * 100_000, "not valid JSON"),
        ("[1, 2]", "not a result record, but a JSON list"),
    ],
)  # fmt: skip
def test_a_bad_record_is_named_with_file_and_test(tmp_path: Path, text: str, reason: str) -> None:
    dump = {PASSED[0].test_id: text, PASSED[1].test_id: PASSED[1].model_dump_json()}
    source = write_output_xml(tmp_path / "output.xml", PASSED, dump=lambda made: dump[made.test_id])
    dataset = load([source])
    (problem,) = dataset.problems
    for part in (reason, str(source), "Density.64B-1c-csc-1ch-1n-ndrpdr"):
        assert part in problem.text
    assert len(dataset.recorded) == 1, "the other record is still there"
    assert [(item.status, item.message) for item in dataset.unrecorded] == [(Status.FAIL, problem.text)]


def test_other_files_and_hidden_folders_of_results_are_left_out_unless_they_are_named(tmp_path: Path) -> None:
    others = ("qualifications/48bf", "bisect/bisection", "later/dataset", "history/dataset", ".venv/one")
    for other in (tmp_path / f"{name}.json" for name in others):
        other.parent.mkdir()
        other.write_text("{}", encoding="utf-8")
    (problem,) = load([tmp_path]).problems
    assert problem.text.endswith(f" no .json records; name the dataset {tmp_path / 'history'} instead")
    output = write_output_xml(tmp_path / "output.xml", [result(CSC, 1, 1)])
    assert files_of(tmp_path) == (output,)
    assert files_of(tmp_path / ".venv") == (tmp_path / ".venv" / "one.json",)
    (tmp_path / "empty").mkdir()
    (problem,) = load([tmp_path / "empty"]).problems
    assert "no output.xml" in problem.text
