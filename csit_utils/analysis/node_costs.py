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
    """A node, with the means of the runs of both sides."""

    part: str
    node: str
    unit: str
    """Of the costs: `clocks`, or `ns`."""
    cost_a: float
    """0 where the node had no packets on this side, such as that of a feature that was off."""
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
        text = f"{self.part} {self.node} {signed(self.difference)} {self.unit} per packet (±{self.error:.2g}"
        return f"{text}), {note}" if (note := self.note) else f"{text})"

    @property
    def note(self) -> str:
        """What is to be known of it beside its figures."""
        if not (self.cost_a and self.cost_b):
            return f"only in {'A' if self.cost_a else 'B'}"
        if not self.starved:
            return ""
        return f"starved: {self.packets_per_call_b:.3g} packets per call, {self.packets_per_call_a:.3g} in A"


def node_changes(a: Iterable[TestRow], b: Iterable[TestRow], load: str) -> list[NodeChange]:
    """Return the nodes at a load, the largest difference first; none where a side was not read.

    `load`: such as `PDR`.
    """
    of_a, of_b = _readings(a, load), _readings(b, load)
    if not of_a or not of_b:
        return []
    keys = {**of_a, **of_b}
    changes = [_change(key, of_a.get(key, ()), of_b.get(key, ()), len(keys)) for key in keys]
    return sorted(changes, key=lambda each: -abs(each.difference))


def node_changes_of(change: Change) -> list[NodeChange]:
    """Return the nodes at the load of a rate; none of other measures, which have the same tests."""
    if change.metric not in THROUGHPUTS or change.outcome is Outcome.UNLIKE:
        return []
    a, b = ((each.row for each in side.figures) for side in (change.a, change.b))
    return node_changes(a, b, change.metric)


def signed(value: float) -> str:
    """Three digits and a sign, never an exponent: `+11`, `-2230`."""
    return f"{value:+.3g}" if abs(value) < 100 else f"{float(f'{value:.3g}'):+.0f}"


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
    values_a, values_b = ([each.cost or 0.0 for each in side] or [0.0] for side in (a, b))
    error = sum(max((each.error for each in side), default=0.0) for side in (a, b))
    spreads = [stdev(values) for values in (values_a, values_b) if len(values) > 1]
    if spreads:  # a single run is taken to vary as those of the other side
        spread = hypot(spreads[0] / sqrt(len(values_a)), spreads[-1] / sqrt(len(values_b)))
        freedom = min(len(side) for side in (a, b) if len(side) > 1) - 1
        error = max(error, spread * float(special_functions.stdtrit(freedom, 1 - (1 - CONFIDENCE) / 2 / nodes)))
    return NodeChange(*key, fmean(values_a), fmean(values_b), error, _per_call(a), _per_call(b), max(len(a), len(b)))


def _per_call(rows: Sequence[CostByNode]) -> float | None:
    known = [each.packets_per_call for each in rows if each.packets_per_call is not None]
    return fmean(known) if known else None
