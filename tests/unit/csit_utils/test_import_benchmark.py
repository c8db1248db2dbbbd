"""The benchmark of imports gives the space of each dataset back once it is measured."""

from pathlib import Path

import pytest

from csit_utils.bench.results import dataset_import
from resources.libraries.python.model.request.cell import ServiceType
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.robot_output import write_output_xml


@pytest.mark.slow
def test_datasets_that_were_measured_keep_their_files_without_contents(tmp_path: Path) -> None:
    file = write_output_xml(tmp_path / "output.xml", [result(ServiceType.CSC, 1, 1)])
    datasets = tmp_path / "datasets"
    datasets.mkdir()
    assert dataset_import._side(datasets, [file], 1) > 0
    assert dataset_import._side(datasets, [file], None) > 0, "the peer writes none"
    (dataset,) = datasets.iterdir()
    written = [path for path in dataset.rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in written), "removed files would slow the next import down"
    assert sum(path.stat().st_size for path in written) == 0
