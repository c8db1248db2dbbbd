"""A judge for the scanner: the same tests by a real XML parser and nothing clever. Slow, and so only for tests."""

from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from typing import TYPE_CHECKING

from defusedxml.ElementTree import ParseError, iterparse

from csit_utils.dataset.items import Refusal, Status
from csit_utils.dataset.scan import ScannedTest, logged_cells
from resources.libraries.python.recording.marker import REFUSED_MARKER, RESULT_MARKER

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


@dataclass
class _Test:
    name: str
    long_name: str
    tags: list[str] = field(default_factory=list)
    record: str | None = None
    status: Status | None = None
    message: str = ""
    started_at: str | None = None

    def scanned(self) -> ScannedTest:
        tags = tuple(self.tags)
        return ScannedTest(self.long_name, self.name, tags, self.status, self.message, self.record, self.started_at)


def read(content: bytes) -> tuple[list[ScannedTest | Refusal], bool]:
    """Tests, the one that was cut included, and whether the file is whole."""
    stack: list[Element] = []
    suites: list[str] = []
    found: list[ScannedTest | Refusal] = []
    test: _Test | None = None
    try:
        for event, element in iterparse(BytesIO(content), events=("start", "end"), forbid_dtd=True):
            if event == "start":
                if element.tag == "suite":
                    suites.append(element.get("name", ""))
                elif element.tag == "test":
                    name = element.get("name", "")
                    test = _Test(name, ".".join([*suites, name]))
                stack.append(element)
                continue
            stack.pop()
            if element.tag == "suite":
                suites.pop()
            elif element.tag == "msg" and test is None and (element.text or "").startswith(REFUSED_MARKER):
                found.extend(logged_cells("x", (element.text or "").removeprefix(REFUSED_MARKER)))
            elif test is not None:
                _take(test, element, [each.tag for each in stack])
                if element.tag == "test":
                    found.append(test.scanned())
                    test = None
    except ParseError:
        return [*found, *([test.scanned()] if test is not None else [])], False
    return found, True


def _take(test: _Test, element: "Element", above: list[str]) -> None:
    text = element.text or ""
    if element.tag == "msg" and text.startswith(RESULT_MARKER):
        test.record = text.removeprefix(RESULT_MARKER)
    elif element.tag == "tag" and above[-1] in ("test", "tags"):
        test.tags.append(text)
    elif element.tag == "status" and above[-1] == "test":
        known = element.get("status") in ("PASS", "FAIL")
        test.status = Status(element.get("status", "")) if known else Status.SKIP
        test.message = text.strip()
        started = element.get("start") or element.get("starttime", "")
        test.started_at = datetime.fromisoformat(started).isoformat(timespec="milliseconds")
