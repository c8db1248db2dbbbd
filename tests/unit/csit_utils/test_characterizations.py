"""Characterizations beside density tests: read, counted once, and in nobody's way."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from csit_utils.dataset.items import Status
from csit_utils.dataset.store.layout import Layout
from csit_utils.dataset.store.stored_contents import Stored
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.recording.marker import RESULT_MARKER
from resources.libraries.python.recording.writer import pack, write_record
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.loaded import load
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import imported
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.csit_utils.study_records import interfered
from tests.unit.recording.characterizations import characterization


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a density test and two characterizations, one of which failed, as output.xml and as files."""
    density, good, bad = result(ServiceType.CSC, 1, 1), characterization(), characterization("nat", passed=False)
    folder = tmp_path / "run"
    folder.mkdir()
    write_output_xml(folder / "output.xml", [density, good, bad])
    write_record(density, folder)
    write_record(good, folder)
    return folder


def test_they_are_kept_apart_from_density_tests_and_counted_once(run: Path) -> None:
    dataset = load([run])
    assert (dataset.problems, dataset.unrecorded) == ([], [])
    assert [item.record.cell.locator for item in dataset.of(DensityRecord)] == ["1R1C"]
    assert [(item.record.test_name, item.status, item.message) for item in dataset.characterizations] == [
        ("firewall", Status.PASS, ""),
        ("nat", Status.FAIL, "the service fell over"),
    ]
    assert len({item.anchor for item in dataset.characterizations}) == 2


def test_a_skipped_test_did_not_fail_also_without_an_output_xml(tmp_path: Path) -> None:
    for record in (result(ServiceType.CSC, 1, 1), characterization("nat")):
        lacks = {"passed": False, "skipped": True, "message": "needs 33 cores"}
        write_record(record.model_copy(update=lacks), tmp_path)
    dataset = load([tmp_path])
    assert [item.status for item in dataset.of(DensityRecord)] == [Status.SKIP]
    assert [item.status for item in dataset.characterizations] == [Status.SKIP]
    imported(tmp_path / "dataset", tmp_path / "results")
    stored = Stored(Layout(tmp_path / "dataset"))
    assert [row.status for row in stored.tests] == ["SKIP"]
    assert [item.status for item in stored.characterizations] == [Status.SKIP]


@pytest.mark.parametrize("formatted", [str, lambda text: json.dumps(json.loads(text), indent=2) + "\n"])
@pytest.mark.parametrize("stored", [False, True])
def test_a_record_counts_once_whose_keys_were_added_since_it_was_written(
    tmp_path: Path, formatted: Callable[[str], str], stored: bool
) -> None:
    made = interfered()
    written = made.model_dump_json().replace('"advice":[],', "")
    digest = hashlib.sha256(written.encode()).hexdigest()
    (tmp_path / "interference.json").write_text(formatted(written), encoding="utf-8")
    (tmp_path / "output.xml").write_text(
        f'<robot><suite id="s1" name="S"><test id="s1-t1" name="{made.test_name}"><kw name="Log"><msg>{RESULT_MARKER}'
        f'{pack(made, digest=digest)}</msg></kw><status status="PASS"/></test><status status="PASS"/></suite></robot>',
        encoding="utf-8",
    )
    items = load([tmp_path]).characterizations
    if stored:
        imported(tmp_path / "dataset", tmp_path / "output.xml", tmp_path / "interference.json")
        items = Stored(Layout(tmp_path / "dataset")).characterizations
    assert [item.anchor for item in items] == [f"interference-{digest[:12]}"]
