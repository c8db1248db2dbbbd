"""What a `format` file of the kernel says of an event: where its fields lie, and the names of its numbers. Pure.

See Documentation/trace/events.rst: such a file lists the fields with offset and size in bytes, then the format string
of the text that the kernel prints, in which the names of reasons, states and vectors stand as tables.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from resources.libraries.python.errors import CsitError

_FIELD = re.compile(r"\tfield:(?P<declared>[^;]+);\toffset:(?P<offset>\d+);\tsize:(?P<size>\d+);")
_NAME = re.compile(r"(?<!\w)(\w++)(?:\[\w*+\])?$")
_TABLE = re.compile(r"__print_(?:symbolic|flags)\(\s*REC->(?P<field>\w+)")
_ROW = r'\{\s*+([^,{}]++),\s*+((?:"[^"]*+"\s*+)++)\}'
_ROWS = re.compile(rf"{_ROW}(?:\s*,\s*{_ROW})*")


@dataclass(frozen=True, slots=True)
class Field:
    """Where a field lies, in bytes from the beginning of the event's own data."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class EventFormat:
    """One event."""

    name: str
    number: int
    """`common_type` of its records; other kernels have others."""
    fields: Mapping[str, Field]
    tables: Mapping[str, tuple[Mapping[int, str], ...]]
    """Names of a field's numbers. Some fields have several tables, as `exit_reason` has for Intel, then for AMD."""


def parse(text: str) -> EventFormat:
    """Read a `format` file.

    Raises:
        CsitError: It has no name or no number.
    """
    name, number = (re.search(rf"^{word}: (\S+)$", text, re.MULTILINE) for word in ("name", "ID"))
    if name is None or number is None:
        raise CsitError(f"no format of a trace event: {text[:60]!r}")
    fields = {}
    for row in _FIELD.finditer(text):
        if match := _NAME.search(row["declared"]):
            fields[match[1]] = Field(int(row["offset"]), int(row["size"]))
    _, _, printed = text.partition("print fmt:")
    return EventFormat(name[1], int(number[1]), fields, _tables(printed))


def _tables(printed: str) -> dict[str, tuple[Mapping[int, str], ...]]:
    """Tables by field, in the order in which they stand in the text."""
    tables: dict[str, tuple[Mapping[int, str], ...]] = {}
    heads = list(_TABLE.finditer(printed))
    bounds = [*(head.start() for head in heads), len(printed)]
    for head, end in zip(heads, bounds[1:], strict=True):
        if rows := _ROWS.search(printed, head.end(), end):
            names = {}
            for number, words in re.findall(_ROW, rows[0]):
                if (value := _number(number)) is not None:
                    names[value] = "".join(re.findall(r'"([^"]*)"', words))
            tables[head["field"]] = (*tables.get(head["field"], ()), names)
    return tables


def _number(text: str) -> int | None:
    """A C constant or a sum of such, as 32 bits without sign; None for a name that only the compiler knows."""
    try:
        return sum(int(part.strip().rstrip("uUlL"), 0) for part in text.strip("() ").split("+")) & 0xFFFFFFFF
    except ValueError:
        return None
