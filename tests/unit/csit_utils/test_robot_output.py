"""Outputs of Robot Framework in all forms: the same figures, or a sentence on what is missing."""

import gzip
import html
import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from robot.rebot import rebot

from csit_utils.dataset import scan
from csit_utils.dataset.inputs import files_of, output_of, sources
from csit_utils.dataset.items import Problem, Status
from csit_utils.dataset.kinds import Kind
from csit_utils.dataset.scan import Scanned, ScannedTest
from csit_utils.dataset.scan_json import scan_json
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.recording.marker import REFUSED_MARKER, plain_message
from resources.libraries.python.studies.density.model.record import REFUSED_CELLS
from tests.loaded import Dataset, load
from tests.unit.csit_utils.builders import does_not_fit, refused_cell, result
from tests.unit.csit_utils.datasets import imported, invoked
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.examples import share

PASSED = result(ServiceType.CSC, 1, 1, histograms=False), result(ServiceType.CSC, 2, 1, histograms=False)
FAILED = does_not_fit(ServiceType.CSC, 8, 8)
UNRECORDED = ("No start", "Fail", "nf-1-1 is <down>", ("CSC", "2R1C")), ("No VPP", "Skip", "needs VPP", ())
REMOVED = "the result record, such as 'Density.64B-1c-csc-1ch-1n-ndrpdr': rebot --removekeywords removed it"


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


def _json(path: Path) -> list[Scanned]:
    with path.open("rb") as stream:
        return list(scan_json(stream, "x"))


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


@pytest.mark.parametrize("step", [64, 1000, 1 << 20])
def test_blocks_of_any_size_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    live = write_output_xml(tmp_path / "live.json", PASSED, UNRECORDED)
    expected = _json(live)
    monkeypatch.setattr("csit_utils.dataset.blocks.BLOCK_BYTES", step)
    assert _json(live) == expected
    assert len(expected) == len(PASSED) + len(UNRECORDED)


@settings(max_examples=share(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0, 1, exclude_max=True))
def test_json_that_is_cut_anywhere_gives_its_complete_tests_and_one_problem(run: Path, share_of_file: float) -> None:
    content = _live(run)
    whole = [each for each in scan_json(io.BytesIO(content), "x") if isinstance(each, ScannedTest)]
    *tests, problem = scan_json(io.BytesIO(content[: 1 + int(share_of_file * (len(content) - 3))]), "x")
    assert isinstance(problem, Problem)
    assert "truncated or damaged JSON" in problem.text
    assert {each.record for each in tests if isinstance(each, ScannedTest) and each.record} <= {
        each.record for each in whole
    }


def _live(run: Path) -> bytes:
    path = run.parent / "live.json"
    if not path.exists():
        write_output_xml(path, PASSED, UNRECORDED)
    return path.read_bytes()


FLAT = {
    "xml": (
        "<test id='t' name='n'><kw name='k'>{}<status status='PASS'/></kw><status status='SKIP'/></test>",
        "<msg time='2026-11-20T10:00:00' level='INFO'>nothing of interest</msg>" * 50,
        ("<robot><suite name='s'>", "", "</suite></robot>"),
        scan.scan,
    ),
    "json": (
        '{{"name":"n","status":"FAIL","body":[{}]}}',
        ",".join(['{"message":"nothing of interest"}'] * 100),
        ('{"generator":"Robot 7","suite":{"tests":[', ",", '],"name":"S"}}'),
        scan_json,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FLAT)
def test_memory_of_an_output_is_flat(form: str) -> None:
    test, messages, (begin, between, end), scanner = FLAT[form]

    def peak(tests: int) -> int:
        stream = io.BytesIO((begin + between.join([test.format(messages)] * tests) + end).encode())
        tracemalloc.start()
        assert sum(isinstance(each, ScannedTest) for each in scanner(stream, "x")) == tests
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
        assert all(isinstance(found, Scanned) for found in scan_json(io.BytesIO(each), "x"))


def test_refused_cells_and_names_of_nested_suites_are_found_in_json() -> None:
    cell = refused_cell(8, 8, 'needs "33"', source="x")
    logged = json.dumps(REFUSED_MARKER + REFUSED_CELLS.dump_json((cell.refused,)).decode())
    test = '{"name":"t","status":"FAIL","message":"a } \\" ]","body":[{"name":"x","tests":[{}]}]}'
    inner = (
        f'{{"setup":{{"body":[{{"message":{logged}}}]}},"tests":[{test}],'
        '"metadata":{"name":"none of this"},"name":"In\\u00fc"}'
    )
    content = f'{{"generator":"Robot 7.5","suite":{{"suites":[{inner}],"name":"Out"}}}}'
    refused, found = scan_json(io.BytesIO(content.encode()), "x")
    assert refused == cell
    assert found == ScannedTest("Out.Inü.t", "t", (), Status.FAIL, 'a } " ]', None)


@pytest.mark.parametrize("suffix", ["xml", "json"])
@pytest.mark.parametrize("keywords", ["ALL", "PASSED"])
def test_removed_records_are_read_beside_the_output(run: Path, suffix: str, keywords: str) -> None:
    removed = _rebot(run / "output.xml", run / f"removed.{suffix}", removekeywords=keywords)
    found, expected = load([removed]), load([run / "output.xml"])
    removed.unlink()
    assert found.problems == []
    assert [set(each) for each in _told(found)] == [set(each) for each in _told(expected)]


def test_removed_records_are_read_in_the_same_archive(run: Path, tmp_path: Path) -> None:
    removed = _rebot(run / "output.xml", tmp_path / "removed.xml", removekeywords="ALL")
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.write(removed, "run/night.txt")
        for record in (run / "results").iterdir():
            archive.write(record, f"run/results/{record.name}")
    found = load([tmp_path / "run.zip"])
    assert (found.problems, len(found.recorded)) == ([], 3)
    assert {each.source for each in found.recorded} == {f"{tmp_path / 'run.zip'}!run/night.txt"}


def test_records_of_another_run_are_not_taken(run: Path, tmp_path: Path) -> None:
    removed = _rebot(run / "output.xml", tmp_path / "removed.xml", removekeywords="ALL")
    (tmp_path / "results").mkdir()
    for made in PASSED:  # measured at another time
        (tmp_path / "results" / f"{made.test_name}.json").write_text(made.model_dump_json())
    found = load([removed])
    assert found.recorded == []
    (problem,) = found.problems
    assert problem.text.startswith(f"{removed}: 4 tests without {REMOVED}; name the output")


def _kept_failure(run: Path, folder: Path) -> Path:
    """An output of which only a failed test has its record."""
    return _rebot(run / "output.xml", folder / "removed.xml", removekeywords="PASSED")


def test_a_passed_test_that_logged_nothing_is_named_too(tmp_path: Path) -> None:
    dry = tmp_path / "dry.xml"
    dry.write_text(
        '<robot generator="Robot"><suite name="Dry"><test name="A"><status status="PASS"/></test></suite></robot>'
    )
    (problem,) = load([dry]).problems
    assert "1 test without the result record, such as 'Dry.A': it is not in the log" in problem.text


def _passed_only(run: Path, folder: Path) -> Path:
    """An output of passed tests, without their records."""
    names = [made.test_name for made in PASSED]
    return _rebot(run / "output.xml", folder / "passed.xml", removekeywords="ALL", test=names)


def test_an_import_adds_no_empty_tests_and_can_be_repeated(run: Path, tmp_path: Path) -> None:
    first = _passed_only(run, tmp_path)
    (outcome,) = imported(tmp_path / "history", first)
    assert (outcome.tests, outcome.known) == (0, False)
    assert "2 tests without the result record" in outcome.problems[0]
    (tmp_path / "results").symlink_to(run / "results")
    (outcome,) = imported(tmp_path / "history", first)
    assert (outcome.tests, outcome.problems) == (2, ())


COMMANDS = (
    *("show {0}", "report {0} -o {1}/page.html", "import {0} -o {1}/history", "export {0} --uti -o {1}/uti"),
    *("answer {0} --rate 1kpps", "trend {0}", "compare {0} {0}", "gate {0} {0}", "regoal {0}", "why {0} {0}"),
    *("suspects {0}", "place {0}"),
)


@pytest.mark.parametrize("output", [_passed_only, _kept_failure])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_reads_says_that_records_are_missing(
    run: Path, tmp_path: Path, command: str, output: Callable[[Path, Path], Path]
) -> None:
    done = invoked(*command.format(output(run, tmp_path), tmp_path).split())
    assert done.exit_code != 0
    assert "2 tests without the result record" in f"{done.exception} {done.output} {done.stderr}"


@given(st.text(st.characters(codec="ascii"), max_size=80))
def test_escaped_text_of_a_message_is_what_it_was_but_for_its_spaces(text: str) -> None:
    plain = plain_message(f"*HTML* <b>{html.escape(text)}</b><br>")
    assert plain.split() == text.split()


def test_merged_messages_are_shown_as_text(run: Path, tmp_path: Path) -> None:
    merged = _rebot(run / "output.xml", tmp_path / "merged.xml", run / "output.xml", merge=True)
    found = load([merged])
    assert _digests(found) == _digests(load([run / "output.xml"]))
    assert all("<" not in each.message and "re-executed" in each.message for each in found.recorded)


def test_outputs_are_recognized_by_their_beginning(run: Path, tmp_path: Path) -> None:
    content = (run / "output.xml").read_bytes()
    live = write_output_xml(tmp_path / "night.out.json", PASSED)
    for name, text in (
        ("monday", content),
        ("tuesday.xml.gz", gzip.compress(content)),
        ("log.json", content),
        ("xunit.xml", b"<testsuite/>"),
        ("log.html", b"<!DOCTYPE html><html/>"),
        ("wednesday.txt", live.read_bytes()),
    ):
        (tmp_path / name).write_bytes(text)
    names = [path.name for path in files_of(tmp_path) if isinstance(path, Path)]
    assert sorted(names) == ["log.json", "monday", "night.out.json", "tuesday.xml.gz", "wednesday.txt"]
    found = load([tmp_path])
    assert (found.problems, len(found.recorded)) == ([], 5)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in names:
            archive.write(tmp_path / name, f"inside/{name}")
        archive.writestr("readme.txt", "none of these")
    assert _digests(load([tmp_path / "all.zip"])) == _digests(found)


def test_an_output_that_is_empty_is_named_and_not_passed_over(run: Path, tmp_path: Path) -> None:
    (tmp_path / "output.xml").touch()
    (tmp_path / "night.xml").write_bytes((run / "output.xml").read_bytes())
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("output.xml", "")
    found = load([tmp_path])
    assert len(found.recorded) == 3
    named = sorted(problem.source for problem in found.problems)
    assert named == [f"{tmp_path}/all.zip!output.xml", f"{tmp_path}/output.xml"]


def test_outputs_are_read_before_record_files_also_in_archives(tmp_path: Path) -> None:
    live = write_output_xml(tmp_path / "z.json", PASSED[:1])
    (tmp_path / "a.json").write_text(PASSED[0].model_dump_json())
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / "a.json", "a.json")
        archive.write(live, "z.json")
    assert [each.source for each in load([tmp_path / "all.zip"]).recorded] == [f"{tmp_path}/all.zip!z.json"]
    (tmp_path / "all.zip").unlink()
    assert [each.source for each in load([tmp_path]).recorded] == [str(live)]


def test_the_output_of_a_run_is_found_whatever_its_name(tmp_path: Path) -> None:
    assert output_of(tmp_path) == tmp_path / "output.xml"
    live = write_output_xml(tmp_path / "out.json", PASSED)
    (tmp_path / "journal.jsonl").write_text("{}\n")
    assert output_of(tmp_path) == live


def test_a_long_message_of_a_suite_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "LARGEST_BETWEEN_BYTES", 1000)
    monkeypatch.setattr("csit_utils.dataset.blocks.BLOCK_BYTES", 200)
    long = f'<msg time="2026-11-20T10:00:00" level="INFO">{{}}{"x" * 5000}</msg>'
    rest = '<test name="t"><status status="FAIL"/></test></suite></robot>'
    setup = f'<robot generator="R"><suite name="S"><kw name="k" type="SETUP">{long}</kw>{rest}'
    assert [type(each) for each in _xml(setup.format(""))] == [ScannedTest]
    *_, problem = _xml(setup.format(REFUSED_MARKER))
    assert isinstance(problem, Problem)
    assert "an element between tests is larger than 0 MB, the bound for these" in problem.text


def test_a_test_beyond_the_bound_is_not_called_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csit_utils.dataset.blocks.LARGEST_TEST_BYTES", 2_000_000)
    monkeypatch.setattr("csit_utils.dataset.blocks.BLOCK_BYTES", 100_000)
    small = '<test name="t"><status status="FAIL"/></test>'
    content = f'<robot generator="R"><suite name="S">{small}<test name="u"><kw><msg>{"x" * 3_000_000}</msg></kw>'
    test, problem = _xml(content)
    assert isinstance(test, ScannedTest)
    assert isinstance(problem, Problem)
    assert problem.text == "x: a test is larger than 2 MB, the bound for tests; complete parts were read"


def _xml(text: str) -> list[Scanned]:
    return list(scan.scan(io.BytesIO(text.encode()), "x"))


KEYWORDS = ["ALL", "PASSED", "FOR", "WUKS", "NAME:BuiltIn.Log", "TAG:x"]
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "removekeywords": st.lists(st.sampled_from(KEYWORDS), min_size=1, max_size=2),
        "flattenkeywords": st.sampled_from(["NAME:*", "FOR", "ITERATION"]),
        "legacyoutput": st.just(True),
        "name": st.sampled_from(["A & B", "x"]),
        "loglevel": st.sampled_from(["TRACE", "WARN", "NONE"]),
        "settag": st.just("night"),
        "merge": st.just(True),
        "suitestatlevel": st.just(1),
    },
)


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
