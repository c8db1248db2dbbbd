"""The sizing suite with specifications of a test's own, and what it recorded."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resources.libraries.python.model.service.spec import Sizing
from resources.libraries.python.studies.sizing.model import SizingRecord
from tests.integration.robot_runs import SPECS, SUITES

SUITE = SUITES / "sizing.robot"


def records(output: Path) -> dict[str, SizingRecord]:
    """By name of the test."""
    rows = [
        SizingRecord.model_validate_json(path.read_text(encoding="utf-8"))
        for path in (output / "results").glob("*.json")
    ]
    return {row.test_name: row for row in rows}


def sizing_of(record: SizingRecord) -> Sizing:
    assert record.sizing is not None
    return record.sizing


def suite(folder: Path, service: str, specifications: Mapping[str, Any]) -> Path:
    """The suite with specifications of the test's own, by name of the file; scripts are the service's."""
    specs = folder / "specs"
    shutil.copytree(SPECS / service, specs)
    for name, row in specifications.items():
        (specs / name).write_text(json.dumps(row))
    path = folder / "sizing.robot"
    text = SUITE.read_text(encoding="utf-8")
    path.write_text(re.sub(rf"(    |=){service}/", rf"\1{specs}/", text))
    return path
