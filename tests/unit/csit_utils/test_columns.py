"""A result field is declared in the record and in one column, and everything else follows."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.paths import PROJECT
from tests.unit.csit_utils.builders import result

RECORD = Path("resources/libraries/python/studies/density/model/record.py")
ROWS = Path("csit_utils/dataset/rows.py")
AT = 'At("settle_s", label="Settling")'
SHOWN = """
import csv, sys
from pathlib import Path
from csit_utils.dataset.store.batch import import_all
from csit_utils.dataset.frames import write_csv
from csit_utils.dataset.store.layout import Layout
from csit_utils.commands.results.inputs import read
from csit_utils.dataset.store.stored_contents import Stored
from csit_utils.report.details.testview import view_of
from resources.libraries.python.recording.packed_record import pack
from resources.libraries.python.recording.records import records_schema
from resources.libraries.python.studies.density.model.record import DensityRecord
import json, pyarrow.parquet as pq

folder = Path(sys.argv[1])
old = {**json.loads((folder / "old.json").read_text()), "test_name": "old"}
(folder / "old.json").write_text(json.dumps(old))
(folder / "new.json").write_text(json.dumps({**old, "settle_s": 0.25, "test_name": "new"}))
(folder / "packed.json").write_text(pack(DensityRecord.model_validate({**old, "settle_s": 1.5, "test_name": "packed"})))
layout = Layout.make(folder / "dataset")
with layout.writing(lambda: None):
    done = list(import_all(layout, [folder / f"{name}.json" for name in ("old", "new", "packed")], None))
stored = Stored(layout)
(path,) = (folder / "dataset" / "tests").rglob("*.parquet")
dataset = read([folder / "new.json"])
(text,) = (each for each in write_csv(dataset, folder / "csv") if each.name == "tests.csv")
row = next(row for row in stored.tests if row.test_name == "new")
print(json.dumps({
    "rows": {row.test_name: row.settle_s for row in stored.tests},
    "parquet": str(pq.read_schema(path).field("settle_s").type),
    "csv": [line["settle_s"] for line in csv.DictReader(text.open())],
    "schema": records_schema("density")["properties"]["settle_s"]["default"],
    "page": view_of(stored.record(row.anchor), row, [], []).facts,
}))
"""


@pytest.mark.slow
def test_a_new_field_needs_one_line_in_the_record_and_one_in_the_columns(tmp_path: Path) -> None:
    for name in ("csit_utils", "resources", "topologies"):
        shutil.copytree(PROJECT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path, before, line in (
        (RECORD, "    search: SearchRecord", "    settle_s: float | None = None\n"),
        (
            ROWS,
            "    trials_s: Annot",
            '    settle_s: Annotated[float | None, At("settle_s", label="Settling")] = None\n',
        ),
    ):
        text = (PROJECT / path).read_text(encoding="utf-8")
        assert text.count(before) == 1
        (tmp_path / path).write_text(text.replace(before, line + before), encoding="utf-8")
    (tmp_path / "old.json").write_text(result(ServiceType.CSC, 1, 1).model_dump_json(), encoding="utf-8")
    shown = subprocess.run(
        [sys.executable, "-B", "-c", SHOWN, str(tmp_path)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert found == {
        "rows": {"old": None, "new": 0.25, "packed": 1.5},
        "parquet": "double",
        "csv": ["0.25"],
        "schema": None,
        "page": [["version of IP", "4"], ["Settling", "250 ms"], ["Deployment", "410 ms"], ["Removal", "120 ms"]],
    }
