"""Two selections of tests side by side: by cell the change, its confidence interval, and whether it may be chance.

Three methods, by what there is:

- **several runs on both sides**: difference of means by Welch (Biometrika 34 (1947) 28), which lets the sides vary
  unequally;
- **one run against several**: the same with the variation of the side that tells one, `n - 1` degrees of freedom;
- **one run on both sides, many cells**: how differently the cells of a matrix changed
  tells how runs vary, see `spread`;
- **one run on both sides, few cells**: nothing tells how runs vary. The figures' own bounds are intervals (of a search;
  of MRR the 95 % interval of the mean of its trials). They may be apart or overlap; that says nothing of the next run.

The standard deviation of runs counts as no less than the resolution of one (half of the width between a search's
bounds): runs that agree by rounding are not without variation. The interval is of the ratio of the means, by
propagation of errors (first order). It is of 95 % for a cell alone; whether a cell is *called* changed is judged for
all cells together, see `multiple`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import hypot, inf, sqrt
from statistics import fmean, stdev

from scipy.special import stdtr, stdtrit

from csit_utils.analysis.alike import likeness, without_bounds
from csit_utils.analysis.cells import Cell, Figure, figures, place_text, resolution
from csit_utils.analysis.grouping import Metric, Series
from csit_utils.analysis.multiple import benjamini_hochberg
from csit_utils.analysis.spread import Ratio, judge, relative
from csit_utils.dataset.rows import TestRow

CONFIDENCE = 0.95
"""Of intervals."""
FALSE_CALLS = 0.05
"""Share of the cells called changed that may be so by chance, on average."""


class Method(StrEnum):
    """How a change was judged."""

    RUNS = "runs"
    ONE_RUN = "one run against several"
    SPREAD = "spread over cells"
    BOUNDS = "bounds"


class Outcome(StrEnum):
    """What can be said of a cell."""

    REGRESSION = "regression"
    PROGRESSION = "progression"
    NO_CHANGE = "no change seen"
    CANNOT_TELL = "cannot tell"
    """One run on both sides, few cells, and their bounds overlap."""
    UNLIKE = "unlike"
    """The figures mean different things."""


@dataclass(frozen=True)
class Side:
    """A cell's figures of one selection."""

    series: Series
    figures: tuple[Figure, ...]
    mean_pps: float
    stdev_pps: float | None
    """Of runs; None for a single one."""
    low_pps: float
    """Of a single run: its lower bound; of several the least figure."""
    high_pps: float
    """Of a single run: its upper bound, infinite where nothing above could be offered; else the greatest figure."""
    resolution_pps: float

    @property
    def runs(self) -> int:
        """How many."""
        return len(self.figures)


@dataclass(frozen=True)
class Change:
    """One cell on both sides."""

    service_type: str
    nf_size: str
    vs_dtc: int | None
    frame: str
    nf_chains: int
    nf_nodes: int
    metric: Metric
    a: Side
    b: Side
    change: float
    """Of the means, from A to B, relative to A; infinite where A is 0."""
    low: float
    """Of its confidence interval."""
    high: float
    method: Method
    probability: float | None
    """That runs of equal systems differ as much; None where that cannot be known."""
    adjusted: float | None
    """The same, judged together with all other cells."""
    outcome: Outcome
    remarks: tuple[str, ...] = ()
    """What is to be known; of unlike figures why they are unlike."""

    @property
    def name(self) -> str:
        """For a line."""
        return f"{place_text(self.a.series, self.nf_chains, self.nf_nodes)} {self.metric}"


@dataclass(frozen=True)
class Comparison:
    """All cells of two selections."""

    changes: tuple[Change, ...]
    """In the order of cells."""
    only_a: tuple[Cell, ...]
    """Cells with a figure on that side only."""
    only_b: tuple[Cell, ...]

    def of(self, *outcomes: Outcome) -> tuple[Change, ...]:
        """Changes with one of these outcomes."""
        return tuple(change for change in self.changes if change.outcome in outcomes)


def compare(a: Sequence[TestRow], b: Sequence[TestRow], *, insist: bool = False) -> Comparison:
    """Compare what two selections have in common.

    Cells are the same by service type, place, sizes, frame and metric; where both sides have tests of several testbeds
    or profiles, those of the same are compared.

    Args:
        a: What is compared with, the baseline.
        b: What is compared.
        insist: Also compare figures that mean different things; what differs is then a remark.
    """
    of_a, of_b = figures(a), figures(b)
    pairs = list(_pairs(of_a, of_b))
    changes = [_change(one, other, of_a[one], of_b[other], insist=insist) for one, other in pairs]
    paired_a, paired_b = {one for one, _ in pairs}, {other for _, other in pairs}
    return Comparison(
        tuple(_judged_together(_by_spread(changes))),
        tuple(cell for cell in of_a if cell not in paired_a),
        tuple(cell for cell in of_b if cell not in paired_b),
    )


def _pairs(of_a: Collection[Cell], of_b: Collection[Cell]) -> Iterable[tuple[Cell, Cell]]:
    places: dict[tuple[object, ...], list[Cell]] = defaultdict(list)
    for cell in of_b:
        places[_place(cell)].append(cell)
    known_a = set(of_a)
    for cell in of_a:
        there = places[_place(cell)]
        same = [cell] if cell in there else [other for other in there if other not in known_a]
        same_goals = [other for other in same if other.series.goals == cell.series.goals]
        yield from ((cell, other) for other in same_goals or same)


def _place(cell: Cell) -> tuple[object, ...]:
    """What is the same in the same cell of any testbed."""
    series = cell.series
    frame = series.frame.split(" ")[0].upper()
    return (series.service_type, series.nf_size, series.vs_dtc, frame, cell.nf_chains, cell.nf_nodes, cell.metric)


def side(cell: Cell, found: Sequence[Figure]) -> Side:
    """Figures of a cell, summed up."""
    values = [each.value_pps for each in found]
    lows, highs = zip(*(_interval(each, cell.metric) for each in found), strict=True)
    several = len(values) > 1
    return Side(
        cell.series,
        tuple(found),
        fmean(values),
        stdev(values) if several else None,
        min(values) if several else lows[0],
        max(values) if several else highs[0],
        resolution(found, cell.metric),
    )


def _interval(found: Figure, metric: Metric) -> tuple[float, float]:
    if found.error_pps > 0:
        reach = float(stdtrit(max(1, (found.row.mrr_trials or 2) - 1), (1 + CONFIDENCE) / 2)) * found.error_pps
        return found.value_pps - reach, found.value_pps + reach
    if metric is not Metric.MRR and found.upper_pps == found.value_pps:
        return without_bounds(found.row, metric, found.value_pps)
    return found.value_pps, inf if found.upper_pps is None else found.upper_pps


def _change(one: Cell, other: Cell, of_a: Sequence[Figure], of_b: Sequence[Figure], *, insist: bool) -> Change:
    a, b = side(one, of_a), side(other, of_b)
    like = likeness(of_a[-1].row, of_b[-1].row, one.metric)
    method, change, low, high, probability = _judge(a, b)
    if not like.alike and not insist:
        outcome, probability = Outcome.UNLIKE, None
    elif method is Method.BOUNDS:
        apart = high < 0 or low > 0
        outcome = _direction(change) if apart else Outcome.CANNOT_TELL
    else:
        outcome = Outcome.NO_CHANGE  # until all are judged together
    bound = [
        f"{name} is a lower limit: nothing above could be offered"
        for name, found in (("A", of_a), ("B", of_b))
        if any(each.upper_pps is None for each in found)
    ]
    return Change(
        one.series.service_type, one.series.nf_size, one.series.vs_dtc, one.series.frame, one.nf_chains, one.nf_nodes,
        one.metric, a, b, change, low, high, method, probability, None, outcome,
        (*like.differences, *like.remarks, *bound),
    )  # fmt: skip


def _judge(a: Side, b: Side) -> tuple[Method, float, float, float, float | None]:
    """Method, change, its interval, and the probability of chance."""
    change = b.mean_pps / a.mean_pps - 1 if a.mean_pps else inf
    if a.runs == b.runs == 1:
        low = b.low_pps / a.high_pps - 1 if a.high_pps else inf
        high = b.high_pps / a.low_pps - 1 if a.low_pps > 0 else inf
        return Method.BOUNDS, change, low, high, None
    spread_a = max(a.stdev_pps if a.stdev_pps is not None else b.stdev_pps or 0.0, a.resolution_pps)
    spread_b = max(b.stdev_pps if b.stdev_pps is not None else a.stdev_pps or 0.0, b.resolution_pps)
    error_a, error_b = spread_a / sqrt(a.runs), spread_b / sqrt(b.runs)
    method = Method.RUNS if min(a.runs, b.runs) > 1 else Method.ONE_RUN
    freedom = _freedom(error_a, error_b, a.runs, b.runs) if method is Method.RUNS else max(a.runs, b.runs) - 1
    error = hypot(error_a, error_b)
    if not error or not a.mean_pps:
        same = a.mean_pps == b.mean_pps
        return method, change, change, change, 1.0 if same else 0.0
    probability = 2 * float(stdtr(freedom, -abs(b.mean_pps - a.mean_pps) / error))
    relative = hypot(error_b / a.mean_pps, b.mean_pps * error_a / a.mean_pps**2)
    reach = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * relative
    return method, change, change - reach, change + reach, probability


def _freedom(error_a: float, error_b: float, runs_a: int, runs_b: int) -> float:
    """Degrees of freedom by Welch and Satterthwaite."""
    parts = error_a**4 / (runs_a - 1) + error_b**4 / (runs_b - 1)
    return (error_a**2 + error_b**2) ** 2 / parts if parts else runs_a + runs_b - 2.0


def _by_spread(changes: Sequence[Change]) -> Sequence[Change]:
    """Single runs, judged by how differently the cells of their matrix changed, where these are enough."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, each in enumerate(changes):
        limited = inf in (each.a.high_pps, each.b.high_pps)
        if each.method is Method.BOUNDS and each.outcome is not Outcome.UNLIKE and not limited:
            frame = each.frame.split(" ")[0].upper()
            sizes = (each.service_type, each.nf_size, each.vs_dtc, frame, each.metric)
            groups[*sizes, each.a.series.goals, each.b.series.goals].append(index)
    judged = list(changes)
    for places in groups.values():
        sides = [(changes[index].a, changes[index].b) for index in places]
        found = judge(
            [
                Ratio(a.mean_pps, b.mean_pps, relative(a.resolution_pps, a.mean_pps, b.resolution_pps, b.mean_pps))
                for a, b in sides
            ],
            CONFIDENCE,
        )
        for index, (low, high, probability) in zip(places, found or (), strict=False):
            judged[index] = replace(
                changes[index], method=Method.SPREAD, low=low, high=high, probability=probability,
                outcome=Outcome.NO_CHANGE,
            )  # fmt: skip
    return judged


def _judged_together(changes: Sequence[Change]) -> Iterable[Change]:
    adjusted = iter(benjamini_hochberg([each.probability for each in changes if each.probability is not None]))
    for each in changes:
        if each.probability is None:
            yield each
            continue
        found = next(adjusted)
        if found <= FALSE_CALLS:
            yield replace(each, adjusted=found, outcome=_direction(each.change))
        elif each.probability <= 1 - CONFIDENCE:
            alone = "alone it would be called changed; among as many cells it may be chance"
            yield replace(each, adjusted=found, outcome=Outcome.NO_CHANGE, remarks=(*each.remarks, alone))
        else:
            yield replace(each, adjusted=found, outcome=Outcome.NO_CHANGE)


def _direction(change: float) -> Outcome:
    return Outcome.REGRESSION if change < 0 else Outcome.PROGRESSION
