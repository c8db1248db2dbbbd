"""Flame graphs as boxes of SVG: of one test, and of the difference between two sides."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from csit_utils.analysis.flames import Flame, StackDifference, StackSide, flame, named, path_differences
from csit_utils.report.units import percent
from resources.libraries.python.model.stacks import SEPARATOR, Stacks, described

_NARROWEST = 0.003
"""Share below which a box is left out."""
_MOST_BOXES = 2000
_HUES = 6
_STEPS = 5
"""Shades of red and of blue."""
_STRONGEST = 0.2
"""Difference of the share that has the darkest shade."""
_TIMED = "The kernel's timer samples a place where interrupts are off only after it."


@dataclass(frozen=True)
class FlameBox:
    """A function as called by those above it."""

    name: str
    left: float
    """Percent of the width."""
    width: float
    row: int
    """Counts from 0, the parts of the cell."""
    tone: str
    """Its colour, as a class of `flames.css`."""
    tip: str


@dataclass(frozen=True)
class FlameGraph:
    """A flame graph."""

    boxes: tuple[FlameBox, ...]
    rows: int
    caption: str
    notes: tuple[str, ...]
    simulated: bool
    accounts: tuple[tuple[str, str], ...] = ()
    """What programs say themselves of their work, by part of the cell."""


def flame_graph(found: Stacks | None, *, simulated: bool) -> FlameGraph | None:
    """Return the flame graph of a test; None where no stacks were sampled."""
    if found is None or not found.total:
        return None
    root, side = flame([found.counts]), StackSide((found,))

    def tip(path: Sequence[str], node: Flame) -> str:
        total, own = node.total[0], node.own[0]
        return f"{path[-1]} in {path[0]}: {_amount(total, side)}; itself {percent(own / side.total)}"

    boxes = tuple(_boxes(root, side.total, lambda node: node.total[0], lambda path, _: _hue(path), tip))
    return FlameGraph(
        boxes,
        _rows(boxes),
        f"Call stacks: {described(found)}",
        tuple(_notes(found)),
        simulated,
        tuple(found.accounts.items()),
    )


def _amount(samples: int, side: StackSide) -> str:
    text = f"{samples} samples, {percent(samples / side.total)}"
    each = side.ns_per_sample
    return text if each is None else f"{text}, {samples * each:.0f} ns per packet"


def _hue(path: Sequence[str]) -> str:
    return f"f{crc32(path[0].encode()) % _HUES}{'' if len(path) > 1 else ' owner'}"


def _notes(found: Stacks) -> Iterator[str]:
    for node in found.nodes:
        every = node.samples or 1
        others = ((node.idle, "idle"), (node.elsewhere, "of programs outside the cell"))
        parts = [f"{percent(count / every)} {what}" for count, what in others if count]
        cpus = f"{len(node.cpus)} data CPU{'s' if len(node.cpus) != 1 else ''}"
        text = f"{node.node}: {node.samples} samples of {cpus} in {node.sampled_s:.1f} s"
        yield f"{text}, of them {' and '.join(parts)}." if parts else f"{text}."
    if any(node.event == "cpu-clock" for node in found.nodes):
        yield _TIMED


def difference_graph(
    a: StackSide, b: StackSide, caption: str, part: Callable[[str], str] = lambda owner: owner, *, simulated: bool
) -> FlameGraph | None:
    """Return the differential flame graph of two sides: a box is as wide as the mean of both shares.

    Red boxes have a larger share in B, blue ones a smaller one; grey ones differ by no more than the noise of sampling.

    Args:
        a: The baseline.
        b: What is compared with it.
        caption: Above the graph.
        part: As for `differences`.
        simulated: Whether any stack is simulated.
    """
    if not a.total or not b.total:
        return None
    found = path_differences(a, b, part)
    root = flame([_weighted(side, part) for side in (a, b)])
    total = root.total[0] + root.total[1]

    def tip(path: Sequence[str], _: Flame) -> str:
        row = found[SEPARATOR.join(path)]
        times = "" if row.ns_a is None or row.ns_b is None else f"; {row.ns_a:.0f} to {row.ns_b:.0f} ns per packet"
        told = "" if row.significant else "; within the noise of sampling"
        return (
            f"{path[-1]} in {path[0]}: {percent(row.share_a)} to {percent(row.share_b)} "
            f"({row.samples_a} and {row.samples_b} samples){times}{told}"
        )

    boxes = tuple(
        _boxes(root, total, lambda node: sum(node.total), lambda path, _: _shade(found[SEPARATOR.join(path)]), tip)
    )
    return FlameGraph(boxes, _rows(boxes), caption, (), simulated)


_WEIGHT = 1_000_000


def _weighted(side: StackSide, part: Callable[[str], str]) -> dict[str, int]:
    """Parts per million of the samples of a side by stack, so that both sides weigh the same."""
    counts: dict[str, int] = {}
    for run in side.runs:
        for stack, count in named(run.counts, part).items():
            counts[stack] = counts.get(stack, 0) + count
    return {stack: round(_WEIGHT * count / side.total) for stack, count in counts.items()}


def _shade(row: StackDifference) -> str:
    if not row.significant:
        return "same"
    step = min(_STEPS, 1 + int(_STEPS * abs(row.difference) / _STRONGEST))
    return f"{'more' if row.difference > 0 else 'less'}{step}"


def _boxes(
    root: Flame,
    total: int,
    weight: Callable[[Flame], int],
    tone: Callable[[Sequence[str], Flame], str],
    tip: Callable[[Sequence[str], Flame], str],
) -> Iterator[FlameBox]:
    """Yield boxes, callers first; children stand below their caller, sorted by name, as in other flame graphs."""
    waiting: list[tuple[tuple[str, ...], Flame, float]] = [((), root, 0.0)]
    left_over = _MOST_BOXES
    while waiting and left_over:
        path, node, left = waiting.pop(0)
        if path:
            left_over -= 1
            width = 100 * weight(node) / total
            yield FlameBox(path[-1], round(left, 3), round(width, 3), len(path) - 1, tone(path, node), tip(path, node))
        for child in sorted(node.children.values(), key=lambda each: each.name):
            share = weight(child) / total
            if share >= _NARROWEST:
                waiting.append(((*path, child.name), child, left))
            left += 100 * share


def _rows(boxes: Sequence[FlameBox]) -> int:
    return 1 + max((box.row for box in boxes), default=0)
