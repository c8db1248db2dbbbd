"""The JSON Schema of a result, made from the model; the copy beside this file is for readers without Python."""

import json
from pathlib import Path
from typing import Any

from resources.libraries.python.model.result import SCHEMA_VERSION, Result

SCHEMA_FILE = Path(__file__).with_name("result.schema.json")


def schema() -> dict[str, Any]:
    """The schema as the model says it now."""
    made = Result.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:csit-density:result:{SCHEMA_VERSION}",
        **made,
    }


def write_schema() -> Path:
    """Write the copy. A test fails when it differs from the model."""
    SCHEMA_FILE.write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")
    return SCHEMA_FILE
