"""What a file is, by its first bytes, and in words what it looks like if it is no result."""

import re
from codecs import getincrementaldecoder
from enum import Enum, auto

HEAD_BYTES = 1024
"""Of the unpacked content of a file, by which it is recognized."""
READABLE = (
    "./csit reads outputs of Robot Framework (XML and JSON), result records, and results of FD.io CSIT (JSON and "
    "Parquet), NFVbench and DPDK's DTS, plain or packed (.gz, .xz, .zst, .zip)"
)
HTML = "an HTML page"
"""What Robot's log.html and report.html look like."""
_HTML = (b"<!doctype html", b"<html")
_ROBOT_XML = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*\?>\s*+)?<robot[\s>]")
_ROBOT_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*+\{\s*+"generator"\s*+:\s*+"(?:Robot|Rebot) ')
_BLANK = b"\xef\xbb\xbf \t\r\n"
_BINARIES = {
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"BZh": "a file packed by bzip2",
    b"Rar!": "a RAR archive",
    b"ARROW1": "an Arrow file",
    b"SQLite format 3\0": "an SQLite database",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    b"\x7fELF": "a program",
    b"\x0a\x0d\x0d\x0a": "a packet capture",
    b"\xd4\xc3\xb2\xa1": "a packet capture",
    b"\xa1\xb2\xc3\xd4": "a packet capture",
    b"\x4d\x3c\xb2\xa1": "a packet capture",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
_PARQUET = b"PAR1"
_TAR, _TAR_AT = b"ustar", 257
_SEPARATORS = ",;\t"


class Kind(Enum):
    """Kinds of files, each with a reader."""

    ROBOT_XML = auto()
    """An output of Robot Framework; also whatever is no result, which its reader refuses."""
    ROBOT_JSON = auto()
    """Its output in JSON."""
    JSON = auto()
    """A record or a result of another tool."""
    PARQUET = auto()
    """A table of results of another tool."""


def kind_of(head: bytes, name: str) -> Kind:
    """Return the kind of a file.

    `head`: its first `HEAD_BYTES`, unpacked; empty if it is empty or unreadable.
    `name`: its name without the ending of a packed file, which decides then.
    """
    if head.startswith(_PARQUET):
        return Kind.PARQUET
    if _ROBOT_JSON.match(head):
        return Kind.ROBOT_JSON
    text = head.lstrip(_BLANK)
    is_json = text.startswith((b"{", b"[")) if text else name.endswith(".json")
    return Kind.JSON if is_json else Kind.ROBOT_XML


def begins_output(head: bytes) -> bool:
    """Whether a file begins as an output of Robot Framework does."""
    return _ROBOT_XML.match(head) is not None or _ROBOT_JSON.match(head) is not None


def looks_like(head: bytes) -> str:
    """Say in words what a file looks like that is no result."""
    head = head[:HEAD_BYTES]
    if (begin := head.lstrip(_BLANK).lower()).startswith(b"<"):
        return HTML if begin.startswith(_HTML) else "truncated or damaged XML"
    if head[_TAR_AT:].startswith(_TAR):
        return "a tar archive"
    for magic, words in _BINARIES.items():
        if head.startswith(magic):
            return words
    try:
        text = getincrementaldecoder("utf-8")().decode(head)  # its last letter may be cut in two
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return "binary data"
    first, second = [*text.splitlines(), "", ""][:2]
    is_table = any(0 < first.count(each) == second.count(each) for each in _SEPARATORS)
    return "a table (CSV)" if is_table else "text"
