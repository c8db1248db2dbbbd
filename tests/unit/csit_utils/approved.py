"""Approved wording: of each command and page one file, with `#` for each number."""

import re
from html import unescape
from pathlib import Path

from syrupy.extensions.amber import AmberSnapshotExtension
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?")
_NUMBER = re.compile(r"(?<![\w.#])(?<![A-Za-z]-)(?<![A-Za-z]-\d-)\d[\d,]*(?:\.\d+)*(?:e[+-]?\d+)?(?![\w.]*\w)")
_COEFFICIENT = re.compile(r" ?= ?-?#(?: \(-?# to -?#\))?,?")
"""Of a fitted function: whether it has an interval, and its sign where it is next to zero, are of the processor."""
_BLOCK = re.compile(
    r"</?(?:p|h\d|tr|caption|li|dt|dd|div|section|details|summary|table|ul|ol|figure|pre|option)\b[^>]*>"
)
_HIDDEN = re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL)


class Approved(AmberSnapshotExtension):
    """Keeps the texts of all tests in which a parameter begins with the same word in one file."""

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(Path(super().dirname(test_location=test_location), test_location.basename))

    @classmethod
    def get_file_basename(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:  # noqa: ARG003
        return re.split(r"[][ ]", f"{test_location.testname}[others")[1]

    @classmethod
    def matches_test_location(cls, *, test_location: PyTestLocation, snapshot_location: str) -> bool:
        return cls.get_location(test_location=test_location, index=0) == snapshot_location


def wording(text: str) -> str:
    """A text without its numbers and dates, whose values other tests assert, and lines that are then alike."""
    lines = _COEFFICIENT.sub("=#", _NUMBER.sub("#", _DATE.sub("#", text))).splitlines()
    return "\n".join(line for before, line in zip(["", *lines], lines, strict=False) if line != before)


def wording_of_page(html: str) -> str:
    """What a reader sees of a page: a line for each block and row of a table."""
    blocks = _BLOCK.split(_HIDDEN.sub("", html))
    texts = (unescape(re.sub(r"<[^>]*>", " ", block)) for block in blocks)
    return wording("\n".join(filter(None, (" ".join(text.split()) for text in texts))))
