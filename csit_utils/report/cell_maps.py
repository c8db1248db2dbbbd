"""Heat maps with selectable quantities, as tables for print and keyboard, with their parts and colour scales."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise, product
from math import log10

from csit_utils.report.figures import Figure

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


_STEPS = 48
"""Colours of the scale, as many as can be distinguished."""
_NARROWEST = 0.8
"""Largest ratio of the ends of a scale that is made of values."""
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#b8558f", "#b57a00", "#2f9bd6", "#4d4d4d", "#7a5195")
"""Of plots, in the light scheme: the same thing has the same colour in a map and in the plot below it."""
_COLOURS = (
    *(colour(step / (_STEPS - 1)) for step in range(_STEPS)),
    *((each, ink(*bytes.fromhex(each[1:]))) for each in PALETTE),
)


@dataclass(frozen=True)
class MapSquare:
    """One cell of a map, for one choice."""

    text: str
    tip: str
    value: float | None = None
    """For the colour; None for a cell that has no value."""
    note: str = ""
    state: str = "value"
    """Class of the cell: `value`, or why there is none."""
    category: int | None = None
    """Number of a colour of the palette, in place of one of the scale."""

    @property
    def raw(self) -> str | float:
        """For CSV: the value itself, or why there is none."""
        return self.text if self.value is None else self.value


@dataclass(frozen=True)
class CellMap:
    """One map."""

    title: str
    corner: tuple[str, str]
    """Titles of columns and rows."""
    columns: tuple[str, ...]
    lines: tuple[str, ...]
    hrefs: tuple[tuple[str | None, ...], ...]
    """By line and column: where a cell leads to."""
    square: Callable[[int, int, tuple[str, ...]], MapSquare]
    """Line, column and choice to a cell."""
    named: bool = False
    """Lines and columns are names, which fit in an id: cells can be linked to, and heads are as wide as names."""

    def squares(self, choice: tuple[str, ...]) -> list[list[MapSquare]]:
        """All cells for one choice, by line."""
        lines, columns = range(len(self.lines)), range(len(self.columns))
        return [[self.square(line, column, choice) for column in columns] for line in lines]


@dataclass(frozen=True)
class Scale:
    """From a value to its colour, darkest to brightest."""

    low: float
    """The worst value, which is the larger one of a latency or a loss."""
    high: float
    logarithmic: bool = False
    categories: bool = False
    """Colours are categories, not amounts."""
    write: Callable[[float], str] | None = None
    """Format of its ends, unless it is that of all scales of the maps."""

    def share(self, value: float) -> float:
        """Position on the scale, in [0, 1]."""
        if self.logarithmic:
            low, high, value = (log10(max(each, 1e-12)) for each in (self.low, self.high, value))
            return (value - low) / (high - low) if high != low else 0.5
        return (value - self.low) / (self.high - self.low) if self.high != self.low else 0.5


@dataclass(frozen=True)
class CellMaps:
    """Maps that share their choices and, for each choice, one colour scale."""

    identity: str
    title: str
    simulated: bool
    selectors: tuple[tuple[str, ...], ...]
    first: tuple[str, ...]
    """The choice that is shown at first."""
    maps: tuple[CellMap, ...]
    scale: Callable[[tuple[str, ...]], Scale]
    write: Callable[[float], str]
    """A number at an end of the scale."""
    explain: tuple[str, str] = ("", "")
    """Name of an explanation, and what it is about."""
    colours: tuple[tuple[str, str], ...] = field(default=_COLOURS)

    @property
    def columns(self) -> int:
        """Columns of the widest map."""
        return max(len(each.columns) for each in self.maps)

    @property
    def gradient(self) -> str:
        """The scale, as CSS."""
        return gradient()

    def ends(self, choice: tuple[str, ...]) -> tuple[str, str]:
        """Labels of the ends of the scale; empty where colours are categories."""
        scale = self.scale(choice)
        write = scale.write or self.write
        return ("", "") if scale.categories else (write(scale.low), write(scale.high))

    def step(self, square: MapSquare, choice: tuple[str, ...]) -> int | None:
        """Number of a cell's colour; None for a cell without a value."""
        if square.value is None:
            return None
        if square.category is not None:
            return _STEPS + square.category % len(PALETTE)
        return round(min(1.0, max(0.0, self.scale(choice).share(square.value))) * (_STEPS - 1))

    @property
    def figure(self) -> Figure:
        """All choices, for the page's script."""
        variants = {
            "|".join(choice): {
                "ends": self.ends(choice),
                "maps": [
                    [[self._packed(square, choice) for square in line] for line in each.squares(choice)]
                    for each in self.maps
                ],
            }
            for choice in product(*self.selectors)
        }
        return Figure(self.identity, self.title, self.simulated, self.selectors, {"colours": self.colours, **variants})

    def _packed(self, square: MapSquare, choice: tuple[str, ...]) -> list[str | float | None]:
        return [square.text, square.note, square.state, self.step(square, choice), square.tip, square.raw]


def scale_of(values: Sequence[float], *, logarithmic: bool = False, lower_is_better: bool = False) -> Scale:
    """From the worst to the best of some values, at least 20 % apart: nearly equal values have nearly equal colours."""
    least, largest = min(values, default=0.0), max(values, default=1.0)
    if lower_is_better:
        return Scale(max(largest, least / _NARROWEST), least, logarithmic)
    return Scale(min(least, _NARROWEST * largest), largest, logarithmic)
