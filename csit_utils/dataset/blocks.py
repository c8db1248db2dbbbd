"""Blocks, damage and tests of an output of Robot Framework in both its forms, and the scanner of its JSON.

That one holds one test at a time, and builds nothing of its keywords: strings and brackets are followed to find tests.
`robot --output x.json` writes the name of a suite behind its tests, `rebot` before them: tests without a record wait
until all names are known.
"""

import codecs
import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from datetime import datetime
from itertools import chain
from typing import BinaryIO

import msgspec

from csit_utils.dataset.items import Problem, ReadError, Refusal, Status
from resources.libraries.python.model.bounds import DEEPEST_ELEMENT, LARGEST_TEST_BYTES, MAX_DAMAGE, MAX_UNRECORDED
from resources.libraries.python.recording.marker import NOT_STARTED, PLACEHOLDER, REFUSED_MARKER, RESULT_MARKER
from resources.libraries.python.studies.density.model import REFUSED_CELLS

BLOCK_BYTES = 1 << 17
"""Small enough to stay in the CPU cache between two passes."""
_ENDINGS = {"PASS": Status.PASS, "FAIL": Status.FAIL}
"""All other statuses, such as NOT RUN of a dry run, count as skipped."""


class ScannedTest(msgspec.Struct, frozen=True, gc=False):
    """A test of an output.xml."""

    long_name: str
    name: str
    tags: tuple[str, ...]
    """Empty with a record, which has them."""
    status: Status | None
    """None if the file is truncated."""
    message: str
    record: bytes | str | None
    """Its JSON, plain or packed."""
    started_at: str | None = None
    """By the clock of Robot's machine, of unknown zone. May be missing with a record, which has it in UTC."""
    stripped: bool = False
    """Whether there is no record, and rebot has noted that it removed what keywords logged."""


Scanned = ScannedTest | Refusal | Problem


class BeyondBound(ReadError):
    """A part of a file is larger than what is read; the rest of the file is left out."""


_Steps = Generator[Scanned, None, int]
"""Returns a position in the buffer."""


class Scanner(ABC):
    """Scanner of a file, block by block, up to the first that is refused."""

    FORM = "JSON"
    """What the file should be."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._need = BLOCK_BYTES
        """Bytes to read at once."""
        self._damage: list[str] = []
        self._bound: str | None = None
        """The bound that ended the reading."""
        self._refusal: str | None = None
        """Reason why the rest of the file is not read."""
        self._ended: ReadError | OSError | None = None
        self._ascii = True
        """Whether all bytes so far are ASCII, which is faster to check than UTF-8."""

    def scan(self, stream: BinaryIO) -> Iterator[Scanned]:
        """Yield every test of a file, then a problem if it is damaged.

        A truncated file yields all complete tests, and what else is known of it.

        `stream`: its bytes; a `ReadError` while reading ends it like the end of the file.
        """
        yield from self._finish((yield from self._feed(stream)))
        yield from self._problem()

    @abstractmethod
    def _take(self, buffer: bytes) -> _Steps:
        """Yield complete items of what is not processed yet; return the number of processed bytes."""

    @abstractmethod
    def _finish(self, rest: bytes) -> Iterator[Scanned]:
        """Yield what the end of the file completes; `rest` is not processed yet."""

    def _feed(self, stream: BinaryIO) -> Generator[Scanned, None, bytes]:
        """Yield the items of the blocks; return the rest, which was not processed."""
        buffer, done = b"", 0
        try:
            for block in self._read(stream):
                # Avoid copying a test larger than a block again for each of its blocks.
                buffer = buffer[done:] + block
                done = yield from self._take(buffer)
                self._need = max(BLOCK_BYTES, len(buffer) - done)
                if len(buffer) - done > LARGEST_TEST_BYTES:
                    raise BeyondBound(f"a test is larger than {LARGEST_TEST_BYTES / 1e6:.0f} MB, the bound for tests")
        except BeyondBound as error:
            self._bound = str(error)
        except ReadError as error:
            self._damage.insert(0, str(error))
        except OSError as error:
            self._damage.insert(0, f"cannot be read: {error.strerror or error}")
        return buffer[done:]

    def _problem(self) -> Iterator[Problem]:
        """Yield the problem of the file, if it has one."""
        if self._refusal is not None:
            yield Problem(self._source, self._refusal)
            return
        reasons = [self._bound] if self._bound is not None else []
        if damage := self._damage:
            some = "; ".join(damage[:3]) + (f"; and {len(damage) - 3} more" if len(damage) > 3 else "")
            reasons.append(f"truncated or damaged {self.FORM} ({some})")
        if reasons:
            yield Problem(self._source, f"{self._source}: {'; '.join(reasons)}; complete parts were read")

    def _add(self, text: str) -> None:
        """Report damage.

        Raises:
            ReadError: There is too much of it.
        """
        self._damage.append(text)
        if len(self._damage) > MAX_DAMAGE:
            raise ReadError(f"more than {MAX_DAMAGE:,} damaged parts")

    def _once(self, key: str, text: str) -> None:
        """Report a kind of damage once; `key` is the start of its text."""
        if not any(each.startswith(key) for each in self._damage):
            self._damage.append(text)

    def _read(self, stream: BinaryIO) -> Iterator[bytes]:
        decoder, last, before = codecs.getincrementaldecoder("utf-8")(), b"", 0
        while block := self._filled(stream):
            if (most := self._accepted(block, last)) < len(block):
                yield block[:most]
                return
            self._look(block, decoder, before)
            last, before = block[-1:], before + len(block)
            yield block
        if not before:
            self._refusal = f"{self._source}: the file is empty"

    def _accepted(self, block: bytes, last: bytes) -> int:  # noqa: ARG002 - for forms that refuse something
        """Return how many bytes of a block are read; fewer than all, with a `refusal`, end the reading.

        `last`: the byte before it; empty at the start of the file.
        """
        return len(block)

    def _filled(self, stream: BinaryIO) -> bytes:
        """Read `need` bytes, also from a stream that returns less: an open test is searched anew for each block."""
        if self._ended is not None:
            raise self._ended
        parts, size = [], 0
        try:
            while size < self._need and (part := stream.read(self._need - size)):
                parts.append(part)
                size += len(part)
        except (ReadError, OSError) as error:
            if not parts:
                raise
            self._ended = error
        return b"".join(parts)

    def _look(self, block: bytes, decoder: codecs.IncrementalDecoder, before: int) -> None:
        if (at := block.find(b"\0")) >= 0:
            self._once("NUL bytes", f"NUL bytes from byte {before + at} on")
        self._ascii = self._ascii and block.isascii()
        if self._ascii:
            return
        try:
            decoder.decode(block)
        except UnicodeDecodeError as error:
            decoder.reset()
            self._once("not UTF-8", f"not UTF-8 at about byte {before + error.start}")


_FIRST_YEAR = 2008
"""Year of the first release of Robot Framework."""


def time_of(stamp: str) -> str | None:
    """Return a time of any version of Robot Framework in ISO 8601 without a zone; None if invalid."""
    try:
        found = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return None if found.tzinfo or found.year < _FIRST_YEAR else found.isoformat(timespec="milliseconds")


def status_of(text: str) -> Status:
    """Return Robot's status of a test."""
    return _ENDINGS.get(text, Status.SKIP)


def logged_cells(source: str, message: str) -> Iterator[Refusal]:
    """Read the JSON of a suite's log message.

    Raises:
        ValueError: It is damaged.
    """
    return (Refusal(source, each) for each in REFUSED_CELLS.validate_json(message))


def is_placeholder(name: str, message: str) -> bool:
    """Whether a test is the place of rows that were never made."""
    return name.startswith(PLACEHOLDER) and message == NOT_STARTED


_REMOVED = re.compile(rb"removed using (?:the )?--(?:remove-keywords|RemoveKeywords) option")


def has_removed_keywords(segment: bytes) -> bool:
    """Whether rebot has noted in a test that it removed what keywords logged."""
    return _REMOVED.search(segment) is not None


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


class JsonScanner(Scanner):
    """Scanner of a JSON output; of a truncated one, tests without a record come last."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
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

    def _take(self, buffer: bytes) -> _Steps:
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
            self._once("a bracket", "a bracket that was not opened")
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
                self._once("a suite", f"a suite's name: {error}")
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
            self._add(f"{what} in suite '{self._suites[-1].long_name('') if self._suites else ''}': {error}")

    def _refused(self, segment: bytes) -> Iterator[Refusal]:
        return chain.from_iterable(
            logged_cells(self._source, _json_text(found[1])) for found in _REFUSED.finditer(segment)
        )

    def _test(self, segment: bytes) -> Iterator[ScannedTest]:
        test = msgspec.json.decode(segment, type=_Test)
        suite, status, message = self._suites[-1], status_of(test.status), test.message.strip()
        records = _RECORD.findall(segment)
        if records:
            yield ScannedTest(suite.long_name(test.name), test.name, (), status, message, _json_text(records[-1]))
        elif not is_placeholder(test.name, message):
            if len(self._unrecorded) >= MAX_UNRECORDED:
                raise BeyondBound(f"more than {MAX_UNRECORDED:,} tests without a record")
            started, stripped = time_of(test.start_time or ""), has_removed_keywords(segment)
            made = ScannedTest(test.name, test.name, test.tags, status, message, None, started, stripped)
            self._unrecorded.append((suite, made))

    def _finish(self, rest: bytes) -> Iterator[Scanned]:  # noqa: ARG002 - of the other form
        """Yield the tests without a record."""
        for suite, test in self._unrecorded:
            yield msgspec.structs.replace(test, long_name=suite.long_name(test.name))
        if not self._closed and not self._damage and self._bound is None:
            self._damage.append("the file ends before its last bracket")


def _json_text(raw: bytes) -> str:
    """Text of a string of JSON, given without its quotation marks."""
    return msgspec.json.decode(b'"' + raw + b'"', type=str)
