"""Changes of the cost of packets by node between two sides of a cell. Pure.

With several runs on a side the interval of a difference follows from the spread between runs, for all nodes of the
cell together (Bonferroni). Single readings have the resolution of the counter or the interval of the samples, and say
nothing of what differs between two deployments: a change of less than `LEAST` is then none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import fmean, stdev

from csit_utils.analysis.comparisons.comparison import CONFIDENCE, Change, Outcome
from csit_utils.dataset.rows import THROUGHPUTS, TestRow
from resources.libraries.python import special_functions
from resources.libraries.python.model.measurements.node_costs import CostByNode

LEAST = 0.02
"""Smallest relative change that a single reading on a side can show."""
_STARVED = 0.5
"""Packets per call, relative to the other side, below which a thread is starved."""
_NAMED = 3
_Key = tuple[str, str, str]


@dataclass(frozen=True)
class NodeChange:
    """A node on both sides, with the means of their runs."""

    part: str
    node: str
    unit: str
    """Of the costs: `clocks`, or `ns`."""
    cost_a: float
    cost_b: float
    error: float
    """Half of the 95 % interval of the difference, or the resolution of single readings."""
    packets_per_call_a: float | None
    packets_per_call_b: float | None
    runs: int
    """Of the side that has more."""

    @property
    def difference(self) -> float:
        """Change of the cost of a packet from A to B."""
        return self.cost_b - self.cost_a

    @property
    def has_changed(self) -> bool:
        """Whether the difference is larger than its error, and than a single reading can show."""
        least = LEAST * self.cost_a if self.runs == 1 else 0.0
        return abs(self.difference) > max(self.error, least)

    @property
    def starved(self) -> bool:
        """Whether B has far fewer packets per call: what a call costs is then the cost of few packets."""
        few, usual = self.packets_per_call_b, self.packets_per_call_a
        return few is not None and usual is not None and few <= _STARVED * usual

    @property
    def text(self) -> str:
        """The change as a clause: `vswitch ip4-lookup +11 clocks per packet (±0.5)`."""
        text = f"{self.part} {self.node} {self.difference:+.3g} {self.unit} per packet (±{self.error:.2g})"
        if not self.starved:
            return text
        return f"{text}, starved: {self.packets_per_call_b:.3g} packets per call, {self.packets_per_call_a:.3g} in A"


def node_changes(a: Iterable[TestRow], b: Iterable[TestRow], load: str) -> list[NodeChange]:
    """Return the nodes that both sides have at a load, the largest difference first.

    `load`: such as `PDR`.
    """
    of_a, of_b = _readings(a, load), _readings(b, load)
    both = [key for key in of_a if key in of_b]
    changes = [_change(key, of_a[key], of_b[key], len(both)) for key in both]
    return sorted(changes, key=lambda each: -abs(each.difference))


def node_changes_of(change: Change) -> list[NodeChange]:
    """Return the nodes at the load of a rate; none of other measures, which have the same tests."""
    if change.metric not in THROUGHPUTS or change.outcome is Outcome.UNLIKE:
        return []
    a, b = ((each.row for each in side.figures) for side in (change.a, change.b))
    return node_changes(a, b, change.metric)


def largest(changes: Iterable[NodeChange]) -> list[NodeChange]:
    """Return the largest differences beyond their errors, of changes in this order."""
    return [each for each in changes if each.has_changed][:_NAMED]


def _readings(rows: Iterable[TestRow], load: str) -> Mapping[_Key, list[CostByNode]]:
    found: dict[_Key, list[CostByNode]] = {}
    for row in rows:
        for each in row.costs or ():
            if each.load == load and each.cost is not None:
                found.setdefault((each.part, each.node, each.unit), []).append(each)
    return found


def _change(key: _Key, a: Sequence[CostByNode], b: Sequence[CostByNode], nodes: int) -> NodeChange:
    values_a, values_b = ([each.cost or 0.0 for each in side] for side in (a, b))
    error = max(each.error for each in a) + max(each.error for each in b)
    spreads = [stdev(values) for values in (values_a, values_b) if len(values) > 1]
    if spreads:  # a single run is taken to vary as those of the other side
        spread = hypot(spreads[0] / sqrt(len(a)), spreads[-1] / sqrt(len(b)))
        freedom = min(len(side) for side in (a, b) if len(side) > 1) - 1
        error = max(error, spread * float(special_functions.stdtrit(freedom, 1 - (1 - CONFIDENCE) / 2 / nodes)))
    return NodeChange(*key, fmean(values_a), fmean(values_b), error, _per_call(a), _per_call(b), max(len(a), len(b)))


def _per_call(rows: Sequence[CostByNode]) -> float | None:
    known = [each.packets_per_call for each in rows if each.packets_per_call is not None]
    return fmean(known) if known else None
