"""Tests of an output of Robot Framework in any form, those whose records rebot has removed included.

`rebot --removekeywords` and log levels above INFO remove the messages with records. A test that passed has one: it is
read from the record files beside the output; where these are missing, the test is left out and reported.

Robot's output.xml is scanned by bytes, block by block, without a tree; most bytes are skipped. Between tests, suites
and cells that do not fit are matched. Of a test, three parts are read: its start tag, messages with a record, and its
status at the end. A test in another form, or without a record, is parsed by a real XML parser. This covers output of
Robot Framework 3 to 7; it is no validation of XML: damage in skipped parts goes unnoticed and does no harm.
"""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, datetime
from itertools import zip_longest
from typing import BinaryIO
from xml.etree.ElementTree import ParseError

import msgspec
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from csit_utils.dataset.blocks import (
    BeyondBound,
    JsonScanner,
    Scanned,
    ScannedTest,
    Scanner,
    has_removed_keywords,
    is_placeholder,
    logged_cells,
    status_of,
    time_of,
)
from csit_utils.dataset.inputs import HTML, READABLE, Kind, Source, content_of, looks_like
from csit_utils.dataset.items import Problem, ReadError, Refusal, Status
from resources.libraries.python.model.bounds import DEEPEST_ELEMENT, LARGEST_BETWEEN_BYTES, MAX_UNRECORDED
from resources.libraries.python.quantities import counted
from resources.libraries.python.recording.marker import REFUSED_MARKER, RESULT_MARKER, plain_message

_ATTRIBUTES = rb"""(?:[^"'<>]++|"[^"<]*+"|'[^'<]*+')*+"""
"""Rest of a start tag after the name, with a final slash; values may contain `>`."""
_ATTRIBUTE = re.compile(rb"""(?<![\w:.-])([\w:.-]++)\s*+=\s*+("[^"]*+"|'[^']*+')""")
"""Begins only where a word does, so that a long word is searched once."""
_USUAL = re.compile(rb'\s+id="[^"]*" name="([^"\n\t\r]*)"')
_REFERENCE = re.compile(r"&(#x[0-9a-fA-F]{1,6}|#[0-9]{1,7}|\w*)(;?)")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


class _NotXml(ValueError):
    """The text is not well-formed."""


def _text_of(raw: bytes) -> str:
    """Return character data with references resolved.

    Raises:
        _NotXml: Not UTF-8, or an undefined reference.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise _NotXml(f"not UTF-8: {error.reason}") from error
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _REFERENCE.sub(_referred, text) if "&" in text else text


def _referred(found: re.Match[str]) -> str:
    name, end = found.groups()
    try:
        if end and name.startswith("#"):
            return chr(int(name[2:], 16) if name[1] == "x" else int(name[1:]))
        if end:
            return _ENTITIES[name]
    except (KeyError, ValueError, OverflowError):
        pass
    raise _NotXml(f"undefined entity {found[0]}")


def _name_of(tag: bytes) -> str:
    """Return the name in the start tag of a suite or test.

    Raises:
        _NotXml: A value is not well-formed.
    """
    usual = _USUAL.match(tag)
    return _text_of(usual[1]) if usual else _attributes_of(tag).get("name", "")


def _attributes_of(tag: bytes) -> Mapping[str, str]:
    """Return the attributes of a start tag.

    Raises:
        _NotXml: A value is not well-formed.
    """
    spaces = bytes.maketrans(b"\n\t", b"  ")
    return {
        name.decode(): _text_of(value[1:-1].replace(b"\r\n", b" ").replace(b"\r", b" ").translate(spaces))
        for name, value in _ATTRIBUTE.findall(tag)
    }


class _TestElement:
    """A `test` element parsed by a real XML parser, possibly truncated."""

    __test__ = False  # not a pytest class

    def __init__(self) -> None:
        self.name = ""
        self.tags: list[str] = []
        self.record: str | None = None
        self.status: str | None = None
        self.message = ""
        self.started_at: str | None = None
        self._open: list[str] = []
        self._text: list[str] = []
        self._status: Mapping[str, str] = {}

    @classmethod
    def parse(cls, segment: bytes, *, whole: bool = True) -> tuple["_TestElement", str | None]:
        """Parse the bytes of one test.

        `segment`: from `<test` on.
        `whole`: whether it is complete; a truncated test is read up to its end.

        Returns:
            The test, and an error of the XML, if any.
        """
        element = cls()
        parser = DefusedXMLParser(target=element, forbid_dtd=True)
        try:
            parser.feed(segment)
            if whole:
                parser.close()
        except (ParseError, DefusedXmlException, ValueError) as error:
            return element, str(error)
        return element, None

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Called by the parser."""
        self._open.append(tag)
        if len(self._open) > DEEPEST_ELEMENT:
            raise _NotXml(f"elements nested more than {DEEPEST_ELEMENT} deep")
        self._text.clear()
        if len(self._open) == 1:
            self.name = attributes.get("name", "")
        elif tag == "status":
            self._status = attributes

    def data(self, text: str) -> None:
        """Called by the parser."""
        self._text.append(text)

    def end(self, tag: str) -> None:
        """Called by the parser."""
        self._open.pop()
        text = "".join(self._text)
        self._text.clear()
        if tag == "msg" and text.startswith(RESULT_MARKER):
            self.record = text
        elif self._open == ["test"] and tag == "status":
            self.status, self.message = self._status.get("status", ""), text.strip()
            self.started_at = time_of(self._status.get("start") or self._status.get("starttime") or "")
        elif tag == "tag" and self._open in (["test"], ["test", "tags"]):
            self.tags.append(text)

    def close(self) -> None:
        """Called by the parser."""


_MARKER = b">" + RESULT_MARKER.encode()
# The first alternative of these three is what Robot Framework 7 writes, and a part of the second, which is slower.
_TEST = re.compile(rb'<test(?: id="[^"<>]*" name="([^"<>\n\t\r]*)" line="[0-9]*"|(\s' + _ATTRIBUTES + rb"|))>")
_MSG = re.compile(rb'<msg(?: time="[^"<>]*" level="[A-Z]*"|\s' + _ATTRIBUTES + rb")?>")
_STATUS = re.compile(
    rb'<status(?: status="([A-Z ]+)" start="[^"<>&]*" elapsed="[^"<>&]*"(/?)|(\s' + _ATTRIBUTES + rb"))>"
    rb"(?:([^<]*)</status>)?\s*"
)
_BETWEEN = re.compile(  # its first byte is the same in all cases, so that the others are skipped at memory speed
    rb"<(?:suite(\s" + _ATTRIBUTES + rb"|)>|(/suite\s*>)|(/robot\s*>)"
    rb"|msg(?:\s" + _ATTRIBUTES + rb")?>" + REFUSED_MARKER.encode() + rb"([^<]*)</msg>)"
)
_SHORTEST_BETWEEN = len("<suite>")
_FIRST = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml([^>]*)\?>\s*+)?<(/?[^\s>/]*)")
_ENCODING = re.compile(rb"""encoding\s*=\s*["']([\w.-]+)["']""")


class XmlScanner(Scanner):
    """Scanner of an output.xml, up to what Robot Framework does not write; its state is that before the next test."""

    FORM = "XML"

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._suites: list[str] = []
        self._prefix = ""
        """Prefix of the long names of tests."""
        self._unrecorded = 0
        self._closed = False
        self._marker = -1
        """Position of the next one in the buffer, its length without one; -1 if not searched yet."""

    def _accepted(self, block: bytes, last: bytes) -> int:
        if not last:
            self._refusal = self._strange(block)
            if self._refusal:
                return 0
        if (at := _declaration(block, last)) is not None:
            self._refusal = f"{self._source}: {_refusal((last + block)[at + len(last) :])}"
            return max(0, at)
        return len(block)

    def _strange(self, head: bytes) -> str | None:
        """Reason why a file is not an output of Robot; None if it may be."""
        found, looks = _FIRST.match(head), looks_like(head)
        if found is None or found[2].startswith(b"?") or looks == HTML:
            return f"{self._source}: no result, looks like {looks}; {READABLE}"
        encoding = _ENCODING.search(found[1] or b"")
        if encoding is not None and encoding[1].lower() not in (b"utf-8", b"utf8", b"us-ascii", b"ascii"):
            return f"{self._source}: encoding {encoding[1].decode()}; Robot Framework writes UTF-8"
        if found[2] == b"robot" or found[2].startswith(b"!") or found.end() == len(head):
            return None
        name = found[2].decode(errors="replace")
        return f"{self._source}: not an output.xml of Robot Framework, starts with <{name}>; {READABLE}"

    def _take(self, buffer: bytes) -> Generator[Scanned, None, int]:
        at, self._marker = 0, -1
        while (start := _find_test(buffer, at)) >= 0:
            if start - at >= _SHORTEST_BETWEEN:
                yield from self._between(buffer, at, start)
            at = start
            tag = _TEST.match(buffer, start)
            if tag is None:
                if buffer.find(b"<", start + 1) < 0:
                    return start
                self._add("the start of a test")
                at += 1
                continue
            if tag[2] is not None and tag[2].endswith(b"/"):
                test, end = None, tag.end()
            else:
                test, end = self._usual(buffer, tag)
            if end < 0:
                return start
            if test is None:
                yield from self._exact(buffer[start:end])
            else:
                yield test
            at = end
        end = _safe_end(buffer, at)
        yield from self._between(buffer, at, end)
        if len(buffer) - end > LARGEST_BETWEEN_BYTES:
            message = _MSG.match(buffer, end)
            if message is None or buffer.startswith(REFUSED_MARKER.encode(), message.end()):
                most = f"{LARGEST_BETWEEN_BYTES / 1e6:.0f} MB"
                raise BeyondBound(f"an element between tests is larger than {most}, the bound for these")
            return len(buffer)  # nothing of a message is needed, however long it is
        return end

    def _between(self, buffer: bytes, at: int, end: int) -> Iterator[Scanned]:
        """Process the start and end of suites, and cells that do not fit."""
        for found in _BETWEEN.finditer(buffer, at, end):
            suite, suite_end, robot_end, refused = found.groups()
            try:
                if suite is not None:
                    if not suite.endswith(b"/"):
                        self._suites.append(_name_of(suite))
                elif suite_end:
                    if self._suites:
                        self._suites.pop()
                elif robot_end:
                    self._closed = True
                elif refused is not None:
                    yield from self._logged(refused)
            except _NotXml as error:
                self._once("a suite", f"a suite's name: {error}")
                if suite is not None:
                    self._suites.append("?")
        self._prefix = "".join(f"{name}." for name in self._suites)

    def _logged(self, message: bytes) -> Iterator[Refusal]:
        try:
            yield from logged_cells(self._source, _text_of(message))
        except ValueError:
            self._once("a suite", "its cells that do not fit")

    def _usual(self, buffer: bytes, tag: re.Match[bytes]) -> tuple[ScannedTest | None, int]:
        """Return a test with a record, from its start tag on, and the position of its end.

        Returns:
            No test if it has another form or no record; -1 if its end is not in the
            buffer.
        """
        at = tag.end()
        record: tuple[int, int] | None = None
        while True:
            if self._marker < at:
                self._marker = buffer.find(_MARKER, at)
                self._marker = len(buffer) if self._marker < 0 else self._marker
            # Searching from the end is twice as fast, and before a record there is usually none.
            if record is not None or buffer.rfind(b"</test>", at, self._marker) >= 0:
                end = buffer.find(b"</test>", at, self._marker)
                if end >= 0:
                    break
            if self._marker == len(buffer):
                return None, -1
            text = self._marker + 1
            opening = buffer.rfind(b"<", at, self._marker)
            # Messages other than records are short; the packed part of a record is skipped at memory speed.
            at = buffer.find(b"<", text)
            if at < 0:
                return None, -1
            if buffer.startswith(b"</msg", at) and opening >= 0 and _MSG.fullmatch(buffer, opening, text):
                record = text + len(RESULT_MARKER), at
        after = end + len(b"</test>")
        status = buffer.rfind(b"<status", at, end) if record else -1
        found = _STATUS.fullmatch(buffer, status, end) if status >= 0 else None
        if record is None or found is None:
            return None, after
        usual, slash, attributes, inside = found.groups()
        if (inside is None) != (slash or attributes or b"").endswith(b"/"):
            return None, after
        try:
            name = _name_of(tag[2]) if tag[1] is None else _text_of(tag[1])
            ended = usual.decode() if usual is not None else _attributes_of(attributes).get("status", "")
            message = _text_of(inside).strip() if inside else ""
            raw = buffer[slice(*record)]
            text_or_raw = _text_of(raw) if b"&" in raw or not (self._ascii or raw.isascii()) else raw
        except _NotXml:
            return None, after
        return ScannedTest(self._prefix + name, name, (), status_of(ended), message, text_or_raw), after

    def _exact(self, segment: bytes, *, whole: bool = True) -> Iterator[Scanned]:
        """Parse one test by a real XML parser."""
        test, error = _TestElement.parse(segment, whole=whole)
        if not test.name and (found := re.match(rb"<test\s[^>]*name=\"([^\"]*)\"", segment)) is not None:
            test.name = found[1].decode(errors="replace")
        long_name = self._prefix + test.name
        if whole and error is not None:
            self._add(f"test '{long_name}': {error}")
        message = test.message
        if not whole and test.record is None and test.status is None:
            message = "the file ends in the middle of this test"
        elif whole and test.record is None and error is not None:
            message = f"damaged XML: {error}"
        record = None if test.record is None else test.record.removeprefix(RESULT_MARKER)
        self._unrecorded += record is None
        if self._unrecorded > MAX_UNRECORDED:
            raise BeyondBound(f"more than {MAX_UNRECORDED:,} tests without a record")
        status = None if test.status is None else status_of(test.status)
        if is_placeholder(test.name, message):
            return
        yield ScannedTest(
            long_name,
            test.name,
            tuple(test.tags),
            status,
            message,
            record,
            test.started_at,
            stripped=record is None and has_removed_keywords(segment),
        )

    def _finish(self, rest: bytes) -> Iterator[Scanned]:
        """Yield the truncated test."""
        if self._refusal is None and self._bound is None:
            start = _find_test(rest, 0)
            yield from self._between(rest, 0, start if start >= 0 else len(rest))
            if start >= 0 and _TEST.match(rest, start):
                yield from self._exact(rest[start:], whole=False)
            if not self._closed and not self._damage:
                where = f" in suite '{'.'.join(self._suites)}'" if self._suites else ""
                self._damage.append(f"the file ends{where} before </robot>")


def _declaration(block: bytes, last: bytes) -> int | None:
    """Position of a declaration, comment or CDATA section; -1 if it starts with the byte before the block.

    Robot escapes every `<` that is not its own.
    """
    if b"!" not in block:  # searching for one byte is ten times as fast as for two
        return None
    if last == b"<" and block.startswith(b"!"):
        return -1
    at = block.find(b"<!")
    return at if at >= 0 else None


def _refusal(text: bytes) -> str:
    if text[2:3] in (b"-", b"["):
        return (
            "refused: contains comments or CDATA sections, which Robot Framework does not write; "
            "rewrite it by `rebot --output`"
        )
    return "refused: declares a document type or entities"


def _find_test(buffer: bytes, at: int) -> int:
    while (at := buffer.find(b"<test", at)) >= 0:
        if buffer[at + 5 : at + 6] in (b" ", b"", b"\n", b"\t", b"\r", b">", b"/"):
            return at
        at += 5
    return -1


def _safe_end(buffer: bytes, at: int) -> int:
    """Return a position between tests at which no tag or message is split."""
    last = buffer.rfind(b"<", at)
    before = buffer.rfind(b"<", at, max(at, last))
    if last < 0:
        return len(buffer)
    return before if before >= 0 and buffer.startswith(b"<msg", before) else last


_QUARTER_S = 900
_ZONES = range(-14 * 4, 14 * 4 + 1)
"""Time zones, in quarters of an hour."""
_EARLY_S, _LATE_S = 1, 30
"""How much before and after its test a record may begin. It begins when the first keyword has described the test."""


def scanned(stream: BinaryIO, source: Source) -> Iterator[Scanned]:
    """Yield every test of an output, then its problems.

    Raises:
        ReadError: The records of all tests were removed, and are not beside it.
    """
    found = (JsonScanner if source.kind is Kind.ROBOT_JSON else XmlScanner)(source.name).scan(stream)
    lost: list[ScannedTest] = []  # also tests that never had a record: the legacy format does not say what was removed
    problems: list[Problem] = []
    has_others = False
    names: set[str] = set()
    for each in found:
        if isinstance(each, ScannedTest):
            names.add(each.long_name)
        if isinstance(each, Problem):
            problems.append(each)
        elif isinstance(each, ScannedTest) and each.record is None and each.status is not None:
            lost.append(each)
        else:
            has_others = has_others or isinstance(each, ScannedTest)
            yield _plain(each)
    records = _records_of(lost, source, names) if lost else ()
    for test, record in zip_longest(lost, records):
        if record is not None:
            with record.open() as content:
                yield _plain(msgspec.structs.replace(test, record=content_of(content)))
        elif test.status is not Status.PASS:
            has_others = True
            yield _plain(test)
    if not records and (missing := [*filter(_had_record, lost)]):
        text = _lost_text(missing, source)
        if not has_others and not problems:
            raise ReadError(text)
        problems.append(Problem(source.name, text))
    yield from problems


def _had_record(test: ScannedTest) -> bool:
    """Whether a test without a record had one, as all that passed; one that failed may have ended before."""
    return test.status is Status.PASS or (test.stripped and test.status is Status.FAIL)


class _Begin(msgspec.Struct):
    """What is needed of a record to recognize its test."""

    test_id: str
    test_name: str
    started_at: datetime


def _records_of(lost: Sequence[ScannedTest], source: Source, names: Set[str]) -> Sequence[Source | None]:
    """Return the record file beside an output of each test; nothing if those of passed tests are not all there.

    A test and its record begin at the same time but for the time zone, which is the same for all tests of a run: the
    records of another run in the folder are not taken for them.
    """
    begun: dict[str, list[tuple[_Begin, Source]]] = {each.name: [] for each in lost}
    for record in source.beside():
        with suppress(msgspec.DecodeError, ReadError), record.open() as content:
            found = msgspec.json.decode(content_of(content), type=_Begin)
            if found.test_name in begun and found.started_at.tzinfo is not None:
                begun[found.test_name].append((found, record))
    zones = [
        _by_zone(
            test,
            # rebot can rename suites: only a record that belongs to another test of the output is not this one's.
            [
                (found.started_at, record)
                for found, record in begun[test.name]
                if found.test_id == test.long_name or found.test_id not in names
            ],
        )
        for test in lost
    ]
    # A test that failed may have ended before its record began.
    passed = [set(found) for test, found in zip(lost, zones, strict=True) if test.status is Status.PASS]
    needed = passed or [set(found) for found in zones if found]
    common = set.intersection(*needed) if needed else set()
    if not common:
        return ()
    records = [found.get(min(common, key=abs)) for found in zones]
    taken = [each.name for each in records if each is not None]
    return records if len(set(taken)) == len(taken) else ()


def _by_zone(test: ScannedTest, records: Sequence[tuple[datetime, Source]]) -> Mapping[int, Source]:
    """Return records that began when a test did, by the time zone of Robot's clock in quarters of an hour."""
    if test.started_at is None:
        return {}
    start = datetime.fromisoformat(test.started_at).replace(tzinfo=UTC)
    found = {}
    for began, record in records:
        zone, late_s = divmod((began - start).total_seconds() + _EARLY_S, _QUARTER_S)
        if late_s <= _EARLY_S + _LATE_S and zone in _ZONES:
            found[int(zone)] = record
    return found


def _plain(item: Scanned) -> Scanned:
    if not isinstance(item, ScannedTest) or (message := plain_message(item.message)) is item.message:
        return item
    return msgspec.structs.replace(item, message=message)


def _lost_text(lost: Sequence[ScannedTest], source: Source) -> str:
    count = counted(len(lost), "test")
    why = "rebot --removekeywords removed it" if any(each.stripped for each in lost) else "it is not in the log"
    return (
        f"{source.name}: {count} without the result record, such as '{lost[0].long_name}': {why}; "
        "name the output that Robot wrote at first, or the folder of the run with results/*.json"
    )
