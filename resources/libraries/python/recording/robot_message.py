"""Messages of Robot Framework as text."""

import html
import re

_HTML = "*HTML*"
_BREAK = re.compile(r"\s*(?:<(?:br|hr|/?p|/?div|/?li|/?tr)\b[^<>]*>\s*)+")
_TAG = re.compile(r"</?\w[^<>]*>")


def plain_message(text: str) -> str:
    """Return a message of Robot as plain text: without tags, where it is marked as HTML."""
    if not text.startswith(_HTML):
        return text
    return html.unescape(_TAG.sub("", _BREAK.sub("\n", text.removeprefix(_HTML)))).strip()
