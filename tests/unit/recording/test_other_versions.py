"""Files of another schema version are refused by one sentence: the path, both versions, and what to do."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from csit_utils.dataset.store.layout import Layout
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.record import SCHEMA_VERSION, Record
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.recording.run_journal import past_of
from resources.libraries.python.studies.interference.run import InterferenceTest
from tests.builders import TOPOLOGIES
from tests.loaded import load
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.recording.characterizations import characterization
from tests.unit.recording.journals import header

DENSITY = result(ServiceType.CSC, 1, 1, histograms=False)


def _changed(text: str, **changes: object) -> str:
    return json.dumps(json.loads(text) | changes)


def _refused(read: Callable[[], object]) -> str:
    with pytest.raises(ConfigError) as refused:
        read()
    return str(refused.value)


def _problem(path: Path) -> str:
    (problem,) = load([path]).problems
    return problem.text


def _record(made: Record, path: Path) -> str:
    path.write_text(_changed(made.model_dump_json(), schema_version="7"), encoding="utf-8")
    return _problem(path)


def _record_in_an_output(path: Path) -> str:
    output = path.with_suffix(".xml")
    written = write_output_xml(output, [DENSITY]).read_text(encoding="utf-8")
    output.write_text(written.replace(f'"schema_version":"{SCHEMA_VERSION}"', '"schema_version":"7"'), encoding="utf-8")
    return _problem(output).replace(str(output), str(path))


def _run_journal(path: Path) -> str:
    journal = path.parent / "journal.jsonl"
    journal.write_text(_changed(header().model_dump_json(), version=7) + "\n", encoding="utf-8")
    return _refused(lambda: past_of(path.parent)).replace(str(journal), str(path))


def _step_journal(path: Path) -> str:
    journal = InterferenceTest.journal()
    heading = {"journal": journal.KIND, "schema_version": "7", "digest": "0"}
    path.write_text(json.dumps(heading) + "\n", encoding="utf-8")
    return _refused(lambda: journal(path, "0").__enter__())


def _dataset(path: Path) -> str:
    Layout.make(path)
    head = path / "dataset.json"
    head.write_text(_changed(head.read_text(encoding="utf-8"), version=7), encoding="utf-8")
    return _refused(lambda: Layout(path))


RECORDS = [partial(_record, DENSITY), partial(_record, characterization())]


@pytest.mark.parametrize("of", [*RECORDS, _record_in_an_output, _run_journal, _step_journal, _dataset])
def test_another_version_is_refused_with_what_to_do(of: Callable[[Path], str], tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    said = of(path)
    assert str(path) in said and " 7," in said and "reads version " in said and "release that wrote it" in said
    assert "\n" not in said


def test_a_topology_of_another_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "sim.yaml"
    text = (TOPOLOGIES / "sim.yaml").read_text(encoding="utf-8")
    file.write_text(text.replace("version: 1", "version: 7", 1), encoding="utf-8")
    said = _refused(lambda: load_topology(file))
    assert f"{file}:" in said and "metadata.version" in said and "7" in said
