"""A dataset says what its files say, takes each once, and is whole after whatever happens; so are large files."""

import gc
import gzip
import hashlib
import io
import json
import os
import re
import resource
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from robot.api import TestSuite as Suite

from csit_utils.commands.results import inputs
from csit_utils.dataset.flatten import TABLES
from csit_utils.dataset.items import ReadError
from csit_utils.dataset.rows import InstanceRow, LatencyRow
from csit_utils.dataset.store.batch import FileImport, import_all
from csit_utils.dataset.store.layout import Layout
from csit_utils.dataset.store.stored_contents import Stored
from resources.libraries.python import unpacking
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.findings import HopLoss, LocatedLosses, ThreadLoad, Usage
from resources.libraries.python.model.measurements.node_costs import NodeCost, NodeCosts
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.recording.marker import REFUSED_MARKER
from resources.libraries.python.recording.writer import pack
from resources.libraries.python.studies.density.model import REFUSED_CELLS, DensityRecord
from resources.libraries.python.unpacking import PACKED
from tests.builders import raising
from tests.loaded import load
from tests.unit.csit_utils.builders import CSC, CSP, does_not_fit, mrr_result, refused_cell, result
from tests.unit.csit_utils.datasets import imported, invoked
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.packers import PACKERS

_LOCATED = LocatedLosses(
    purpose="mrr", load_pps=1e6, offered_pps=1e6, trials=1, sent=100, received=91,
    hops=(HopLoss(instance=1, direction=Direction.FORWARD, last="a", next="b", owner="nf-1-1", cause="queue", lost=9),),
    usage=Usage(threads=(ThreadLoad(owner="nf-1-1", interface="a", cpu=5, running=0.9, waiting=0.1),)),
)  # fmt: skip
_COSTS = NodeCosts(
    load="PDR", load_pps=1e6, received=90, read_s=0.1, nodes=(NodeCost(part="vswitch", node="ip4-lookup", packets=90),)
)

_FULL = result(CSC, 2, 1, located=_LOCATED, costs=_COSTS)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five tests, of which two left no record."""
    results = [_FULL, mrr_result(CSP, 1, 2), does_not_fit(CSC, 8, 8)]
    unrecorded = [("No start", "Fail", "nf-1-1 is <down>", ("CSC", "2R1C")), ("No VPP", "Skip", "needs VPP", ())]
    return write_output_xml(tmp_path_factory.mktemp("good") / "output.xml", results, unrecorded)


def _tree(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_it_says_what_its_files_say(output: Path, tmp_path: Path) -> None:
    (outcome,) = imported(tmp_path / "d", output, label="nightly")
    stored, memory = Stored(Layout(tmp_path / "d")), InMemory(load([output]))
    assert (outcome.tests, outcome.problems) == (5, ())
    of_run = {"run": stored.tests[0].run, "label": "nightly"}
    expected = {row.test_id: replace(row, **of_run) for row in memory.tests}
    found = {row.test_id: row for row in stored.tests}
    for name, row in expected.items():
        # Without a record a test is named after its run, not after a path that the next night uses again.
        assert found[name] == (row if row.recorded else replace(row, anchor=found[name].anchor))
    anchors = {row.anchor for row in memory.tests if row.recorded}
    for kind in TABLES:
        assert list(stored.rows(kind, anchors=anchors)) == list(memory.rows(kind)) != []
    both = {*memory.rows(InstanceRow), *memory.rows(LatencyRow)}
    assert set(stored.rows(InstanceRow, LatencyRow, anchors=anchors)) == both
    assert {row.histogram for row in stored.rows(LatencyRow)} == {None}
    assert stored.environments == memory.environments
    assert [stored.record(anchor) for anchor in anchors] == [memory.record(anchor) for anchor in anchors]
    dataset, tags = load([output]), {row.test_id: tuple(row.tags.split()) for row in stored.tests}
    items = [replace(item, named_digest=item.digest, label="nightly") for item in dataset.recorded]
    items += [replace(item, tags=tags[item.test_id]) for item in dataset.unrecorded]
    assert sorted(map(str, stored.items())) == sorted(map(str, items))
    with pytest.raises(KeyError):
        stored.record("test-none")


@pytest.mark.parametrize("figure", ["real_cores", "version", "planned"])
def test_a_short_form_without_a_counted_figure_is_counted_anew(tmp_path: Path, figure: str) -> None:
    """As a release wrote it that did not count the figure yet."""

    def uncounted(record: DensityRecord) -> str:
        short = json.loads(pack(record))
        del short["counted"][figure]
        return json.dumps(short, separators=(",", ":"))

    rows = []
    for name, dump in (("whole", DensityRecord.model_dump_json), ("earlier", uncounted)):
        path = write_output_xml(tmp_path / f"{name}.xml", [result(CSC, 2, 1)], dump=dump)
        imported(tmp_path / name, path)
        rows += Stored(Layout(tmp_path / name)).tests
    expected, found = (replace(row, source="", run="") for row in rows)
    assert found == expected


def test_importing_again_changes_nothing_whatever_its_name_and_packing(output: Path, tmp_path: Path) -> None:
    imported(tmp_path / "d", output)
    before, content = _tree(tmp_path / "d"), output.read_bytes()
    forms = {f"output.xml{ending}": PACKERS[Path(f"output.xml{ending}").suffix](content) for ending in PACKED}
    forms |= {"output-2.xml": content, "all.zip": nested(content, "night/output.xml", 2)}
    for name, packed in forms.items():
        (tmp_path / name).write_bytes(packed)
    done = imported(tmp_path / "d", output, *(tmp_path / name for name in forms), label="other")
    assert [each.known for each in done] == [True] * 6
    assert _tree(tmp_path / "d") == before


def test_records_as_files_are_taken_where_no_output_has_them(output: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "run" / "results").mkdir(parents=True)
    (folder / "known.json").write_text(_FULL.model_dump_json())
    (folder / "fresh.json").write_text(result(CSC, 3, 1, histograms=False).model_dump_json())
    (folder / "bad.json").write_text('{"schema_version": "0.1"}')
    done = imported(tmp_path / "d", output, tmp_path / "run")
    assert (done[-1].tests, len(done[-1].problems)) == (1, 1)
    assert len(Stored(Layout(tmp_path / "d")).tests) == 6
    before = _tree(tmp_path / "d")
    assert imported(tmp_path / "d", tmp_path / "run")[-1].problems == done[-1].problems
    assert _tree(tmp_path / "d") == before


@pytest.mark.parametrize("step", ["Layout.claim", "Layout.staged", "Layout.commit", "_sync", "replace_file"])
def test_an_import_that_is_killed_leaves_nothing_and_the_next_one_goes_on(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Before rows are read, staged, moved into their places, and named; the last step of all is `replace_file`."""
    half, layout = tmp_path / "d" / ".importing", Layout.make(tmp_path / "d")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(f"csit_utils.dataset.store.layout.{step}", raising(KeyboardInterrupt()))
        imported(tmp_path / "d", output)
    assert Stored(layout).tests == []
    half.mkdir()
    (half / "half-0.tests").write_bytes(b"PAR1")
    imported(tmp_path / "d", output)
    assert len(Stored(Layout(tmp_path / "d")).tests) == 5
    assert not half.exists()


@pytest.mark.parametrize("processes", [1, 2])
def test_files_with_the_same_content_are_imported_once_by_however_many_processes(
    output: Path, tmp_path: Path, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csit_utils.dataset.store.batch.PARALLEL_BYTES", 0)
    other, cut = tmp_path / "output-b.xml", [tmp_path / f"output-{number}.xml" for number in range(4)]
    other.write_bytes(output.read_bytes().replace(b"2026-11-20", b"2026-11-21"))
    for path in cut:
        path.write_bytes(output.read_bytes()[:-3000])
    imported(tmp_path / "one", *cut, other)
    every = imported(tmp_path / "d", *cut, other, processes=processes)
    done = [each for each in every if each.source != str(other)]
    assert _tree(tmp_path / "one") == _tree(tmp_path / "d")
    assert sorted(each.known for each in done) == [False, True, True, True]
    assert [sum(getattr(each, name) for each in done) for name in ("added", "repeated", "earlier")] == [1, 3, 0]
    assert len({each.tests for each in done}) == 1
    assert all(each.source in text for each in done for text in each.problems)
    assert len(Layout(tmp_path / "d").imports()) == 2


def nights_of_records(folder: Path, count: int, **changes: object) -> Path:
    """A folder with a record of each night."""
    folder.mkdir()
    made = result(CSC, 2, 1, histograms=False)
    for night in range(count):
        begun = f"2026-{1 + night // 28:02d}-{1 + night % 28:02d}T22:00:00+00:00"
        later = made.model_copy(update={"started_at": begun, **changes})
        (folder / f"{night}.json").write_text(later.model_dump_json())
    return folder


@pytest.mark.slow
def test_many_nights_in_one_folder_do_not_open_many_files_at_once(tmp_path: Path) -> None:
    run, allowed = nights_of_records(tmp_path / "run", 40), resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 30, allowed[1]))
    try:
        (outcome,) = imported(tmp_path / "d", run)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, allowed)
    assert (outcome.tests, outcome.problems) == (40, ())
    assert len(Stored(Layout(tmp_path / "d")).tests) == 40


@pytest.mark.parametrize("text", ["", "x" * 200_000], ids=["buffered", "written at once"])
def test_a_full_disk_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], text: str
) -> None:
    """And Arrow prints no further one when it frees the files."""
    run = nights_of_records(tmp_path / "run", 3, message=text)
    monkeypatch.setattr(Layout, "staged", lambda *_: Path("/dev/full"))
    gc.freeze()  # what other tests have left is not looked at below
    with pytest.raises(OSError, match="No space left on device"):
        imported(tmp_path / "d", run)
    gc.collect()
    assert capfd.readouterr().err == ""


def test_a_record_with_half_a_character_is_named_and_costs_nothing_else(output: Path, tmp_path: Path) -> None:
    half = tmp_path / "output-half.xml"
    half.write_bytes(output.read_bytes().replace(b'"message":""', b'"message":"&#xD800;"'))
    (outcome,) = imported(tmp_path / "d", half)
    assert (outcome.tests, [str(half) in problem for problem in outcome.problems]) == (5, [True, True])
    recorded = [row.test_name for row in Stored(Layout(tmp_path / "d")).tests if row.recorded]
    assert recorded == [does_not_fit(CSC, 8, 8).test_name]


@pytest.mark.parametrize("text", ["digest", "record"])
def test_texts_of_details_that_are_damaged_are_named(output: Path, tmp_path: Path, text: str) -> None:
    """Digests where records are imported, and records where they are read."""
    imported(tmp_path / "d", output)
    path = max((tmp_path / "d" / "details").rglob("*.arrow"), key=lambda each: each.stat().st_size)
    with pa.OSFile(str(path)) as file:
        whole = pa.ipc.open_file(file).get_batch(0).column(text)[0].as_py().encode()[:60]
    path.write_bytes(path.read_bytes().replace(whole, b"\xff" * len(whole)))
    record = tmp_path / "record.json"
    record.write_text(result(CSC, 3, 1).model_dump_json(), encoding="utf-8")
    with pytest.raises(ReadError, match=f"{re.escape(str(path))}: damaged; import its file again: .*UTF"):
        imported(tmp_path / "d", record) if text == "digest" else list(Stored(Layout(tmp_path / "d")).items())


def test_a_column_that_older_software_did_not_write_has_its_default(output: Path, tmp_path: Path) -> None:
    imported(tmp_path / "d", output)
    (path,) = (path for path in (tmp_path / "d" / "tests").rglob("testbed=local/**/*.parquet"))
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns(["origin", "remove_s"]), path)
    rows = [row for row in Stored(Layout(tmp_path / "d")).tests if row.testbed == "local"]
    assert {(row.origin, row.remove_s) for row in rows} == {("csit-density", None)}


def nested(inner: bytes, name: str, depth: int) -> bytes:
    """An archive with a file in so many archives."""
    for _ in range(depth):
        outer = io.BytesIO()
        with zipfile.ZipFile(outer, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(name, inner)
        inner, name = outer.getvalue(), "inner.zip"
    return inner


ARCHIVES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut.xml.gz": (lambda content: gzip.compress(content)[:-2000], "too early"),
    "cut.zip": (lambda content: nested(content, "output.xml", 1)[:-100], "damaged"),
    "other.zip": (lambda _: nested(b"", "readme.txt", 1), "no output.xml and no .json records"),
    "deep.zip": (lambda content: nested(content, "output.xml", 5), "deep"),
    "bomb.xml.gz": (lambda _: gzip.compress(b"<robot><suite name='s'>" + b" " * 50_000_000), "unpack to more than"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_bad_archives_are_named(output: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "FREE_BYTES", 100_000)
    packed, reason = ARCHIVES[name]
    (tmp_path / name).write_bytes(packed(output.read_bytes()))
    done = imported(tmp_path / "d", tmp_path / name, output)
    (problem,) = (text for each in done for text in each.problems)
    assert reason in problem and name in problem
    assert len(Stored(Layout(tmp_path / "d")).tests) >= 5, "the other file is there"


def test_progress_is_shown_on_a_terminal_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [write_output_xml(tmp_path / f"{each.test_name}.xml", [each], dump=pack) for each in _RESULTS]
    terminal = type("Terminal", (io.StringIO,), {"isatty": lambda _: True})()
    monkeypatch.setattr("sys.stderr", terminal)
    for name in ("_QUIET_S", "_BETWEEN_S"):
        monkeypatch.setattr(inputs, name, 0.0)
    assert len(inputs.opened(files, quickly=True).contents().tests) == len(_RESULTS)
    first, *lines, last = terminal.getvalue().split("\r\x1b[K")
    shown = [int(line.removesuffix(" s left").partition(" % of 3 files, about ")[0]) for line in lines]
    assert first == last == "" and shown == sorted(shown) and {33, 100} <= set(shown)


def test_a_folder_with_something_else_is_left_alone(output: Path) -> None:
    with pytest.raises(ConfigError, match="neither a dataset nor empty"):
        Layout.make(output.parent)


def test_a_file_that_vanishes_is_named_and_its_neighbours_are_imported(output: Path, tmp_path: Path) -> None:
    every = [tmp_path / f"output-{number}.xml" for number in range(4)]
    for number, path in enumerate(every):
        path.write_bytes(output.read_bytes().replace(b"2026-11-20", b"2026-11-2%d" % number))
    layout = Layout.make(tmp_path / "d")
    with layout.writing(lambda: None):
        outcomes = import_all(layout, every, None)
        assert next(outcomes) == 4
        every[2].unlink()
        done = [each for each in outcomes if isinstance(each, FileImport)]
    assert {each.source: each.tests for each in done} == dict(zip(map(str, every), (5, 5, 0, 5), strict=True))
    (problem,) = (text for each in done for text in each.problems)
    assert problem == f"{every[2]}: cannot be read: No such file or directory"
    assert {made.source for made in layout.imports()} == {str(path) for path in every if path.exists()}


def test_the_command_tells_new_files_from_repeated_and_earlier_ones(output: Path, tmp_path: Path) -> None:
    """Records beside the output.xml of their run are not there already: the same import has added them."""
    beside = [tmp_path / "2.json", tmp_path / "3.json"]
    for path, record in zip(beside, (_FULL, mrr_result(CSP, 1, 2)), strict=True):
        path.write_text(record.model_dump_json(), encoding="utf-8")
    (tmp_path / "copy.xml").write_bytes(output.read_bytes())
    (tmp_path / "new.json").write_text(result(CSC, 4, 1).model_dump_json(), encoding="utf-8")

    def said(*paths: Path) -> str:
        return invoked("import", *paths, "-o", tmp_path / "d").stdout.removeprefix(f"{tmp_path / 'd'}: ").strip()

    assert said(output, tmp_path / "copy.xml", *beside) == (
        "5 tests of 1 file added; 3 files with the same results as others of this import"
    )
    assert said(output, *beside) == "nothing added; 3 files already there"
    assert said(*beside, tmp_path / "new.json") == "1 test of 1 file added; 2 files already there"


def test_a_copy_by_rebot_has_the_same_tests(output: Path, tmp_path: Path) -> None:
    """It is another file; of a test of two files the first counts."""
    (copy := tmp_path / "copy.xml").write_text(output.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    said = [invoked("import", path, "-o", tmp_path / "d", "--format", "json").stdout for path in (output, copy)]
    recorded = sum(row.recorded for row in Stored(Layout(tmp_path / "d")).tests)
    counts = [(each["tests"], each["same_tests"]) for each in map(json.loads, said)]
    assert counts == [(5, 0), (5 - recorded, recorded)]


@pytest.mark.parametrize("table", ["tests", "details"])
@pytest.mark.parametrize("damage", ["removed", "truncated", "another file", "a folder"])
def test_a_damaged_part_is_left_out_named_and_read_again(output: Path, tmp_path: Path, table: str, damage: str) -> None:
    other = write_output_xml(tmp_path / "other.xml", [result(CSC, 3, 1)], [])
    imported(tmp_path / "d", output, other)
    before = {row.test_id for row in Stored(Layout(tmp_path / "d")).tests}
    path = next(path for path in sorted((tmp_path / "d" / table).rglob("*.*")) if path.is_file())
    content = path.read_bytes()
    path.unlink()
    if damage == "truncated":
        path.write_bytes(content[:-100])
    elif damage == "another file":
        pq.write_table(pa.table({"x": [1]}), path)
    elif damage == "a folder":
        path.mkdir()
    done, stored = invoked("show", tmp_path / "d"), Stored(Layout(tmp_path / "d"))
    assert 0 < len(stored.tests) < len(before)
    (problem,) = stored.problems
    assert re.match(rf"{re.escape(str(path))}: damaged, \d tests left out; import .*\.xml again: ", problem.text)
    assert (done.exit_code, problem.text[:60] in done.stderr) == (1, True)
    if damage == "a folder":
        path.rmdir()
    imported(tmp_path / "d", output, other)
    assert {row.test_id for row in Stored(Layout(tmp_path / "d")).tests} == before


@pytest.mark.parametrize("length", [5000, pytest.param(1 << 40, marks=pytest.mark.slow)])
def test_a_damaged_import_is_left_out_and_named(output: Path, tmp_path: Path, length: int) -> None:
    imported(tmp_path / "d", output)
    (path,) = (tmp_path / "d" / "imports").glob("*.json")
    path.write_text("[" * 5000, encoding="utf-8")
    os.truncate(path, length)  # a terabyte without blocks is not read
    stored = Stored(Layout(tmp_path / "d"))
    assert stored.tests == []
    assert stored.problems[0].text.startswith(f"{path}: damaged; remove it and import its file again: ")
    imported(tmp_path / "d", output)
    assert len(Stored(Layout(tmp_path / "d")).tests) == 5


_RESULTS = [mrr_result(CSP, 1, 2), result(CSC, 2, 1), does_not_fit(CSC, 8, 8)]


def test_pages_of_large_files_are_those_of_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of record files stay apart."""
    (run := tmp_path / "run").mkdir()
    write_output_xml(run / "output.xml", _RESULTS, dump=pack)
    for chains in (4, 8):
        record = result(CSP, chains, 1, histograms=False)
        (run / f"{chains}.json").write_text(record.model_dump_json())
    assert invoked("report", run, "-o", tmp_path / "small").exit_code == 0
    monkeypatch.setattr(inputs, "LARGE_BYTES", 0)
    assert invoked("report", run, "-o", tmp_path / "large").exit_code == 0
    assert _tree(tmp_path / "large") == _tree(tmp_path / "small")


@pytest.mark.parametrize(
    "command", ["compare {0} {0}", "gate {0} {0}", "trend {0} --all", "trend {0} --new-with {0}", "show {0} --why"]
)
def test_large_files_are_judged_as_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    words = command.format(write_output_xml(tmp_path / "output.xml", _RESULTS, dump=pack)).split()

    def ended() -> tuple[int, str]:
        found = invoked(*words)
        return found.exit_code, found.output

    small = ended()
    assert small[1]
    monkeypatch.setattr(inputs, "LARGE_BYTES", 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert ended() == small
    gc.collect()  # of the error that ended the command
    assert list(tmp_path.iterdir()) == [tmp_path / "output.xml"], "temporary datasets are removed"


def test_folders_of_killed_reports_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed, other = tmp_path / "csit-report-killed", tmp_path / "csit-report-elsewhere"
    (killed / "dataset").mkdir(parents=True)
    os.utime(killed, (0, 0))
    (tmp_path / "kept").mkdir()
    other.symlink_to(tmp_path / "kept")
    running = inputs.TemporaryLayout()
    assert not killed.exists()
    inputs.TemporaryLayout()
    assert running.folder.is_dir(), "its process runs"
    folder = running.folder
    del running
    assert not folder.exists()
    assert (tmp_path / "kept").is_dir()


def test_refused_cells_of_several_suites_are_imported_once(tmp_path: Path) -> None:
    refused, suite = refused_cell(10, 2, "needs 33 cores").refused, Suite("Density")
    for name in ("Csc-Ndrpdr", "Csc-Mrr"):
        inner = suite.suites.create(name)
        inner.setup.config(name="Log", args=[f"{REFUSED_MARKER}{REFUSED_CELLS.dump_json((refused,)).decode()}"])
        inner.tests.create("t").body.create_keyword("Fail")
    path = tmp_path / "output.xml"
    suite.run(output=str(path), console="none", log=None, report=None)
    imported(tmp_path / "d", path)
    for contents in (load([path]), Stored(Layout(tmp_path / "d"))):
        assert [each.refused for each in contents.refused] == [refused]


def test_a_damaged_record_in_a_large_file_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dump(record: DensityRecord) -> str:
        return pack(record).replace('"packed":"', '"packed":"AAAA' if record is _RESULTS[0] else '"packed":"')

    output = write_output_xml(tmp_path / "output.xml", _RESULTS, dump=dump)
    monkeypatch.setattr(inputs, "LARGE_BYTES", 0)
    done = invoked("report", output, "-o", tmp_path / "large")
    assert (done.exit_code, done.output.count("its packed part")) == (1, 1)
    assert _RESULTS[0].test_name in done.output
    assert len(list((tmp_path / "large" / "tests").glob("*.html"))) == 2
