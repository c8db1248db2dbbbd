"""Records of earlier runs below a folder, whatever else lies there."""

from pathlib import Path

import pytest

from resources.libraries.python.model.record import Record
from resources.libraries.python.studies.shared.earlier_records import earlier_records
from tests.unit.recording.characterizations import characterization as whole


@pytest.mark.slow
def test_a_file_of_a_terabyte_is_not_read_and_the_others_are(tmp_path: Path) -> None:
    (results := tmp_path / "night" / "results").mkdir(parents=True)
    (results / "one.json").write_text(whole().model_dump_json(), encoding="utf-8")
    with (results / "disk.json").open("wb") as file:
        file.truncate(1 << 40)  # without blocks
    (results / "folder.json").mkdir()
    assert earlier_records(tmp_path, Record) == [whole()]
