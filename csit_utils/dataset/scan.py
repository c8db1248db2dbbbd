"""Reading of Robot's output.xml by its bytes, block by block: no tree is built and most bytes are only passed over.

What is between the tests is matched for suites and their metadata. Of a test, three places are looked at: its start
tag, the messages that carry a record, and its status, which is the last thing in it. A test that is not written that
way, or left no record, goes through a real parser by itself. That holds for what Robot Framework 3 to 7 writes; it is
no validation of XML: damage in what is passed over is not noticed, and costs nothing.
"""

import codecs
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from csit_utils.dataset.items import Problem, ReadError, RefusedCell, Status
from csit_utils.dataset.xmltext import ATTRIBUTES, NotXml, TestElement, attributes_of, name_of, text_of
from resources.libraries.python.recording.marker import RESULT_MARKER

BLOCK_BYTES = 1 << 20
LARGEST_TEST_BYTES = 256 * 1024 * 1024
"""A test is held in memory as a whole; a larger one is taken for an attack on it."""
_MARKER = b">" + RESULT_MARKER.encode()
_FIRST = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml([^>]*)\?>)?\s*<(/?[^\s>/]*)")
_ENCODING = re.compile(rb"""encoding\s*=\s*["']([\w.-]+)["']""")
_TEST = re.compile(rb"<test(\s" + ATTRIBUTES + rb"|)>")
_MSG = re.compile(rb"<msg(?:\s" + ATTRIBUTES + rb")?>")
_STATUS = re.compile(rb"<status(\s" + ATTRIBUTES + rb")>([^<]*)</status>\s*|<status(\s" + ATTRIBUTES + rb")/>\s*")
_ENDED = re.compile(rb'\s+status="([A-Z ]+)"')
_NAMED = re.compile(rb'\s+name="([^"\n\t\r]*)"')
_BETWEEN = re.compile(
    rb"<suite(\s" + ATTRIBUTES + rb"|)>|(</suite\s*>)|<meta(\s" + ATTRIBUTES + rb")>([^<]*)</meta>|(</robot\s*>)"
)
_REFUSED = re.compile(r"Does not fit: (\w+) (\d+)R(\d+)C NF-(\S+) vSwitch-(\d+)c")


@dataclass(frozen=True, slots=True)
class ScannedTest:
    """A test of an output.xml."""

    long_name: str
    name: str
    tags: tuple[str, ...]
    """Empty where there is a record, which has them."""
    status: Status | None
    """None where the file ends first."""
    message: str
    record: bytes | str | None
    """Its JSON, plain or packed."""


Scanned = ScannedTest | RefusedCell | Problem
_Steps = Generator[Scanned, None, int]
"""Ends with a place in the buffer."""


def scan(stream: BinaryIO, source: str) -> Iterator[Scanned]:
    """Yield every test of an output.xml, and then what is wrong with the file, if anything.

    A file that breaks off yields all that is complete before the break, and the test that was cut.

    Args:
        stream: Its bytes; `ReadError` while reading ends it as the end of the file would.
        source: Its name, for problems.
    """
    scanner = _Scanner(source)
    buffer, done = b"", 0
    try:
        for block in scanner.blocks(stream):
            # A test larger than a block is not copied again for every block of it.
            buffer = buffer[done:] + block
            done = yield from scanner.take(buffer)
            if len(buffer) - done > LARGEST_TEST_BYTES:
                raise ReadError(f"a test has more than {LARGEST_TEST_BYTES / 1e6:.0f} MB")
    except ReadError as error:
        scanner.damage.insert(0, str(error))
    except OSError as error:
        scanner.damage.insert(0, f"cannot be read: {error.strerror or error}")
    yield from scanner.finish(buffer[done:])


@dataclass
class _Scanner:
    source: str
    suites: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    refusal: str | None = None
    """Why nothing more of the file is read."""
    closed: bool = False
    _need: int = BLOCK_BYTES
    _marker: int = -1

    def blocks(self, stream: BinaryIO) -> Iterator[bytes]:
        """Blocks of the file, up to the first that is refused."""
        decoder, first, last, read = codecs.getincrementaldecoder("utf-8")(), True, b"", 0
        while block := stream.read(self._need):
            if first:
                self.refusal = self._strange(block)
                if self.refusal:
                    return
            if (at := _declaration(last + block)) is not None:
                self.refusal = f"{self.source}: {_refusal(last + block, at)}"
                yield block[: max(0, at - len(last))]
                return
            self._look(block, decoder, read)
            first, last, read = False, block[-1:], read + len(block)
            yield block
        if first:
            self.damage.append("the file is empty")

    def _look(self, block: bytes, decoder: codecs.IncrementalDecoder, before: int) -> None:
        if (at := block.find(b"\0")) >= 0:
            self._once("NUL bytes", f"NUL bytes from byte {before + at} on")
        try:
            decoder.decode(block)
        except UnicodeDecodeError as error:
            decoder.reset()
            self._once("not UTF-8", f"not UTF-8 at about byte {before + error.start}")

    def _once(self, key: str, text: str) -> None:
        if not any(each.startswith(key) for each in self.damage):
            self.damage.append(text)

    def _strange(self, head: bytes) -> str | None:
        """Why a file is none of Robot's; None where it may be one."""
        found = _FIRST.match(head)
        if found is None or found[2].startswith(b"?"):
            return f"{self.source}: broken off or damaged XML (it does not start with an element)"
        encoding = _ENCODING.search(found[1] or b"")
        if encoding is not None and encoding[1].lower() not in (b"utf-8", b"utf8", b"us-ascii", b"ascii"):
            return f"{self.source}: it is in {encoding[1].decode()}; Robot Framework writes UTF-8"
        if found[2] == b"robot" or found[2].startswith(b"!") or found.end() == len(head):
            return None
        name = found[2].decode(errors="replace")
        return f"{self.source}: this is no output.xml of Robot Framework: it starts with <{name}>"

    def take(self, buffer: bytes) -> _Steps:
        """Yield what is complete in the buffer; return how much of it is done."""
        at, self._marker = 0, -1
        while True:
            start = _find_test(buffer, at)
            if start < 0:
                at = yield from self.between(buffer, at, _safe_end(buffer, at))
                self._need = BLOCK_BYTES
                return at
            at = yield from self.between(buffer, at, start)
            tag = _TEST.match(buffer, start)
            if tag is None and buffer.find(b"<", start + 1) >= 0:
                self.damage.append("the start of a test")
                at = start + 1
                continue
            if tag is not None and tag[1].endswith(b"/"):
                yield from self.exact(buffer[start : tag.end()])
                at = tag.end()
                continue
            if tag is None:
                self._need = max(BLOCK_BYTES, len(buffer) - start)
                return start
            after = yield from self._test(buffer, start, tag)
            if after < 0:
                self._need = max(BLOCK_BYTES, len(buffer) - start)
                return start
            at = after

    def between(self, buffer: bytes, at: int, end: int) -> _Steps:
        """Suites open and close, and tell of cells that do not fit; returns the end."""
        for found in _BETWEEN.finditer(buffer, at, end):
            suite, suite_end, meta, value, robot_end = found.groups()
            try:
                if suite is not None:
                    if not suite.endswith(b"/"):
                        self.suites.append(name_of(suite))
                elif suite_end:
                    if self.suites:
                        self.suites.pop()
                elif robot_end:
                    self.closed = True
                elif b"Does not fit" in meta:
                    usual = _NAMED.fullmatch(meta)
                    name = text_of(usual[1]) if usual else attributes_of(meta).get("name", "")
                    yield from refused_cells(self.source, name, text_of(value).strip())
            except NotXml as error:
                self._once("a suite", f"a suite's name or metadata: {error}")
                if suite is not None:
                    self.suites.append("?")
        return end

    def _test(self, buffer: bytes, start: int, tag: re.Match[bytes]) -> _Steps:
        """One test, from its start tag on; returns where it ends, or -1 where that is not in the buffer."""
        at = tag.end()
        record: tuple[int, int] | None = None
        while True:
            if self._marker < at:
                self._marker = buffer.find(_MARKER, at)
                self._marker = len(buffer) if self._marker < 0 else self._marker
            end = buffer.find(b"</test>", at, self._marker)
            if end >= 0:
                break
            if self._marker == len(buffer):
                return -1
            text = self._marker + 1
            opening = buffer.rfind(b"<", at, self._marker)
            # Messages are short but for records, whose packed part is passed over at the speed of memory.
            at = buffer.find(b"<", text)
            if at < 0:
                return -1
            if buffer[at : at + 5] == b"</msg" and opening >= 0 and _MSG.fullmatch(buffer, opening, text):
                record = text + len(RESULT_MARKER), at
        after = end + len(b"</test>")
        status = buffer.rfind(b"<status", start, end) if record else -1
        found = _STATUS.fullmatch(buffer, status, end) if status >= 0 else None
        if record is None or found is None or status < record[1]:
            yield from self.exact(buffer[start:after])
            return after
        try:
            name = name_of(tag[1])
            usual = _ENDED.match(found[1] or found[3])
            ended = usual[1].decode() if usual else attributes_of(found[1] or found[3]).get("status", "")
            message = text_of(found[2] or b"").strip()
            raw = buffer[slice(*record)]
            text_or_raw = text_of(raw) if b"&" in raw or not raw.isascii() else raw
        except NotXml:
            yield from self.exact(buffer[start:after])
            return after
        yield ScannedTest(self._long(name), name, (), _status(ended), message, text_or_raw)
        return after

    def exact(self, segment: bytes, *, whole: bool = True) -> Iterator[Scanned]:
        """One test by a real parser."""
        test, error = TestElement.parse(segment, whole=whole)
        if not test.name and (found := re.match(rb"<test\s[^>]*name=\"([^\"]*)\"", segment)) is not None:
            test.name = found[1].decode(errors="replace")
        if whole and error is not None:
            self.damage.append(f"test '{self._long(test.name)}': {error}")
        message = test.message
        if test.record is None and (error is not None or not whole):
            message = "the file ends in the middle of this test" if not whole else f"damaged XML: {error}"
        record = None if test.record is None else test.record.removeprefix(RESULT_MARKER)
        status = None if test.status is None else _status(test.status)
        yield ScannedTest(self._long(test.name), test.name, tuple(test.tags), status, message, record)

    def finish(self, rest: bytes) -> Iterator[Scanned]:
        """The test that was cut, and what is wrong with the file."""
        if self.refusal is None:
            start = _find_test(rest, 0)
            yield from self.between(rest, 0, start if start >= 0 else len(rest))
            if start >= 0 and _TEST.match(rest, start):
                yield from self.exact(rest[start:], whole=False)
            if not self.closed and not self.damage:
                where = f" in suite '{'.'.join(self.suites)}'" if self.suites else ""
                self.damage.append(f"the file ends{where} before </robot>")
        if self.refusal is not None:
            yield Problem(self.source, self.refusal)
        elif self.damage:
            some = "; ".join(self.damage[:3]) + (f"; and {len(self.damage) - 3} more" if len(self.damage) > 3 else "")
            yield Problem(
                self.source, f"{self.source}: broken off or damaged XML ({some}); what is whole in it was read"
            )

    def _long(self, name: str) -> str:
        return ".".join([*self.suites, name])


def _find_test(buffer: bytes, at: int) -> int:
    while (at := buffer.find(b"<test", at)) >= 0:
        if buffer[at + 5 : at + 6] in (b"", b" ", b"\n", b"\t", b"\r", b">", b"/"):
            return at
        at += 5
    return -1


def _safe_end(buffer: bytes, at: int) -> int:
    """Where a buffer may be cut between tests: no tag, and no metadata, is in two parts then."""
    last = buffer.rfind(b"<", at)
    before = buffer.rfind(b"<", at, max(at, last))
    if last < 0:
        return len(buffer)
    return before if before >= 0 and buffer[before : before + 5] == b"<meta" else last


def _declaration(data: bytes) -> int | None:
    """Where a declaration, a comment or a CDATA section begins. Robot escapes every `<` that is not its own."""
    at = data.find(b"!", 1)  # one byte is found ten times as fast as two
    while at > 0:
        if data[at - 1 : at] == b"<":
            return at - 1
        at = data.find(b"!", at + 1)
    return None


def _refusal(data: bytes, at: int) -> str:
    if data[at + 2 : at + 3] in (b"-", b"["):
        return (
            "refused: it has comments or CDATA sections, which Robot Framework does not write; "
            "`rebot --output` writes it anew"
        )
    return "refused: it declares a document type or entities, as an attack would"


def _status(text: str) -> Status:
    """Robot writes NOT RUN for a test of a dry run; for us it did not run either."""
    return Status(text) if text in ("PASS", "FAIL") else Status.SKIP


def refused_cells(source: str, name: str, value: str) -> Iterator[RefusedCell]:
    """The cell that one line of suite metadata refuses, as `DensityLibrary` writes it; nothing for other metadata."""
    cell = _REFUSED.fullmatch(name)
    if cell is not None:
        kind, chains, nodes, size, vs_dtc = cell.groups()
        yield RefusedCell(source, kind, int(chains), int(nodes), size, int(vs_dtc), value)
