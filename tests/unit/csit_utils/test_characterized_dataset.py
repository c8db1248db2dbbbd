"""Records of characterizations stay what they are on their way from files through a dataset to readers."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from csit_utils.dataset.items import Status
from csit_utils.dataset.store.duckdb_engine import DuckDb
from csit_utils.dataset.store.layout import Layout
from csit_utils.dataset.store.stored_contents import Stored
from csit_utils.dataset.store.views import files_of
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.recording.marker import RESULT_MARKER
from resources.libraries.python.recording.writer import pack, write_record
from resources.libraries.python.studies.outage.analysis import outage_tables
from resources.libraries.python.studies.sizing.analysis import sizing_rows
from resources.libraries.python.studies.stateful.analysis import stateful_tables
from tests.loaded import load
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.characterization_records import burst, one_of_each, sized
from tests.unit.csit_utils.datasets import imported, invoked
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.outages import outage_record
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.csit_utils.stateful_cells import stateful_record
from tests.unit.csit_utils.study_records import chain_studied, interfered


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A density test, seven characterizations, and a test that left nothing."""
    records: list[Record] = [result(ServiceType.CSC, 1, 1), *one_of_each()]
    return write_output_xml(tmp_path_factory.mktemp("run") / "output.xml", records, [("Empty", "Skip", "no", ())])


def test_a_dataset_has_the_records_of_its_files(output: Path, tmp_path: Path) -> None:
    (outcome,) = imported(tmp_path / "d", output)
    assert (outcome.tests, outcome.problems) == (9, ())
    stored, memory = Stored(Layout(tmp_path / "d")), InMemory(load([output]))
    of_anchor = {item.anchor: item for item in memory.characterizations}
    assert {item.anchor: item for item in stored.characterizations} == of_anchor and len(of_anchor) == 7
    assert {row.test_name for row in stored.tests} == {row.test_name for row in memory.tests}
    assert [row.test_name for row in memory.tests if not row.recorded] == ["Empty"], "the others left a record"
    assert stored.environments == memory.environments
    assert len(Stored(Layout(tmp_path / "d"), Layout(tmp_path / "d")).characterizations) == 7


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


def test_a_damaged_record_is_named_and_costs_nothing_else(output: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.xml"
    damaged.write_text(output.read_text(encoding="utf-8").replace('"on_s":2', '"on_s":0'), encoding="utf-8")
    (outcome,) = imported(tmp_path / "d", damaged)
    assert outcome.tests == 9
    for contents in (Stored(Layout(tmp_path / "d")), InMemory(load([damaged]))):
        (problem,) = contents.problems
        assert "test 'Density.Bursts': the record is not valid: sweep.spec.bursts.on_s" in problem.text
        assert len(contents.characterizations) == 6
        assert {row.test_name for row in contents.tests if not row.recorded} == {"Bursts", "Empty"}


def test_a_damaged_record_of_a_dataset_is_left_out_and_named(output: Path, tmp_path: Path) -> None:
    imported(tmp_path / "d", output)
    (path,) = (tmp_path / "d" / "characterizations").iterdir()
    table = pq.read_table(path)
    column = table.schema.get_field_index("record")
    first, *others = table.column("record").to_pylist()
    torn = pa.array([first[:-9], *others])
    pq.write_table(table.set_column(column, "record", torn), path)
    stored = Stored(Layout(tmp_path / "d"))
    assert len(stored.characterizations) == len(others) > 0
    (problem,) = stored.problems
    assert re.search(r"characterizations.*test 'Firewall': the record is not valid JSON", problem.text)
    path.write_bytes(b"PAR1")
    stored = Stored(Layout(tmp_path / "d"))
    assert not stored.characterizations
    assert "damaged; import its files again" in stored.problems[0].text


def test_report_writes_the_tables_of_every_test(output: Path, tmp_path: Path) -> None:
    done = invoked("report", output, "-o", tmp_path / "site", "--csv", tmp_path / "csv")
    assert done.exit_code == 0, done.output
    for name in (
        *("Router_And_Firewall/predictions", "Firewall/S_statistics", "Firewall/coefficients", "Bursts/S_allsamples"),
        "Proxy/sizing",
    ):
        assert (tmp_path / "csv" / "characterization" / f"{name}.csv").is_file(), name
    assert (tmp_path / "site" / "sizings.html").is_file()


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
    assert ask("select count(*) from chains_statistics") == [(len(study.statistics),)]
    of_pair = "target = 'monitor' and against = 'balancer' and not guaranteed"
    pps = [one.throughput_pps for one in found.measurements if (one.target, one.against) == ("monitor", ("balancer",))]
    measured = f"select avg(throughput_pps) from interference_measurements where {of_pair}"  # noqa: S608
    assert ask(measured) == [(pytest.approx(sum(pps[:5]) / 5),)]
    mean = next(row.mean for row in found.matrix if (row.target, row.against) == ("monitor", ("balancer",)))
    assert ask(f"select normalized from interference_matrix where {of_pair}") == [(mean,)]  # noqa: S608
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
    skipped = [record.model_copy(update=lacks) for record in (result(ServiceType.CSC, 1, 1), burst())]
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
def test_a_record_counts_once_whose_keys_were_added_since_it_was_written(
    tmp_path: Path, formatted: Callable[[str], str], stored: bool
) -> None:
    made, paths = interfered(), (tmp_path / "output.xml", tmp_path / "interference.json")
    written = made.model_dump_json().replace('"advice":[],', "")
    digest, passed = hashlib.sha256(written.encode()).hexdigest(), '<status status="PASS"/>'
    paths[0].write_text(
        f'<robot><suite id="s1" name="S"><test id="s1-t1" name="{made.test_name}"><kw name="Log"><msg>{RESULT_MARKER}'
        f"{pack(made, digest=digest)}</msg></kw>{passed}</test>{passed}</suite></robot>",
        encoding="utf-8",
    )
    paths[1].write_text(formatted(written), encoding="utf-8")
    imported(tmp_path / "dataset", *paths)
    items = (Stored(Layout(tmp_path / "dataset")) if stored else load(paths)).characterizations
    assert [item.anchor for item in items] == [f"interference-{digest[:12]}"]
