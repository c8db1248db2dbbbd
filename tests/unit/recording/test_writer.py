"""Result files: what is written is read back equal; what cannot be written is told in one sentence."""

import json
import os
import resource
import signal
from pathlib import Path

import jsonschema
import pytest

from resources.libraries.python.errors import CsitError, RunStopped
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.recording.records import records_schema
from resources.libraries.python.recording.writer import Reserve, check_folder, remove_half_written, write_record
from resources.libraries.python.studies.density.model.record import DensityRecord
from resources.libraries.python.whole_files import writing_whole
from tests.unit.csit_utils import builders


def test_a_result_survives_the_disk_and_fits_the_schema(tmp_path: Path) -> None:
    result = builders.result(ServiceType.CSC, 2, 1)
    path = write_record(result, tmp_path)
    text = path.read_text(encoding="utf-8")
    assert DensityRecord.model_validate_json(text) == result
    jsonschema.Draft202012Validator(records_schema("density")).validate(json.loads(text))
    assert not list(tmp_path.rglob("*.part"))


def test_an_unknown_key_is_an_error() -> None:
    data = json.loads(builders.result(ServiceType.CSC, 2, 1).model_dump_json())
    data["mood"] = "fine"
    with pytest.raises(ValueError, match="mood"):
        DensityRecord.model_validate(data)


def test_a_full_disk_is_reported_before_a_run(tmp_path: Path) -> None:
    with pytest.raises(CsitError, match=r"MB of disk space for results, 1000000000000\.0 MB needed"):
        check_folder(tmp_path, 10**18)


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(CsitError, match="cannot write results"):
        check_folder(tmp_path / "file" / "results", 1)


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    result = builders.result(ServiceType.CSC, 2, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(RunStopped, match="cannot write the result: File too large; fix that, then resume the run"):
            write_record(result, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list((tmp_path / "results").iterdir())


def test_what_a_killed_run_was_writing_is_removed_and_nothing_else(tmp_path: Path) -> None:
    places = [tmp_path / "results", tmp_path / "characterization" / "a_sweep"]
    for place in places:
        place.mkdir(parents=True)
        (place / ".mine.part").touch()
        if (child := os.fork()) == 0:
            with writing_whole(place / "a.json"):
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        assert len(list(place.iterdir())) == 2
    remove_half_written(tmp_path)
    assert [[file.name for file in place.iterdir()] for place in places] == [[".mine.part"]] * 2


def test_space_is_reserved_but_not_in_the_file_of_another(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept", encoding="ascii")
    (tmp_path / ".reserve").symlink_to(victim)
    Reserve(tmp_path).hold()
    assert victim.read_text(encoding="ascii") == "kept"
    assert (tmp_path / ".reserve").stat().st_size > 0
