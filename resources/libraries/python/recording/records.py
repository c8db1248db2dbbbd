"""Records of all studies: which there are, and the one reader of their JSON.

Each folder of `studies` whose `model` declares a subclass of `Record` adds a study.
"""

import base64
import binascii
import hashlib
import json
import re
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union

import msgspec
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import error_text, refused_version
from resources.libraries.python.model.bounds import LARGEST_RECORD_BYTES, MAX_KEYS, quoted
from resources.libraries.python.model.load import content_of
from resources.libraries.python.model.record import SCHEMA_VERSION, Record
from resources.libraries.python.paths import PROJECT, RESOURCES
from resources.libraries.python.unpacking import UnpackError, inflate

_Record = TypeVar("_Record", bound=Record)


def check_results(folder: Path) -> None:
    """Check that a folder with earlier results exists.

    Raises:
        ConfigError: It does not.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder of earlier results")


def earlier_records(folder: Path, kind: type[_Record]) -> list[_Record]:
    """Read the records of a kind in `results/*.json` at any depth, oldest first; files of other kinds are ignored."""
    found = []
    for path in folder.rglob("results/*.json"):
        try:
            record, _ = read_record(content_of(path, LARGEST_RECORD_BYTES))
        except (ConfigError, NotARecord):
            continue  # no record, or of a later version
        if isinstance(record, kind):
            found.append(record)
    return sorted(found, key=lambda record: record.started_at)


def _declared() -> dict[str, type[Record]]:
    for model in (RESOURCES / "libraries" / "python" / "studies").glob("*/model*"):
        import_module(".".join(model.relative_to(PROJECT).with_suffix("").parts))
    found = {each.model_fields["study"].default: each for each in Record.__subclasses__()}
    return dict(sorted(found.items()))


RECORDS = _declared()
"""Class of a record by its study."""
_KEYS_NAMED = 5
"""Of a file that is no record."""
_SHORTEST_KEY_BYTES = len('"a":1,')
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_STUDY = re.compile(rb'\s*\{\s*"study"\s*:\s*"(\w+)"')


class NotARecord(ValueError):
    """Text is no record that can be read; the error is a sentence that says why."""


class NotUnpacked(ValueError):
    """The packed part of a record cannot be unpacked, for the reason in the text."""


def unpack(packed: str | bytes) -> bytes:
    """The JSON object of the heavy keys.

    `packed`: What stands under `packed`.

    Raises:
        NotUnpacked: It is damaged, or unpacks to more than any record has.
    """
    try:
        return inflate(base64.b64decode(packed, validate=True))
    except (binascii.Error, ValueError) as error:
        raise NotUnpacked(f"its packed part is damaged: {error}") from error
    except UnpackError as error:
        raise NotUnpacked(f"its packed part {error}") from error


def _unpacked(text: str | bytes) -> tuple[str | bytes, str | None]:
    """The whole JSON of a record in either form, and the digest that the short form names; None for the plain form.

    Raises:
        NotUnpacked: The packed part is damaged.
        ValueError: It is no JSON at all.
    """
    if (isinstance(text, str) and '"packed"' not in text) or (isinstance(text, bytes) and b'"packed"' not in text):
        return text, None
    data = json.loads(text)
    if not isinstance(data, dict) or not isinstance(data.get("packed"), str):
        return text, None
    heavy = unpack(data.pop("packed"))
    figures = data.pop("counted", None)
    if not heavy.startswith(b"{") or _KEYS.decode(heavy).keys() & data.keys():
        raise NotUnpacked("its packed part is not that of a record")
    digest = figures.get("digest") if isinstance(figures, dict) else None
    return json.dumps(data).encode()[:-1] + b"," + heavy[1:], digest if isinstance(digest, str) else None


def read_record(text: str | bytes) -> tuple[Record, str | None]:
    """Read the JSON of a record of any study, whole or with packed keys.

    Returns:
        The record, and its digest as first written: the one that a packed record names, or that of a plain one, however
        it is formatted.

    Raises:
        NotARecord: It is none, or one of another schema version.
    """
    try:
        whole, digest = _unpacked(text)
        _refuse_wide(whole)
        if (study := _study_in(whole)) not in RECORDS:
            raise NotARecord(_unknown(json.loads(whole)))
        record = RECORDS[study].model_validate_json(whole)
        if (fault := fault_of_times(record.started_at, record.finished_at)) is not None:
            raise NotARecord(f"the record is not valid: {fault}")
        if digest is None:
            # Not of the record as this release writes it, which has keys that were added since.
            digest = hashlib.sha256(to_json(from_json(text))).hexdigest()
    except NotARecord:
        raise
    except ValidationError as error:
        raise NotARecord(_reason(whole, error)) from error
    except NotUnpacked as error:
        raise NotARecord(f"the record is unreadable: {error}") from error
    except (ValueError, RecursionError) as error:
        raise NotARecord(f"the record is not valid JSON: {error}") from error
    return record, digest


def _refuse_wide(text: str | bytes) -> None:
    """Refuse an object with thousands of keys before validation, which makes an error of some kB for each.

    Raises:
        NotARecord: There is one.
        ValueError: The text is not JSON.
    """
    if len(text) < MAX_KEYS * _SHORTEST_KEY_BYTES:
        return
    if (text.count('":') if isinstance(text, str) else text.count(b'":')) <= MAX_KEYS:
        return
    left: list[object] = [json.loads(text)]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            if len(value) > MAX_KEYS:
                raise NotARecord(f"an object with {len(value):,} keys, which no record has")
            left += [each for each in value.values() if isinstance(each, dict | list)]
        elif isinstance(value, list):
            left += [each for each in value if isinstance(each, dict | list)]


def fault_of_times(started_at: str, finished_at: str) -> str | None:
    """Say what is wrong with the times of a record, which readers compare and subtract; None if they are times."""
    for name, text in (("started_at", started_at), ("finished_at", finished_at)):
        if not _is_time(text):
            return f"{name}: '{quoted(text)}' is no time with a zone, such as 2026-01-31T22:00:00+00:00"
    return None


def _is_time(text: str) -> bool:
    try:
        found = datetime.fromisoformat(text)
        found.astimezone(UTC)  # impossible of the first and the last hours of all time
    except (ValueError, OverflowError):
        return False
    return found.tzinfo is not None and text.startswith(found.date().isoformat())


def records_schema(study: str | None = None) -> dict[str, Any]:
    """JSON Schema of the records of one study, or of all of them."""
    if study is not None:
        made = RECORDS[study].model_json_schema()
    else:
        each: Any = Union[tuple(RECORDS.values())]  # noqa: UP007 - a union of what was found
        adapter: TypeAdapter[Any] = TypeAdapter(Annotated[each, Field(discriminator="study")])
        made = adapter.json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:csit-density:{study or 'record'}:{SCHEMA_VERSION}",
        **made,
    }


def _study_in(text: str | bytes) -> str | None:
    found = _STUDY.match(text[:200].encode() if isinstance(text, str) else text[:200])
    return found[1].decode() if found else None


def _unknown(data: object) -> str:
    if not isinstance(data, dict) or (version := data.get("schema_version")) is None:
        return f"not a result record, but {_looks_like(data)}"
    if version != SCHEMA_VERSION:
        return f"the record has {refused_version(version, SCHEMA_VERSION)}"
    return f"unknown study '{quoted(str(data.get('study')))}' of the record"


def _looks_like(data: object) -> str:
    if isinstance(data, dict):
        keys = ", ".join(map(repr, list(data)[:_KEYS_NAMED]))
        return f"JSON with the keys {quoted(keys)}" if data else "an empty JSON object"
    return "a JSON list" if isinstance(data, list) else "a single JSON value"


def _reason(text: str | bytes, error: ValidationError) -> str:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as json_error:
        return f"the record is not valid JSON: {json_error}"
    if isinstance(data, dict) and data.get("schema_version") not in (None, SCHEMA_VERSION):
        return _unknown(data)
    return f"the record is not valid: {error_text(error)}"
