"""Compressed contents of a page that its script unpacks on demand, so that the page opens fast."""

import base64
import zlib
from functools import cache

from plotly.offline import get_plotlyjs


def deflated(text: str) -> str:
    """Return a text as a zlib stream (RFC 1950) in base64, which `script/later.js` reads."""
    return base64.b64encode(zlib.compress(text.encode())).decode()


@cache
def plotly() -> str:
    """Return the plot library, compressed."""
    return deflated(get_plotlyjs())
