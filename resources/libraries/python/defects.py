"""Errors that this program did not raise on purpose: one sentence for the user, and a log for its developers."""

import os
import sys
import tempfile
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from resources.libraries.python.dialogue import RemoteDefect
from resources.libraries.python.errors import CsitError, chain, message
from resources.libraries.python.model.bounds import quoted_reason
from resources.libraries.python.redaction import outgoing, redacted_words

DEFECT = "internal error:"
"""Begin of the sentence about an error that nothing expects."""
DEBUG_LOG = "internal-errors.log"
"""Log in the folder of a run."""


def report_defect(error: BaseException, folder: Path | None = None) -> str:
    """Write the traceback of an error to a log, and return the sentence that names it.

    `folder`: Of a run, whose log gets the traceback; None, or one that cannot be written: the folder for temporary
      files.
    """
    reason = str(error) if isinstance(error, RemoteDefect) else f"{type(error).__name__}: {error}"
    return message(f"{DEFECT} {quoted_reason(reason)}; {log_traceback(error, folder)}")


def expected(error: CsitError, folder: Path | None = None) -> str:
    """Return the sentence of an error; where a program on a node ended with a traceback, with the log that has it."""
    reason = str(error)
    return message(f"{reason}; {log_traceback(error, folder)}") if _has_note(error) else reason


def _has_note(error: BaseException) -> bool:
    return any(hasattr(each, "__notes__") for each in chain(error, lambda each: each.__cause__))


def log_traceback(error: BaseException, folder: Path | None = None) -> str:
    """As `report_defect`, for an error that is a sentence already; return where the traceback is."""
    command = " ".join(redacted_words(sys.argv))
    trace = outgoing("".join(traceback.format_exception(error)))
    text = f"{datetime.now(UTC).isoformat(timespec='seconds')} pid {os.getpid()}: {command}\n{trace}\n"
    if folder is not None:
        with suppress(OSError):
            path = folder / DEBUG_LOG
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace") as log:
                log.write(text)
            return f"its traceback is in {path}"
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="csit-", suffix=".log", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as temporary:
            temporary.write(text)
    except OSError as failure:
        return f"its traceback could not be written: {failure.strerror}"
    return f"its traceback is in {temporary.name}"
