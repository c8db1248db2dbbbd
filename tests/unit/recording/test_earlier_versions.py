"""Records of schema version 2.0, as runs on the simulated testbed wrote them, are read without losing a value."""

import gzip
import json
from pathlib import Path

import pytest

from csit_utils.dataset import load
from csit_utils.dataset.items import Characterized, RecordedTest, Refusal
from resources.libraries.python.recording.packed_record import pack
from resources.libraries.python.recording.records import RECORDS, read_record, records_schema
from tests.unit.csit_utils.study_records import interfered

FOLDER = Path(__file__).with_name("version_2_0")
STUDY_OF = {
    "density": "density",
    "sweep": "sweep",
    "bursts": "sweep",
    "sizing": "sizing",
    "chains": "chains",
    "interference": "interference",
}
HEADER = {"record", "kind", "schema_version"}


@pytest.mark.parametrize("name", STUDY_OF)
def test_every_value_of_a_record_is_read(name: str) -> None:
    text = gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes())
    record, _ = read_record(text)
    assert isinstance(record, RECORDS[STUDY_OF[name]])
    written, read = json.loads(text), json.loads(record.model_dump_json())
    if name == "interference":
        written[name]["measurements"] = written[name].pop("meetings")
        assert written[name]["spec"].pop("guarantee") is False
        written[name]["spec"]["guarantee"] = []
    lost = {key for key, value in written.items() if value and key not in HEADER and read.get(key) != value}
    assert not lost
    assert read["schema_version"] == "3.0"
    assert read_record(pack(record))[0] == record


@pytest.mark.parametrize(
    ("name", "tests"),
    [("density", {"density"}), ("studies", {"sweep", "bursts", "sizing", "chains", "interference"})],
)
def test_every_test_of_an_output_file_is_read(name: str, tests: set[str]) -> None:
    output = FOLDER / f"{name}-output.xml.gz"
    items = list(load.read_output_xml(output))
    found = [item.record for item in items if isinstance(item, Characterized)]
    rows = [item for item in items if isinstance(item, RecordedTest)]
    assert {record.kind for record in found} | {"density" for _ in rows} == tests
    assert len(found) + len(rows) == gzip.decompress(output.read_bytes()).count(b"</test>")
    assert all(record.environment.kernel for record in found)


def test_cells_that_a_suite_refused_are_read() -> None:
    items = load.read_output_xml(FOLDER / "density-output.xml.gz")
    cells = {(item.refused.cell.locator, item.refused.cell.size_name) for item in items if isinstance(item, Refusal)}
    assert cells == {("9R9C", "0.5c"), ("9R9C", "1c")}


def test_a_renamed_key_is_read_under_both_names_and_written_under_the_new_one() -> None:
    made = interfered()
    written = made.model_dump_json()
    earlier = written.replace('"measurements":', '"meetings":')
    assert earlier != written
    assert read_record(earlier)[0] == made
    assert read_record(earlier)[0].model_dump_json() == written
    assert "meetings" not in json.dumps(records_schema("interference"))
