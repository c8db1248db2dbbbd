"""The JSON Schemas of records, generated from the models."""

from typing import Any

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.model.result import SCHEMA_VERSION, Result


def result_schema() -> dict[str, Any]:
    """That of the result of a density test."""
    return _of(Result, "result", SCHEMA_VERSION)


def characterization_schema() -> dict[str, Any]:
    """That of a characterization test."""
    version = Characterization.model_fields["schema_version"].default
    return _of(Characterization, "characterization", version)


def _of(model: type[Frozen], name: str, version: str) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:csit-density:{name}:{version}",
        **model.model_json_schema(),
    }
