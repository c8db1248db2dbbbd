"""What a page holds back so that it opens at once: texts inside it that its script unpacks when they are wanted."""

import base64
import zlib
from functools import cache

from plotly.offline import get_plotlyjs


def deflated(text: str) -> str:
    """A text as zlib's stream (RFC 1950) in base64, which `script/later.js` reads; it can stand anywhere in HTML."""
    return base64.b64encode(zlib.compress(text.encode())).decode()


@cache
def plotly() -> str:
    """The library for plots, deflated."""
    return deflated(get_plotlyjs())
