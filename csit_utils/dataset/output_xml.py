"""Reading of Robot's output.xml as a stream: memory stays flat whatever the size of the file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, iterparse

from csit_utils.dataset.items import Item, Problem, ReadError, Recorded, RefusedCell, Status, Unrecorded
from csit_utils.dataset.records import parse_record
from resources.libraries.python.recording.marker import RESULT_MARKER

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


@dataclass
class _Test:
    """The test that is being read."""

    name: str
    long_name: str
    tags: list[str] = field(default_factory=list)
    record: str | None = None
    status: Status | None = None
    message: str = ""


@dataclass
class _Reader:
    """The open elements and suites at the present place in the file."""

    source: str
    stack: "list[Element]" = field(default_factory=list)
    suites: list[str] = field(default_factory=list)
    test: _Test | None = None

    def start(self, element: "Element") -> None:
        if not self.stack and element.tag != "robot":
            raise ReadError(f"{self.source}: this is no output.xml of Robot Framework: it starts with <{element.tag}>")
        if element.tag == "suite":
            self.suites.append(element.get("name", ""))
        elif element.tag == "test":
            name = element.get("name", "")
            self.test = _Test(name, ".".join([*self.suites, name]))
        self.stack.append(element)

    def end(self, element: "Element") -> Iterator[Item]:
        self.stack.pop()
        parent = self.stack[-1] if self.stack else None
        test = self.test
        if element.tag == "suite":
            self.suites.pop()
        elif element.tag == "meta":
            yield from refused_cells(self.source, element.get("name", ""), (element.text or "").strip())
        elif test is not None:
            if element.tag == "msg" and (element.text or "").startswith(RESULT_MARKER):
                test.record = element.text
            elif element.tag == "tag":
                test.tags.append(element.text or "")
            elif element.tag == "status" and parent is not None and parent.tag == "test":
                # Robot writes NOT RUN for a test of a dry run; for us it did not run either.
                known = element.get("status") in ("PASS", "FAIL")
                test.status = Status(element.get("status", "")) if known else Status.SKIP
                test.message = (element.text or "").strip()
            elif element.tag == "test":
                self.test = None
                yield from self.finish(test)
        if parent is not None:
            # Emptying an element is not enough: its parent would still collect a million empty children.
            parent.remove(element)

    def finish(self, test: _Test) -> Iterator[Item]:
        """What a test that is over, or cut off, leaves."""
        if test.record is None:
            yield self.unrecorded(test, test.message or "the test left no result record")
            return
        where = f"{self.source}: test '{test.long_name}'"
        try:
            result = parse_record(test.record.removeprefix(RESULT_MARKER), where)
        except ReadError as error:
            yield self.unrecorded(test, str(error))
            yield Problem(self.source, str(error))
            return
        status = test.status or (Status.PASS if result.passed else Status.FAIL)
        yield Recorded(result, self.source, status, test.message or result.message)

    def unrecorded(self, test: _Test, message: str) -> Unrecorded:
        status = test.status or Status.FAIL
        return Unrecorded(test.long_name, test.name, tuple(test.tags), self.source, status, message)


def refused_cells(source: str, name: str, value: str) -> Iterator[RefusedCell]:
    """The cell that one line of suite metadata refuses, as `DensityLibrary` writes it; nothing for other metadata."""
    cell = re.fullmatch(r"Does not fit: (\w+) (\d+)R(\d+)C NF-(\S+) vSwitch-(\d+)c", name)
    if cell is not None:
        kind, chains, nodes, size, vs_dtc = cell.groups()
        yield RefusedCell(source, kind, int(chains), int(nodes), size, int(vs_dtc), value)


def read_output_xml(path: Path) -> Iterator[Item]:
    """Yield every test of an output.xml, and then what is wrong with the file, if anything.

    A file that breaks off yields all that is complete before the break.
    """
    source = str(path)
    reader = _Reader(source)
    try:
        with path.open("rb") as stream:
            yield from _events(stream, reader)
    except OSError as error:
        yield Problem(source, f"{source}: cannot be read: {error.strerror or error}")
    except ReadError as error:
        yield Problem(source, str(error))
    except DefusedXmlException as error:
        kind = type(error).__name__
        yield Problem(
            source, f"{source}: refused: it declares a document type or entities ({kind}), as an attack would"
        )
    except ParseError as error:
        cut = reader.test
        if cut is not None and cut.record is not None:
            yield from reader.finish(cut)
        elif cut is not None:
            yield reader.unrecorded(cut, "the file ends in the middle of this test")
        yield Problem(source, f"{source}: broken off or damaged XML ({error}); what comes before it was read")


def _events(stream: BinaryIO, reader: _Reader) -> Iterator[Item]:
    for event, element in iterparse(stream, events=("start", "end"), forbid_dtd=True):
        if event == "start":
            reader.start(element)
        else:
            yield from reader.end(element)
