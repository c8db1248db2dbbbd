"""A series over nights as a small drawing: inline SVG, so that hundreds of them cost little and print."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDTH, HEIGHT = 150, 34
_MARGIN = 5.0
_LEAST_SPAN = 0.06
"""Of the middle value: noise of a quiet cell does not fill the drawing."""

_Place = Callable[[float], float]


@dataclass(frozen=True)
class LevelSpan:
    """Where a series stayed."""

    first: int
    last: int
    """Night, included."""
    value: float


@dataclass(frozen=True)
class Mark:
    """An event of a series."""

    index: int
    value: float
    up: bool
    suspected: bool = False
    """Too fresh to be told from a night that went wrong."""


def sparkline(
    values: Sequence[float | None],
    levels: Sequence[LevelSpan] = (),
    marks: Iterable[Mark] = (),
    failed: Iterable[int] = (),
) -> Markup:
    """Draw a series.

    Args:
        values: One per night in the order of time; None is a gap.
        levels: Drawn as a step line.
        marks: Triangles that point where it went, open ones where it is only suspected.
        failed: Nights whose test did not pass: a tick each.
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
    """A path with a gap where nothing is known; a lone night is a dot."""
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
    """A coordinate in a tenth of a pixel, as short as it goes."""
    return f"{value:.1f}".removesuffix(".0")


def _svg(parts: Iterable[str]) -> Markup:
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true"'
    # Numbers and our own words only.
    return Markup(f'<svg class="spark" {box}>{"".join(parts)}</svg>')  # noqa: S704
