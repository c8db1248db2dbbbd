"""Messages between two processes of this project: one JSON object per line, and errors that keep their class."""

import json
import os
import select
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from resources.libraries.python import errors
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, without_middle


class RemoteDefect(RuntimeError):
    """An error in another process that this project did not raise on purpose. Its traceback is a note of this one."""


_LEAVES = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, CsitError)
}
MAX_LINE_BYTES = 64_000_000
"""Far more than any record; a longer line is not a message of this project."""
MAX_VALUES = 4_000_000
"""Texts, lists and objects of a line: an empty list has 2 bytes there, and 64 in memory. Numbers take less."""
_PIECE_BYTES = 1 << 20


def line_of(record: Mapping[str, object]) -> bytes:
    """Return a record as one line; newlines in texts are escaped by JSON."""
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


LONGEST_ERROR = 4000
"""Characters of an error's text, and of each word of its command."""
LONGEST_TRACEBACK = 20_000
"""Characters of it, from its end."""
MAX_WORDS = 100
"""Words of a command in an error."""


class JsonLines:
    """Assembles records from the pieces that are read from a pipe. Time and memory grow with the bytes read."""

    def __init__(self, most_bytes: int = MAX_LINE_BYTES) -> None:
        self._most_bytes = most_bytes
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """Return the records that a piece completes.

        Raises:
            CsitError: A line is no JSON object, or too long; the text quotes its beginning.
        """
        *whole, rest = piece.split(b"\n")
        for line in whole:
            self._append(line)
            complete, self._rest = self._rest, bytearray()
            yield record_of(complete)
        self._append(rest)

    def _append(self, part: bytes) -> None:
        self._rest += part
        if len(self._rest) > self._most_bytes:
            raise CsitError(f"a line of more than {self._most_bytes} bytes, which begins with {shown(self._rest)}")


class JsonPipe:
    """The end of a process that serves one other over its standard input and output."""

    def __init__(self, source: int = 0, sink: int = 1) -> None:
        self.source = source
        """Descriptor to read from."""
        self._sink = sink
        self._lines = JsonLines()
        self._heard: deque[dict[str, Any]] = deque()

    def say(self, record: Mapping[str, object]) -> None:
        """Write a record."""
        left = memoryview(line_of(record))
        while left:
            left = left[os.write(self._sink, left) :]

    def fail(self, error: BaseException) -> None:
        """Answer with an error."""
        self.say({"error": plain(error)})

    def hear(self) -> dict[str, Any] | None:
        """Return the next record; None when the other process has closed its end."""
        while not self._heard:
            piece = os.read(self.source, _PIECE_BYTES)
            if not piece:
                return None
            self._heard.extend(self._lines.feed(piece))
        return self._heard.popleft()

    def has_input(self) -> bool:
        """Whether `hear` would return at once."""
        return bool(self._heard or select.select([self.source], [], [], 0)[0])


def record_of(line: str | bytes | bytearray) -> dict[str, Any]:
    """Parse a JSON object that another program has written.

    Raises:
        CsitError: It is something else; the text quotes its beginning.
    """
    text = line.encode(errors="replace") if isinstance(line, str) else line
    if (values := text.count(b'"') // 2 + text.count(b"[") + text.count(b"{")) > MAX_VALUES:
        raise CsitError(f"{values:,} texts, lists and objects, of at most {MAX_VALUES:,}: {shown(line)}")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:  # brackets can be nested too deep
        raise CsitError(f"no JSON: {shown(line)}") from error
    if not isinstance(record, dict):
        raise CsitError(f"no JSON object: {shown(line)}")
    return record


def shown(line: object) -> str:
    """Return a line, or a record, as an error message quotes it."""
    # Workers of the generator import this module, and would take a third longer to start.
    from resources.libraries.python.model.bounds import LONGEST_QUOTE, quoted  # noqa: PLC0415

    if isinstance(line, str):
        text = line[: LONGEST_QUOTE + 2].strip()
    elif isinstance(line, bytes | bytearray):
        text = bytes(line[: 4 * LONGEST_QUOTE + 4]).decode(errors="replace").strip()  # a character has 4 bytes at most
    else:
        text = repr(line)
    escaped = quoted(text[: LONGEST_QUOTE + 1], LONGEST_QUOTE + 1)
    return (escaped if len(escaped) <= LONGEST_QUOTE else f"{escaped[:LONGEST_QUOTE]}…") or "nothing"


def plain(error: BaseException) -> dict[str, Any]:
    """Return an error as a record: its class and its arguments."""
    name = type(error).__name__
    match error:
        case CommandFailed():
            return {"class": name, "argv": list(error.argv), "status": error.status, "stderr": error.stderr}
        case NotReady():
            return {"class": name, "what": error.what, "after_s": error.after_s, "last_seen": error.last_seen}
        case CsitError():
            return {"class": name, "text": str(error)}
        case OSError():
            file = error.filename if isinstance(error.filename, str) else None
            return {"class": "OSError", "number": error.errno, "text": error.strerror or str(error), "file": file}
        case _:
            import traceback  # noqa: PLC0415 (as in `shown`)

            trace = "".join(traceback.format_exception(error))[-LONGEST_TRACEBACK:]
            return {"class": name, "text": str(error), "defect": True, "traceback": trace}


def short(text: str) -> str:
    """Return a text of an error with visible control characters, without its middle where it is far longer than any."""
    from resources.libraries.python.redaction import outgoing  # noqa: PLC0415 (as in `shown`)

    return without_middle(outgoing(text), LONGEST_ERROR)


def error_of(record: object, where: str = "") -> Exception:
    """Return the error of a record, with the place where it happened in front of its text.

    An error that this project did not raise on purpose is a RemoteDefect: a defect there is one here. So is a record
    that `plain` has not made.
    """
    at = f"{where}: " if where else ""
    error: Exception
    match record:
        case {"class": "CommandFailed", "argv": [*argv], "status": int() | None as status, "stderr": str(stderr)}:
            error = CommandFailed(tuple(short(str(word)) for word in argv[:MAX_WORDS]), status, short(stderr))
            error.args = (f"{at}{error}",)
        case {"class": "NotReady", "what": str(what), "after_s": int() | float() as after_s, "last_seen": str(seen)}:
            error = NotReady(f"{at}{short(what)}", float(min(after_s, 1e9)), short(seen))
        case {"class": "OSError", "number": int() | None as number, "text": str(text), "file": str() | None as file}:
            error = OSError(number, f"{at}{short(text)}", *([short(file)] if file else []))
        case {"class": str(name), "text": str(text), **rest} if "defect" not in rest and _has_text_only(name):
            error = _LEAVES[name](f"{at}{short(text)}")
        case {"class": str(name), "text": str(text), **rest}:
            error = RemoteDefect(f"{at}{short(name)}: {short(text)}")
            if isinstance(trace := rest.get("traceback"), str):
                error.add_note(f"{at}{trace[-LONGEST_TRACEBACK:]}")
        case _:
            error = RemoteDefect(f"{at}an error of unknown form: {shown(record)}")
    return error


def _has_text_only(name: str) -> bool:
    return name in _LEAVES and _LEAVES[name] not in (CommandFailed, NotReady)
