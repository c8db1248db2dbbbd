"""The base of every type that is read from or written to a file."""

from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema

_SEQUENCES = ("tuple", "list", "set", "frozenset")
_OTHER_PARTS = {"cls", "config", "metadata", "serialization", "type"}


def _fail_fast(schema: Any) -> None:  # noqa: ANN401 - mappings and lists of pydantic
    """Let validation of the sequences in a model end at their first wrong item."""
    if isinstance(schema, dict):
        if schema.get("type") in _SEQUENCES:
            schema["fail_fast"] = True
        parts = [each for key, each in schema.items() if key not in _OTHER_PARTS]
    else:
        parts = list(schema)
    for part in parts:
        if isinstance(part, dict | list | tuple) and not (isinstance(part, dict) and "cls" in part):
            _fail_fast(part)


class Frozen(BaseModel):
    """An immutable record in which an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        """Bound the errors of a wrong file: each takes some kB of memory, and a wrong item in it 3 bytes."""
        schema = handler(source)
        _fail_fast(schema.get("schema", ()))
        return schema


Location = tuple[int | str, ...]
"""Keys and indexes from the top of a file to a place in it."""


class Misfit(ValueError):
    """Something in a file contradicts something else in it."""

    def __init__(self, location: Location, message: str) -> None:
        super().__init__(message)
        self.location = location
        """From the model that noticed to the place that is wrong."""
