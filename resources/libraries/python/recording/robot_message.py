"""Messages of Robot Framework as text."""

import html
import re

_HTML = "*HTML*"
_BREAK = re.compile(r"</?(?:br|hr|p|div|li|tr)\b[^<>]*>")
_TAG = re.compile(r"</?\w[^<>]*>")


def plain_message(text: str) -> str:
    """Return a message of Robot as plain text: without tags, where it is marked as HTML."""
    if not text.startswith(_HTML):
        return text
    lines = _TAG.sub("", _BREAK.sub("\n", text.removeprefix(_HTML))).split("\n")
    return html.unescape("\n".join(filter(None, map(str.strip, lines))))
