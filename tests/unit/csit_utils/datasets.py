"""Datasets and runs to report on."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from csit_utils.cli import make_app
from csit_utils.dataset.items import Recorded, Status, Unrecorded
from csit_utils.dataset.store.batch import FileImport, import_all
from csit_utils.dataset.store.layout import Layout
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import single_file
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.studies.density.model import DensityRecord
from tests.loaded import Dataset
from tests.unit.csit_utils.builders import CSC, NDR, PDR, goal_result, result
from tests.unit.csit_utils.characterization_records import one_of_each
from tests.unit.csit_utils.in_memory import InMemory
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.csit_utils.study_records import chain_studied, interfered


def dataset_of(*results: DensityRecord, unrecorded: tuple[Unrecorded, ...] = (), source: str = "output.xml") -> Dataset:
    """A dataset as if read from one file."""
    recorded = [Recorded(one, source, Status.PASS if one.passed else Status.FAIL, one.message) for one in results]
    return Dataset(recorded=recorded, unrecorded=list(unrecorded))


def html_of(dataset: Dataset) -> str:
    """The report in one file."""
    return single_file(ReportContents(InMemory(dataset)))


def plain(chains: int, nodes: int, ndr: float, pdr: float | None = None, **changes: Any) -> DensityRecord:
    """A CSC test with round numbers."""
    goals = {"ndr": goal_result(NDR, ndr), "pdr": goal_result(PDR, pdr or ndr)}
    return result(CSC, chains, nodes, histograms=False, **goals, **changes)


def latency_test(made: DensityRecord, **changes: Any) -> DensityRecord:
    """The same as a test of latency."""
    asked = made.asked.model_copy(update={"test_type": TestType.LATENCY})
    return made.model_copy(update={"asked": asked, **changes})


def imported(folder: Path, *paths: Path, label: str | None = None, processes: int = 1) -> list[FileImport]:
    """Import files into a dataset; return the outcome of each."""
    layout = Layout.make(folder)
    with layout.writing(lambda: None):
        return [each for each in import_all(layout, paths, label, processes) if isinstance(each, FileImport)]


def invoked(*words: object) -> Result:
    """Run a command in this process."""
    line = [*map(str, words)]
    return CliRunner().invoke(make_app(line), line)


TOPOLOGIES = Path(__file__).parents[3] / "topologies"


def plan(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What `plan` prints."""
    capsys.readouterr()
    make_app(["plan"])(["plan", *options], standalone_mode=False)
    return capsys.readouterr().out


def history(folder: Path) -> Layout:
    """Three nights of two cells, a failed test of the last one, and a copy of that night that breaks off."""
    files = []
    for night in (1, 2, 3):
        begun = {chains: f"2026-11-0{night}T1{chains}:00:00Z" for chains in (1, 2)}
        made = [result(CSC, chains, 1, histograms=False, started_at=at) for chains, at in begun.items()]
        failed = [("No start", "Fail", "nf-1-1 is down", ("CSC",))] if night == 3 else []
        files.append(write_output_xml(folder / f"output-{night}.xml", made, failed))
    cut = folder / "output-cut.xml"
    content = files[-1].read_bytes()
    cut.write_bytes(content[: content.index(b'name="No start"')])
    imported(folder / "dataset", *files, cut)
    return Layout(folder / "dataset")


def history_of_studies(folder: Path) -> Path:
    """A dataset of three nights with a record of each other study."""
    layout = history(folder)
    imported(layout.folder, write_output_xml(folder / "studies.xml", [*one_of_each(), chain_studied(), interfered()]))
    return layout.folder
