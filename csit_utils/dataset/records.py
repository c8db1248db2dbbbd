"""One result record: from JSON text to a validated Result."""

import json

from pydantic import ValidationError

from csit_utils.dataset.items import ReadError
from resources.libraries.python.model.result import SCHEMA_VERSION, Result


def parse_record(text: str | bytes, where: str) -> Result:
    """Validate the JSON of one record.

    Args:
        text: The JSON.
        where: The file, and the test in it, for the error's text.

    Raises:
        ReadError: It is no record, or one of another schema version.
    """
    try:
        return Result.model_validate_json(text)
    except ValidationError as error:
        raise ReadError(f"{where}: {_reason(text, error)}") from error


def _reason(text: str | bytes, error: ValidationError) -> str:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as json_error:
        return f"the record is no valid JSON: {json_error}"
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version is None:
        return "this is no result record: it has no schema_version"
    if version != SCHEMA_VERSION:
        return f"the record has schema version {version}, this tool reads {SCHEMA_VERSION}"
    errors = error.errors(include_url=False)
    path = ".".join(map(str, errors[0]["loc"]))
    others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"the record is not valid: {path}: {errors[0]['msg']}{others}"
