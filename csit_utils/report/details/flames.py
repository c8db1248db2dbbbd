"""Flame graphs as boxes of SVG, of one test and of the difference between two sides, and tables of the cost by node."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from csit_utils.analysis.flames import Flame, StackSide, flame, path_differences
from csit_utils.report.record_blocks import amounts
from csit_utils.report.units import DASH, percent, rate, seconds
from resources.libraries.python.model.measurements.node_costs import NodeCost, NodeCosts
from resources.libraries.python.model.measurements.stacks import SEPARATOR, Stacks, described


class NodeCostView:
    """One node of a thread."""

    def __init__(self, row: NodeCost, received: int) -> None:
        self.part, self.thread, self.node, self.value = row.part, row.thread, row.node, row.cost
        self.passes = row.packets / received if received else None
        """Packets in the node for each packet that came back."""
        self.packets_per_call = row.packets / row.calls if row.calls else None
        self.cost = DASH
        """Of a packet in the node, with its unit and error."""
        if row.cost is not None:
            value, error = amounts(row.cost, row.error)
            self.cost = f"{value} ± {error} {row.unit}" if row.error else f"{value} {row.unit}"
        self.total = None if self.passes is None or row.cost is None else self.passes * row.cost
        """Cost of the node for each packet that came back."""


@dataclass(frozen=True)
class NodeCostTable:
    """All nodes of a reading, those of a part that cost most first."""

    caption: str
    rows: tuple[NodeCostView, ...]
    simulated: bool
    note: str


def cost_table(found: NodeCosts | None, *, simulated: bool, of: str = "") -> NodeCostTable | None:
    """Return the table of a reading; None without any.

    `of`: what it is of, where a page has several.
    """
    if found is None or not found.nodes:
        return None
    rows = sorted(
        (NodeCostView(row, found.received) for row in found.nodes), key=lambda row: (row.part, -(row.total or 0.0))
    )
    where = f"at {found.load}" if found.load != "MRR" else "in MRR"
    lost = f", {percent(found.loss_ratio)} lost" if found.loss_ratio is not None else ""
    text = f"{rate(found.load_pps)} offered{lost}" + (f", read in {seconds(found.read_s)}" if found.read_s else "")
    return NodeCostTable(
        f"Cost of packets by node {where}{f', {of}' if of else ''}", tuple(rows), simulated, f"{text}."
    )


_NARROWEST = 0.003
"""Share below which a box is left out."""
_MAX_BOXES = 2000
_HUES = 6
_STEPS = 5
"""Shades of red and of blue."""
_STRONGEST = 0.2
"""Difference that has the darkest shade, as a share of the side with more."""
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
    costs: tuple[NodeCostTable, ...] = ()
    """What programs counted of their own work meanwhile."""


def flame_graph(found: Stacks | None, *, simulated: bool) -> FlameGraph | None:
    """Return the flame graph of a test; None where no stacks were sampled."""
    if found is None or not found.total:
        return None
    root, side = flame([found.counts]), StackSide((found,))

    def tip(path: Sequence[str], node: Flame) -> str:
        total, own = node.total[0], node.own[0]
        return f"{path[-1]} in {path[0]}: {_amount(total, side)}; itself {percent(own / side.total)}"

    boxes = tuple(_boxes(root, side.total, lambda node: node.total[0], lambda path, _: _hue(path), tip))
    return FlameGraph(boxes, _rows(boxes), f"Call stacks: {described(found)}", tuple(_notes(found)), simulated)


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
    a: StackSide, b: StackSide, caption: str, *, simulated: bool, per_packet: bool = False
) -> FlameGraph | None:
    """Return the differential flame graph of two sides: a box is as wide as the mean of both shares.

    Red boxes have a larger share in B, blue ones a smaller one; grey ones differ by no more than the noise of sampling.

    `simulated`: whether any stack is simulated.
    `per_packet`: show CPU times per packet in the place of shares.
    """
    weights = [side.ns_per_sample if per_packet else side.total and 1 / side.total for side in (a, b)]
    if not all(weights):
        return None
    found = path_differences(a, b, per_packet=per_packet)
    root = flame([_weighted(side, weight or 0.0) for side, weight in zip((a, b), weights, strict=True)])
    total = root.total[0] + root.total[1]

    def tone(path: Sequence[str], node: Flame) -> str:
        return _shade(node.total, max(root.total)) if found[SEPARATOR.join(path)].significant else "same"

    def tip(path: Sequence[str], _: Flame) -> str:
        row = found[SEPARATOR.join(path)]
        times = "" if row.ns_a is None or row.ns_b is None else f"{row.ns_a:.0f} to {row.ns_b:.0f} ns per packet"
        shares = f"{percent(row.share_a)} to {percent(row.share_b)}"
        samples = f"({row.samples_a} and {row.samples_b} samples)"
        figures = f"{times} {samples}" if per_packet else "; ".join(filter(None, (f"{shares} {samples}", times)))
        return f"{path[-1]} in {path[0]}: {figures}{'' if row.significant else '; within the noise of sampling'}"

    boxes = tuple(_boxes(root, total, lambda node: sum(node.total), tone, tip))
    return FlameGraph(boxes, _rows(boxes), caption, (), simulated)


_WEIGHT = 1_000_000


def _weighted(side: StackSide, weight: float) -> dict[str, int]:
    """Millionths of the weights of all samples of a side by stack."""
    counts: dict[str, int] = {}
    for run in side.runs:
        for stack, count in run.counts.items():
            counts[stack] = counts.get(stack, 0) + count
    return {stack: round(_WEIGHT * weight * count) for stack, count in counts.items()}


def _shade(totals: Sequence[int], every: int) -> str:
    before, after = totals
    step = min(_STEPS, 1 + int(_STEPS * abs(after - before) / every / _STRONGEST))
    return f"{'more' if after > before else 'less'}{step}"


def _boxes(
    root: Flame,
    total: int,
    weight: Callable[[Flame], int],
    tone: Callable[[Sequence[str], Flame], str],
    tip: Callable[[Sequence[str], Flame], str],
) -> Iterator[FlameBox]:
    """Yield boxes, callers first; children stand below their caller, sorted by name, as in other flame graphs."""
    waiting: list[tuple[tuple[str, ...], Flame, float]] = [((), root, 0.0)]
    left_over = _MAX_BOXES
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
