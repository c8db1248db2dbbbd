"""Files of a dataset: bombs and links are refused, what waits is written whole, records of studies stay as they are."""

import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csit_utils.dataset.inputs import sources_of_file
from csit_utils.dataset.items import Problem, ReadError, Status, Unrecorded
from csit_utils.dataset.rows import TestRow
from csit_utils.dataset.store import bounded_files
from csit_utils.dataset.store.bounded_files import blocks_of
from csit_utils.dataset.store.layout import Layout
from csit_utils.dataset.store.sql import DuckDb, files_of
from csit_utils.dataset.store.staging import GROUP_BYTES, WaitingDetails, WaitingRows
from csit_utils.dataset.store.stored_contents import Stored, rows_of_table
from csit_utils.dataset.store.tables import TEST_COLUMNS, TEST_NAMES
from csit_utils.dataset.testrows import Detail, HeadRow, packed_row, unrecorded_row
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.result import ReceiveRate
from resources.libraries.python.recording.writer import pack, write_record
from resources.libraries.python.studies.outage.analysis import outage_tables
from resources.libraries.python.studies.sizing.analysis import sizing_rows
from resources.libraries.python.studies.stateful.analysis import stateful_tables
from tests.loaded import load
from tests.unit.csit_utils.bombs import BOMBS, packed_details, part_of, say
from tests.unit.csit_utils.builders import CSC, result
from tests.unit.csit_utils.characterization_records import burst, one_of_each, sized
from tests.unit.csit_utils.datasets import imported
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.outages import outage_record
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.csit_utils.stateful_cells import stateful_record
from tests.unit.csit_utils.study_records import chain_studied, interfered
from tests.unit.examples import share


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A test, and a record of another study."""
    folder = tmp_path_factory.mktemp("dataset")
    output = write_output_xml(folder / "output.xml", [result(CSC, 1, 1), burst()], [])
    imported(folder / "d", output)
    return folder / "d"


@pytest.fixture
def folder(dataset: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dataset, tmp_path / "d"))


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_left_out_by_readers_and_engines(folder: Path, bomb: Callable[[Path], None]) -> None:
    """The other file is read."""
    bomb(folder)
    before = pa.default_memory_pool().bytes_allocated()
    stored = Stored(Layout(folder))
    assert len(stored.tests) + len(stored.characterizations) == 1
    (problem,) = stored.problems
    assert BOMBS[bomb] in problem.text
    assert pa.default_memory_pool().bytes_allocated() - before < 10_000_000
    files = files_of(Layout(folder))
    assert len(files.tests) + len(files.characterizations) == 1
    (problem,) = files.problems
    assert BOMBS[bomb] in problem.text


def test_a_footer_whose_statistics_contradict_its_schema_does_not_end_the_process() -> None:
    pq.write_table(pa.table({"x": [1, 2, 3], "y": [1, 2, 3]}), sink := io.BytesIO())
    optional, required = b"\x25\x02\x18\x01y", b"\x25\x00\x18\x01y"
    assert sink.getvalue().count(optional) == 1
    content = sink.getvalue().replace(optional, required)
    with pytest.raises(ReadError, match="histogram"), bounded_files.opened_table(content, lambda _: True) as file:
        file.read(0)
    with bounded_files.opened_table(content, "x".__eq__) as file:
        assert file.read(0).to_pydict() == {"x": [1, 2, 3]}


def test_packed_details_and_more_rows_than_the_import_says_are_refused(folder: Path) -> None:
    packed_details(folder)
    with pytest.raises(ReadError, match="a group that is packed"):
        list(Stored(Layout(folder)).items())
    say(folder, tests=2)
    assert "it has 1 rows, and its import says 2" in Stored(Layout(folder)).problems[0].text


PLACE = "testbed=a/night=b/0123456789abcdef.parquet"
PATHS = ("../../../etc/passwd", "/etc/passwd", f"s3://bucket/{PLACE}", f"{PLACE}\n", PLACE.replace("a/", "*/"))


@pytest.mark.parametrize(
    "changes",
    [
        {"digest": "../../../../etc/passwd", "parts": []},
        *({"path": path} for path in (*PATHS, f"testbed=a/{PATHS[0]}")),
    ],
)
def test_paths_and_digests_that_lead_out_of_the_dataset(folder: Path, changes: dict[str, object]) -> None:
    say(folder, **changes)
    (problem,) = Stored(Layout(folder)).problems
    assert "damaged; remove it and import its file again" in problem.text
    assert "etc/passwd" not in problem.text.replace(str(folder), "")
    with pytest.raises(ConfigError):
        Layout(folder).imports()


@pytest.mark.parametrize(("name", "left"), [("tests", 1), ("details", 1), ("characterizations", 1), ("imports", 0)])
@pytest.mark.parametrize("whole", [True, False], ids=["folder", "file"])
def test_links_are_not_followed(folder: Path, tmp_path: Path, name: str, left: int, *, whole: bool) -> None:
    there = folder / name if whole else part_of(folder, name)
    there.rename(tmp_path / "elsewhere")
    there.symlink_to(tmp_path / "elsewhere")
    stored = Stored(Layout(folder))
    assert len(stored.tests) + len(stored.characterizations) == left
    (problem,) = stored.problems
    assert str(there) in problem.text and "a link; replace it by what it leads to" in problem.text


@pytest.mark.parametrize("name", ["tests", "details", "imports", ".importing"])
def test_an_import_writes_through_no_link(folder: Path, tmp_path: Path, name: str) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).symlink_to(elsewhere)
    output = write_output_xml(tmp_path / "output.xml", [result(CSC, 2, 1)], [])
    with pytest.raises(ReadError, match=f"{name}: a link"):
        imported(folder, output)
    assert not list(elsewhere.iterdir())


@given(data=st.binary(max_size=200), length=st.integers(0, 300))
def test_headers_of_pages_and_footers_of_arrow_files_are_read_or_refused(data: bytes, length: int) -> None:
    with suppress(ReadError):
        assert bounded_files.chunk_of(data).unpacked_bytes >= 0
    file = pa.BufferReader(data + length.to_bytes(4, "little") + b"ARROW1")
    with suppress(ReadError):
        assert all(each.offset >= 0 for each in blocks_of(file.read_at, file.size()))


def test_pipes_are_not_waited_for(folder: Path, tmp_path: Path) -> None:
    part, output = part_of(folder, "tests"), tmp_path / "output.xml"
    part.unlink()
    for path in (part, output):
        os.mkfifo(path)
    with pytest.raises(ReadError, match="no regular file"), bounded_files.opened(part, TEST_COLUMNS, TEST_NAMES):
        pass
    (found,) = sources_of_file(output)
    assert isinstance(found, Problem) and "not a regular file" in found.text


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.lists(st.tuples(_TEXTS, _TEXTS, _TEXTS, _TEXTS))), st.booleans())
def test_every_group_has_what_was_added_since_the_last(groups: list[list[tuple[str, ...]]], encoded: bool) -> None:
    waiting = WaitingDetails()
    for group in groups:
        for anchor, digest, name, text in group:
            waiting.add(anchor, Detail(digest, name, text.encode() if encoded else text))
        batch = waiting.batch()
        found = [] if batch is None else list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        assert found == group
        assert waiting.size_bytes == sum(len(each[-1].encode()) for each in group)
        waiting.clear()


def test_a_text_larger_than_the_buffer_is_kept_whole_and_so_is_what_came_before() -> None:
    waiting, large = WaitingDetails(), "x" * (3 * GROUP_BYTES)
    waiting.add("a", Detail("1", "record", "small"))
    before = waiting.batch()
    waiting.add("b", Detail("2", "record", large))
    assert before.column("record").to_pylist() == ["small"]
    assert waiting.batch().column("record").to_pylist() == ["small", large]


_MRR = ReceiveRate(offered_pps=2e6, receive_rates_pps=(1e6, 1.2e6), mean_pps=1.1e6, stdev_pps=1e5)
_RECORDS = (
    *(result(), result(ndr=None, pdr=None), result(mrr=_MRR)),
    result(loss_patterns={"PDR50": "instance 1 lost most"}, quarantined="it broke"),
)
_BARE = unrecorded_row(Unrecorded("s.t", "t", ("CSC", "1R1C"), "x", Status.FAIL, "no record"))
_ROWS = st.sampled_from([*(packed_row(pack(one, digest="0" * 64), Status.PASS)[0] for one in _RECORDS), _BARE])


def _columns(*rows: HeadRow | TestRow) -> list[TestRow]:
    waiting = WaitingRows("run", {"source": "x"})
    for row in rows:
        waiting.add(row)
    table = waiting.table()
    assert waiting.table() is None
    return [] if table is None else [*rows_of_table(table)]


@settings(max_examples=share(40), deadline=None)
@given(st.lists(st.tuples(_ROWS, st.integers(1, 90)), max_size=4))
def test_a_column_of_some_rows_only_has_its_default_in_the_others(runs: list[tuple[HeadRow | TestRow, int]]) -> None:
    rows = [row for row, count in runs for _ in range(count)]
    expected = [one for row, count in runs for one in _columns(row) * count]
    assert _columns(*rows) == expected


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A density test, seven characterizations, and a test that left nothing."""
    records: list[Record] = [result(CSC, 1, 1), *one_of_each()]
    return write_output_xml(tmp_path_factory.mktemp("run") / "output.xml", records, [("Empty", "Skip", "no", ())])


def test_importing_again_in_whatever_form_changes_nothing(output: Path, tmp_path: Path) -> None:
    for record in one_of_each():
        write_record(record, tmp_path)
    (outcome,) = imported(tmp_path / "alone", tmp_path / "results")
    assert (outcome.tests, list(Stored(Layout(tmp_path / "alone")).tests)) == (7, [])
    imported(tmp_path / "d", output)
    again = imported(tmp_path / "d", output, tmp_path / "results")
    assert all(outcome.known and not outcome.problems for outcome in again)
    assert len(Stored(Layout(tmp_path / "d")).characterizations) == 7
    assert len(load([output, tmp_path / "results"]).characterizations) == 7


def test_a_damaged_record_is_named_and_costs_nothing_else_also_in_a_dataset(output: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.xml"
    damaged.write_text(output.read_text(encoding="utf-8").replace('"on_s":2', '"on_s":0'), encoding="utf-8")
    (outcome,) = imported(tmp_path / "d", damaged)
    assert outcome.tests == 9
    for contents in (Stored(Layout(tmp_path / "d")), InMemory(load([damaged]))):
        (problem,) = contents.problems
        assert "test 'Density.Bursts': the record is not valid: sweep.spec.bursts.on_s" in problem.text
        assert len(contents.characterizations) == 6
        assert {row.test_name for row in contents.tests if not row.recorded} == {"Bursts", "Empty"}
    imported(tmp_path / "whole", output)
    (path,) = (tmp_path / "whole" / "characterizations").iterdir()
    rows = pq.read_table(path).to_pylist()
    rows[0]["record"] = rows[0]["record"][:-9]
    pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(path)), path)
    stored = Stored(Layout(tmp_path / "whole"))
    assert len(stored.characterizations) == len(rows) - 1 > 0
    (problem,) = stored.problems
    assert re.search(r"characterizations.*test 'Firewall': the record is not valid JSON", problem.text)


def views_of(folder: Path, *records: Record) -> Callable[[str], list[tuple[object, ...]]]:
    """Answers of a dataset of these records."""
    imported(folder / "d", write_output_xml(folder / "output.xml", records, []))
    engine = DuckDb(files_of(Layout(folder / "d")))

    def ask(statement: str) -> list[tuple[object, ...]]:
        schema, batches = engine.run(statement)
        return [tuple(row.values()) for row in pa.Table.from_batches(batches, schema).to_pylist()]

    return ask


def test_rows_of_studies_are_views_of_the_dataset(tmp_path: Path) -> None:
    chains, interference = chain_studied(), interfered()
    ask = views_of(tmp_path, chains, interference, burst())
    study, found = chains.chain_study, interference.interference
    runs = "select count(*), count(failed), min(name) from chains_runs"
    assert ask(runs) == [(len(study.runs), 1, "Four Network Functions")]
    first = study.suspects[0]
    suspects = "select distinct chain, mean_distance from chains_suspects where rank = 1"
    assert ask(suspects) == [(first.chain.name, first.mean_distance)]
    mean = next(row.mean for row in found.matrix if (row.target, row.against) == ("monitor", ("balancer",)))
    of_pair = "target = 'monitor' and against = 'balancer' and not guaranteed"
    assert ask(f"select normalized from interference_matrix where {of_pair}") == [(mean,)]  # noqa: S608
    assert ask("select count(*) from interference_measurements") == [(len(found.measurements),)]
    stored = {item.record.kind: item.record for item in Stored(Layout(tmp_path / "d")).characterizations}
    assert stored == {one.kind: one for one in (chains, interference, burst())}


def test_tables_of_outages_connections_and_sizes_are_views(tmp_path: Path) -> None:
    outages, connections, sizing = records = (outage_record(), stateful_record(), sized())
    ask = views_of(tmp_path, *records)
    tables = dict([*outage_tables(outages), *stateful_tables(connections), ("sizing", sizing_rows(sizing.sizing))])
    for name in ("outage_effects", "outage_trials", "stateful", "stateful_instances", "stateful_trials", "sizing"):
        heads, *rows = tables[name]
        own = [each for each in heads if not str(each).startswith("figure_")]
        found = ask(f"select {', '.join(own)} from {name}")  # noqa: S608
        assert found == [row[: len(own)] for row in rows] != []


def test_a_skipped_test_did_not_fail_also_without_an_output_xml(tmp_path: Path) -> None:
    lacks = {"passed": False, "skipped": True, "message": "needs 33 cores"}
    skipped = [record.model_copy(update=lacks) for record in (result(CSC, 1, 1), burst())]
    for record in (*skipped, burst(passed=False, message="it fell over")):
        write_record(record, tmp_path, record.message)
    ended = {("needs 33 cores", Status.SKIP), ("it fell over", Status.FAIL)}
    assert {(item.message, item.status) for item in load([tmp_path]).recorded} == ended
    imported(tmp_path / "dataset", tmp_path / "results")
    stored = Stored(Layout(tmp_path / "dataset"))
    assert [row.status for row in stored.tests] == ["SKIP"]
    assert {(item.message, item.status) for item in stored.characterizations} == ended


@pytest.mark.parametrize("formatted", [str, lambda text: json.dumps(json.loads(text), indent=2) + "\n"])
@pytest.mark.parametrize("stored", [False, True])
def test_a_record_of_fewer_keys_counts_once(tmp_path: Path, formatted: Callable[[str], str], stored: bool) -> None:
    written = interfered().model_dump_json().replace('"advice":[],', "")
    digest = hashlib.sha256(written.encode()).hexdigest()
    path = write_output_xml(tmp_path / "output.xml", [interfered()], dump=lambda made: pack(made, digest=digest))
    (tmp_path / "record.json").write_text(formatted(written), encoding="utf-8")
    imported(tmp_path / "dataset", path, tmp_path / "record.json")
    found = Stored(Layout(tmp_path / "dataset")) if stored else load([path, tmp_path / "record.json"])
    assert [item.anchor for item in found.characterizations] == [f"interference-{digest[:12]}"]
