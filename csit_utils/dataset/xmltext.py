"""XML rules of the scanner, and a real XML parser for single tests."""

import re
from collections.abc import Mapping
from datetime import datetime
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from resources.libraries.python.recording.marker import RESULT_MARKER

ATTRIBUTES = rb"""(?:[^"'<>]++|"[^"<]*+"|'[^'<]*+')*"""
"""Rest of a start tag after the name, with a final slash; values may contain `>`."""
_ATTRIBUTE = re.compile(rb"""([\w:.-]+)\s*=\s*("[^"]*"|'[^']*')""")
_USUAL = re.compile(rb'\s+id="[^"]*" name="([^"\n\t\r]*)"')
_REFERENCE = re.compile(r"&(#x[0-9a-fA-F]{1,6}|#[0-9]{1,7}|\w*)(;?)")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}

_FIRST_YEAR = 2008
"""Year of the first release of Robot Framework."""


class NotXml(ValueError):
    """The text is not well-formed."""


def text_of(raw: bytes) -> str:
    """Return character data with references resolved.

    Raises:
        NotXml: Not UTF-8, or an undefined reference.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise NotXml(f"not UTF-8: {error.reason}") from error
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _REFERENCE.sub(_referred, text) if "&" in text else text


def _referred(found: re.Match[str]) -> str:
    name, end = found.groups()
    try:
        if end and name.startswith("#"):
            return chr(int(name[2:], 16) if name[1] == "x" else int(name[1:]))
        if end:
            return _NAMED[name]
    except (KeyError, ValueError, OverflowError):
        pass
    raise NotXml(f"undefined entity {found[0]}")


def name_of(tag: bytes) -> str:
    """Return the name in the start tag of a suite or test.

    Raises:
        NotXml: A value is not well-formed.
    """
    usual = _USUAL.match(tag)
    return text_of(usual[1]) if usual else attributes_of(tag).get("name", "")


def attributes_of(tag: bytes) -> Mapping[str, str]:
    """Return the attributes of a start tag.

    Raises:
        NotXml: A value is not well-formed.
    """
    spaces = bytes.maketrans(b"\n\t", b"  ")
    return {
        name.decode(): text_of(value[1:-1].replace(b"\r\n", b" ").replace(b"\r", b" ").translate(spaces))
        for name, value in _ATTRIBUTE.findall(tag)
    }


def _time_of(stamp: str) -> str | None:
    """A time of any version of Robot Framework in ISO 8601 without a zone; None if invalid."""
    try:
        found = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return None if found.tzinfo or found.year < _FIRST_YEAR else found.isoformat(timespec="milliseconds")


class TestElement:
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
    def parse(cls, segment: bytes, *, whole: bool = True) -> tuple["TestElement", str | None]:
        """Parse the bytes of one test.

        Args:
            segment: From `<test` on.
            whole: Whether it is complete; a truncated test is read up to its end.

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
            self.started_at = _time_of(self._status.get("start") or self._status.get("starttime") or "")
        elif tag == "tag" and self._open in (["test"], ["test", "tags"]):
            self.tags.append(text)

    def close(self) -> None:
        """Called by the parser."""
