"""Scanner of Robot's JSON output, block by block: it holds one test at a time, and builds nothing of its keywords.

Strings and brackets are followed to find tests. `robot --output x.json` writes the name of a suite behind its tests,
`rebot` before them: tests without a record wait until all names are known.
"""

import re
from collections.abc import Generator, Iterator
from itertools import chain
from typing import BinaryIO

import msgspec

from csit_utils.dataset.blocks import (
    BeyondBound,
    Blocks,
    Scanned,
    ScannedTest,
    has_removed_keywords,
    is_placeholder,
    logged_cells,
    status_of,
    time_of,
)
from csit_utils.dataset.items import Refusal
from resources.libraries.python.model.bounds import DEEPEST_ELEMENT, MAX_UNRECORDED
from resources.libraries.python.recording.marker import REFUSED_MARKER, RESULT_MARKER

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:]|"', re.DOTALL)
"""A string, a bracket, the colon behind a key, or the beginning of a string that is not complete yet."""
_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+([{}\[\]])', re.DOTALL)
"""All up to the next bracket that is in no string."""
_ROOT, _SUITE, _SUITES, _TESTS, _TEST, _OTHER = range(6)
_INSIDE = {
    (_ROOT, b'"suite"', b"{"): _SUITE,
    (_SUITE, b'"suites"', b"["): _SUITES,
    (_SUITE, b'"tests"', b"["): _TESTS,
    (_SUITES, b"", b"{"): _SUITE,
    (_TESTS, b"", b"{"): _TEST,
}
"""Meaning of an opening bracket by what it is in, and its key there; all others are something else of a suite."""


def _logged(marker: str) -> re.Pattern[bytes]:
    return re.compile(rb'"message":\s*+"' + marker.encode() + rb'((?:[^"\\]++|\\.)*+)"', re.DOTALL)


_RECORD, _REFUSED = _logged(RESULT_MARKER), _logged(REFUSED_MARKER)
"""Messages with a marker. A quotation mark inside of a string has a backslash before it, so this is found in none."""


class _Test(msgspec.Struct):
    name: str = ""
    tags: tuple[str, ...] = ()
    status: str = ""
    message: str = ""
    start_time: str | None = None


class _Suite:
    """A suite, whose name may follow."""

    def __init__(self, parent: "_Suite | None") -> None:
        self._parent = parent
        self.name = ""

    def long_name(self, test: str) -> str:
        """Long name of a test in it."""
        long = f"{self.name}.{test}" if self.name else test
        return self._parent.long_name(long) if self._parent is not None else long


def scan_json(stream: BinaryIO, source: str) -> Iterator[Scanned]:
    """Yield every test of a JSON output, then a problem if the file is damaged.

    A truncated file yields all complete tests, those without a record last.

    `stream`: its bytes; a `ReadError` while reading ends it like the end of the file.
    """
    blocks = Blocks(source)
    scanner = _Scanner(source, blocks)
    yield from blocks.feed(stream, scanner.take)
    yield from scanner.finish()


class _Scanner:
    def __init__(self, source: str, blocks: Blocks) -> None:
        self._source = source
        self._blocks = blocks
        self._suites: list[_Suite] = []
        self._inside: list[int] = []
        self._string = self._key = b""
        self._begin = -1
        """Position in the buffer of a test, or of another part of a suite; -1 outside of both."""
        self._depth = 0
        """Open brackets of that part."""
        self._at = 0
        self._unrecorded: list[tuple[_Suite, ScannedTest]] = []
        self._closed = False

    def take(self, buffer: bytes) -> Generator[Scanned, None, int]:
        """Yield complete tests with a record in the buffer, and refused cells; return the number of processed bytes."""
        end = self._at
        while (found := (_TOKEN.search if self._begin < 0 else _BRACKET.match)(buffer, end)) is not None:
            if self._begin >= 0:
                end = found.end()
                self._depth += 1 if found[1] in b"{[" else -1
                if not self._depth:
                    yield from self._part(buffer[self._begin : end])
                    self._begin = -1
                continue
            token = found[0]
            if token == b'"':
                break
            end = found.end()
            if token in b"{[":
                self._open(token, found.start())
            elif token in b"}]":
                self._close()
            elif token == b":":
                self._key = self._string
            else:
                self._take_string(token)
        done = end if self._begin < 0 else self._begin
        self._at, self._begin = end - done, min(self._begin, 0)
        return done

    def _open(self, bracket: bytes, at: int) -> None:
        outer = self._inside[-1] if self._inside else None
        key = self._key if outer in (_ROOT, _SUITE) else b""
        self._key = self._string = b""
        inside = _ROOT if outer is None else _INSIDE.get((outer, key, bracket), _OTHER)
        if len(self._inside) > DEEPEST_ELEMENT:
            raise BeyondBound(f"suites nested more than {DEEPEST_ELEMENT} deep")
        self._inside.append(inside)
        if inside == _SUITE:
            self._suites.append(_Suite(self._suites[-1] if self._suites else None))
        elif inside in (_TEST, _OTHER):
            self._begin, self._depth = at, 1

    def _close(self) -> None:
        if not self._inside:
            self._blocks.once("a bracket", "a bracket that was not opened")
            return
        if self._inside.pop() == _SUITE:
            self._suites.pop()
        self._key = self._string = b""
        self._closed = not self._inside

    def _take_string(self, token: bytes) -> None:
        if self._inside[-1:] == [_SUITE] and self._key == b'"name"':
            try:
                self._suites[-1].name = msgspec.json.decode(token, type=str)
            except (msgspec.DecodeError, UnicodeError) as error:
                self._blocks.once("a suite", f"a suite's name: {error}")
            self._key = b""
        self._string = token

    def _part(self, segment: bytes) -> Iterator[Scanned]:
        inside = self._inside.pop()
        try:
            if inside == _TEST:
                yield from self._test(segment)
            elif self._suites:
                yield from self._refused(segment)
        except (ValueError, RecursionError) as error:
            what = "a test" if inside == _TEST else "cells that do not fit"
            self._blocks.add(f"{what} in suite '{self._suites[-1].long_name('') if self._suites else ''}': {error}")

    def _refused(self, segment: bytes) -> Iterator[Refusal]:
        return chain.from_iterable(logged_cells(self._source, _text(found[1])) for found in _REFUSED.finditer(segment))

    def _test(self, segment: bytes) -> Iterator[ScannedTest]:
        test = msgspec.json.decode(segment, type=_Test)
        suite, status, message = self._suites[-1], status_of(test.status), test.message.strip()
        records = _RECORD.findall(segment)
        if records:
            yield ScannedTest(suite.long_name(test.name), test.name, (), status, message, _text(records[-1]))
        elif not is_placeholder(test.name, message):
            if len(self._unrecorded) >= MAX_UNRECORDED:
                raise BeyondBound(f"more than {MAX_UNRECORDED:,} tests without a record")
            started, stripped = time_of(test.start_time or ""), has_removed_keywords(segment)
            made = ScannedTest(test.name, test.name, test.tags, status, message, None, started, stripped)
            self._unrecorded.append((suite, made))

    def finish(self) -> Iterator[Scanned]:
        """Yield the tests without a record, and a problem if the file is damaged."""
        for suite, test in self._unrecorded:
            yield msgspec.structs.replace(test, long_name=suite.long_name(test.name))
        if not self._closed and not self._blocks.damage and self._blocks.bound is None:
            self._blocks.damage.append("the file ends before its last bracket")
        yield from self._blocks.problem()


def _text(raw: bytes) -> str:
    """Text of a string of JSON, given without its quotation marks."""
    return msgspec.json.decode(b'"' + raw + b'"', type=str)
