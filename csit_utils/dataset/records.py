"""One result record: from JSON text, plain or packed, to a validated Result."""

import json
from typing import get_args

from pydantic import ValidationError

from csit_utils.dataset.items import ReadError
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.model.result import SCHEMA_VERSION, Result, SchemaVersion
from resources.libraries.python.recording.packed import unpacked

VERSIONS = frozenset[str](get_args(Result.model_fields["schema_version"].annotation))
"""Of the schema, that are read."""


def is_characterization(text: str | bytes) -> bool:
    """Whether a record is one of a characterization; its key for that comes first, however it was written."""
    head = text[:80].encode() if isinstance(text, str) else text[:80]
    return b"".join(head.split()).startswith(b'{"record":"characterization"')


def parse_characterization(text: str | bytes, where: str) -> Characterization:
    """Validate the JSON of the record of a characterization, plain or packed.

    Raises:
        ReadError: It is none, or one of another schema version.
    """
    try:
        return Characterization.model_validate_json(unpacked(text)[0])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise ReadError(f"{where}: the record is not valid: {path}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise ReadError(f"{where}: the record cannot be read: {error}") from error


def parse_record(text: str | bytes, where: str) -> tuple[Result, str | None]:
    """Validate the JSON of one record.

    Args:
        text: The JSON, all of it plain or its heavy keys packed.
        where: The file, and the test in it, for the error's text.

    Returns:
        The record, and the digest that its packed form names; None for the plain form.

    Raises:
        ReadError: It is no record, or one of another schema version.
    """
    whole = text
    try:
        whole, digest = unpacked(text)
        return Result.model_validate_json(whole), digest
    except ValidationError as error:
        raise ReadError(f"{where}: {reason(whole, error)}") from error
    except (ValueError, RecursionError) as error:
        raise ReadError(f"{where}: the record cannot be read: {error}") from error


def reason(text: str | bytes, error: ValidationError) -> str:
    """Why a text is no record, in one sentence."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as json_error:
        return f"the record is no valid JSON: {json_error}"
    if (other := other_version(data)) is not None:
        return other
    errors = error.errors(include_url=False)
    path = ".".join(map(str, errors[0]["loc"]))
    others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"the record is not valid: {path}: {errors[0]['msg']}{others}"


def other_version(data: object) -> str | None:
    """What is wrong with the version of a record; None where nothing is."""
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version is None:
        return "this is no result record: it has no schema_version"
    if version not in get_args(SchemaVersion):
        return f"the record has schema version {version}, this tool reads {SCHEMA_VERSION}"
    return None
