"""What two processes of this project say to each other: one JSON object a line, and errors that stay what they are."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from resources.libraries.python import errors
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady

_LEAVES = {kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type)}
MOST_LINE_BYTES = 64_000_000
"""Far more than any record; what is longer is no dialogue."""


def line_of(record: Mapping[str, object]) -> bytes:
    """A record as one line; newlines in texts are escaped by JSON."""
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


class Lines:
    """Puts the pieces that come out of a pipe together to records."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """Records that have become whole.

        Raises:
            CsitError: Somebody else wrote into the pipe.
        """
        *whole, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > MOST_LINE_BYTES:
            raise CsitError(f"a line of more than {MOST_LINE_BYTES} bytes, which begins with {_shown(self._rest)}")
        for line in whole:
            try:
                record = json.loads(line)
            except ValueError as error:
                raise CsitError(f"no JSON: {_shown(line)}") from error
            if not isinstance(record, dict):
                raise CsitError(f"no JSON object: {_shown(line)}")
            yield record


def _shown(line: bytes) -> str:
    return line[:200].decode(errors="replace").strip() or "nothing"


def plain(error: BaseException) -> dict[str, Any]:
    """An error as a record: its class and what it was made of."""
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
            return {"class": name, "text": str(error), "defect": True}


def error_of(record: Mapping[str, Any], where: str = "") -> Exception:
    """The error that a record tells of, with the place where it happened in front of its text.

    An error that this project did not raise on purpose comes back as RuntimeError: a defect there is one here.
    """
    at = f"{where}: " if where else ""
    error: Exception
    match record:
        case {"class": "CommandFailed", "argv": argv, "status": status, "stderr": stderr}:
            error = CommandFailed(argv, status, stderr)
            error.args = (f"{at}{error}",)
        case {"class": "NotReady", "what": what, "after_s": after_s, "last_seen": last_seen}:
            error = NotReady(f"{at}{what}", after_s, last_seen)
        case {"class": "OSError", "number": number, "text": text, "file": file}:
            error = OSError(number, f"{at}{text}", *([file] if file else []))
        case {"class": name, "text": text, **rest} if "defect" not in rest and issubclass(
            _LEAVES.get(name, Exception), CsitError
        ):
            error = _LEAVES[name](f"{at}{text}")
        case _:
            error = RuntimeError(f"{at}{record.get('class')}: {record.get('text')}")
    return error
