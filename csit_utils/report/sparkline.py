"""Sparklines of series over nights as inline SVG, so that hundreds are cheap and can be printed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDTH, HEIGHT = 150, 34
_MARGIN = 5.0
_LEAST_SPAN = 0.06
"""Least range of the axis relative to the middle value, so that small noise does not fill the plot."""

_Place = Callable[[float], float]


@dataclass(frozen=True)
class LevelSpan:
    """A level of a series."""

    first: int
    last: int
    """Last night, inclusive."""
    value: float


@dataclass(frozen=True)
class Mark:
    """An event of a series."""

    index: int
    value: float
    up: bool
    suspected: bool = False
    """Not confirmed yet: may be an outlier."""


def sparkline(
    values: Sequence[float | None],
    levels: Sequence[LevelSpan] = (),
    marks: Iterable[Mark] = (),
    failed: Iterable[int] = (),
) -> Markup:
    """Return the SVG of a series.

    Args:
        values: One per night in the order of time; None is a gap.
        levels: Drawn as a step line.
        marks: Triangles in the direction of the change, open ones if suspected.
        failed: Nights whose test did not pass, each a tick.
    """
    known = [value for value in values if value is not None]
    if not known:
        return _svg(_ticks(failed, len(values)))
    low, high = _reach(known)

    def x(index: float) -> float:
        return _MARGIN + index * (WIDTH - 2 * _MARGIN) / max(1, len(values) - 1)

    def y(value: float) -> float:
        return HEIGHT - _MARGIN - (value - low) * (HEIGHT - 2 * _MARGIN) / (high - low)

    parts = [f'<path class="v" d="{_line(values, x, y)}"/>']
    if levels:
        steps = "".join(f"M{_at(x(one.first))} {_at(y(one.value))}H{_at(x(one.last))}" for one in levels)
        parts.append(f'<path class="l" d="{steps}"/>')
    for mark in marks:
        way = -1 if mark.up else 1
        kind = ("up" if mark.up else "down") + (" open" if mark.suspected else "")
        tip = min(HEIGHT - 1.0, max(1.0, y(mark.value) + 4 * way))
        parts.append(f'<path class="{kind}" d="M{_at(x(mark.index))} {_at(tip)}l-4 {-6 * way}h8z"/>')
    return _svg([*parts, *_ticks(failed, len(values))])


def _reach(known: Sequence[float]) -> tuple[float, float]:
    low, high = min(known), max(known)
    middle = (low + high) / 2
    half = max((high - low) / 2, _LEAST_SPAN / 2 * abs(middle)) or 1.0
    return middle - half, middle + half


def _line(values: Sequence[float | None], x: _Place, y: _Place) -> str:
    """A path with gaps; a single night is a dot."""
    parts, pen = [], False
    for index, value in enumerate(values):
        if value is not None:
            parts.append(f"{'L' if pen else 'M'}{_at(x(index))} {_at(y(value))}")
            alone = not pen and (index + 1 == len(values) or values[index + 1] is None)
            parts += ["h.1"] if alone else []
        pen = value is not None
    return "".join(parts)


def _ticks(failed: Iterable[int], count: int) -> Iterator[str]:
    step = (WIDTH - 2 * _MARGIN) / max(1, count - 1)
    lines = "".join(f"M{_at(_MARGIN + index * step)} {HEIGHT}v-6" for index in failed)
    if lines:
        yield f'<path class="f" d="{lines}"/>'


def _at(value: float) -> str:
    """A coordinate with 0.1 pixel resolution, as short text."""
    return f"{value:.1f}".removesuffix(".0")


def _svg(parts: Iterable[str]) -> Markup:
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true"'
    # Contains numbers and constants only, so it needs no escaping.
    return Markup(f'<svg class="spark" {box}>{"".join(parts)}</svg>')  # noqa: S704
