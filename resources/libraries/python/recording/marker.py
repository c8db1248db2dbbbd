"""Markers of result records in a Robot log, and messages of Robot Framework as text."""

import html
import re

RESULT_MARKER = "CSIT-RESULT "
"""A log message that starts with this carries one result record as JSON, so that `output.xml` alone makes a report."""
REFUSED_MARKER = "CSIT-REFUSED "
"""A log message of a suite that starts with this carries the cells that do not fit on the testbed as JSON."""
NOTHING_FITS = "No Cell Can Run"
"""Name of the test, without a record, that takes the place of all rows of a suite where none can run."""
NOTHING_SELECTED = "No Row Is Selected"
"""Name of the test, without a record, that fails where a run has no other."""
PLACEHOLDER = "Place Of The Rows"
"""Prefix of the names of tests that rows of the plan replace when their suite starts."""
NOT_STARTED = "Test execution stopped due to a fatal error."
"""Robot's message of tests after the end of a run; a placeholder with it is the place of rows that were never made."""


_HTML = "*HTML*"
_BREAK = re.compile(r"</?(?:br|hr|p|div|li|tr)\b[^<>]*>")
_TAG = re.compile(r"</?\w[^<>]*>")


def plain_message(text: str) -> str:
    """Return a message of Robot as plain text: without tags, where it is marked as HTML."""
    if not text.startswith(_HTML):
        return text
    lines = _TAG.sub("", _BREAK.sub("\n", text.removeprefix(_HTML))).split("\n")
    return html.unescape("\n".join(filter(None, map(str.strip, lines))))
