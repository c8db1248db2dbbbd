"""Colour scales of heat maps, which need no script and are legible with common colour vision deficiencies."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

_CIVIDIS = (
    "00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838",
)  # fmt: skip
_SEQUENTIAL = [(number / 9, tuple(bytes.fromhex(colour))) for number, colour in enumerate(_CIVIDIS)]
"""Cividis (Nunez et al., PLoS ONE 13, 2018): legible with common colour vision deficiencies, and in grey."""
_DIVERGING = ((0.0, (179, 88, 6)), (0.25, (241, 163, 64)), (0.5, (243, 243, 243)), (0.75, (103, 169, 207)),
              (1.0, (33, 102, 172)))  # fmt: skip
"""From less (orange) to more (blue), equally dark at both ends: the same with common colour vision deficiencies."""
SHADES = 64
"""Colours of the scale of the page's script, as many as can be distinguished."""


def colour(share: float) -> tuple[str, str]:
    """Background and ink for a share of the scale in [0, 1]."""
    return _shade(round(min(1.0, max(0.0, share)) * 1000))


@cache
def _shade(permille: int) -> tuple[str, str]:
    # The darkest and the brightest tenth are left out: both ends stay apart from the page in either colour scheme.
    return _between(_SEQUENTIAL, 0.06 + 0.9 * permille / 1000)


def ink(red: float, green: float, blue: float) -> str:
    """Black or white, whichever contrasts more: at least 4.58 by WCAG."""
    light = (((part / 255 + 0.055) / 1.055) ** 2.4 for part in (red, green, blue))
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), light, strict=True))
    return "#000000" if luminance > 0.179 else "#ffffff"


def shades() -> dict[str, list[tuple[str, str]]]:
    """Both scales for the page's script, from low to high: background and ink."""
    places = [step / (SHADES - 1) for step in range(SHADES)]
    return {
        "sequential": [colour(place) for place in places],
        "diverging": [_between(_DIVERGING, place) for place in places],
    }


def _between(scale: Sequence[tuple[float, tuple[int, ...]]], share: float) -> tuple[str, str]:
    for (low, one), (high, other) in pairwise(scale):
        if share <= high:
            part = (share - low) / (high - low)
            red, green, blue = (a + (b - a) * part for a, b in zip(one, other, strict=True))
            return f"rgb({red:.0f}, {green:.0f}, {blue:.0f})", ink(red, green, blue)
    raise AssertionError("a share of a scale is at most 1")


@cache
def gradient() -> str:
    """The colour scale as a CSS gradient."""
    return "linear-gradient(to right, " + ", ".join(colour(step / 10)[0] for step in range(11)) + ")"
