"""The JSON Schemas of records, made from the models; the copies beside this file are for readers without Python."""

import json
from pathlib import Path
from typing import Any

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.model.result import SCHEMA_VERSION, Result

SCHEMA_FILE = Path(__file__).with_name("result.schema.json")
CHARACTERIZATION_FILE = Path(__file__).with_name("characterization.schema.json")


def schema() -> dict[str, Any]:
    """That of a result, as the model says it now."""
    return _of(Result, "result", SCHEMA_VERSION)


def characterization_schema() -> dict[str, Any]:
    """That of a characterization test."""
    version = Characterization.model_fields["schema_version"].default
    return _of(Characterization, "characterization", version)


def write_schemas() -> None:
    """Write the copies. A test fails when one differs from its model."""
    for path, made in ((SCHEMA_FILE, schema()), (CHARACTERIZATION_FILE, characterization_schema())):
        path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def _of(model: type[Frozen], name: str, version: str) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:csit-density:{name}:{version}",
        **model.model_json_schema(),
    }
