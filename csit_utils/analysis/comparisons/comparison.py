"""Comparison of two selections of tests: by cell the change, its confidence interval and significance.

A gate judges a candidate by one: it fails if a cell has a significant regression above the tolerance.

`judge_sides` judges a single cell. Single runs on both sides are judged by the spread of their matrix if it has enough
cells. Intervals are 95 % for a single cell; significance is adjusted for the number of cells, see `_judged_together`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from math import exp, expm1, hypot, inf, log, sqrt
from operator import attrgetter
from statistics import fmean, median, stdev
from typing import NamedTuple

from csit_utils.analysis.cells import CellFigure, CellMetric, figures, place_text, resolution, when
from csit_utils.analysis.comparisons.comparability import likeness, without_bounds
from csit_utils.analysis.grouping import Series, asks_for, series_of
from csit_utils.dataset.ledger import NONE, Acknowledged, AcknowledgedStep
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import UNBOUNDED, TestRow
from resources.libraries.python import special_functions
from resources.libraries.python.model.request.cell import Dimensions

FEWEST_CELLS = 8
"""Fewest cells of a matrix for an estimate."""
_NORMAL = 1.4826
"""Standard deviation of normal noise over its median absolute deviation."""
CONFIDENCE = 0.95
"""Confidence level of intervals."""
FALSE_CALLS = 0.05
"""False discovery rate: expected share of false ones among the reported changes."""
MARGIN = 0.005
"""Share by which the bounds of a single figure are widened, as they do not count the noise between runs."""


class Method(StrEnum):
    """Methods to judge a change."""

    RUNS = "runs"
    ONE_RUN = "one run against several"
    SPREAD = "spread over cells"
    BOUNDS = "bounds"


class Outcome(StrEnum):
    """Outcomes of the comparison of a cell."""

    REGRESSION = "regression"
    PROGRESSION = "progression"
    LOWER = "lower than A"
    """B is another testbed, which has become neither worse nor better."""
    HIGHER = "higher than A"
    NO_CHANGE = "no change seen"
    CANNOT_TELL = "cannot tell"
    """One run per side, few cells, and bounds that are hardly apart."""
    UNLIKE = "unlike"
    """The figures have different meanings."""


DIFFERENT = (Outcome.REGRESSION, Outcome.PROGRESSION, Outcome.LOWER, Outcome.HIGHER)
"""Outcomes of cells that differ significantly."""


@dataclass(frozen=True)
class CellSide:
    """A cell's figures of one selection."""

    series: Series
    figures: tuple[CellFigure, ...]
    mean_pps: float
    stdev_pps: float | None
    """Standard deviation over runs; None for a single run."""
    low_pps: float
    """Lower bound of a single run; lowest figure of several runs."""
    high_pps: float
    """Upper bound of a single run, possibly infinite; highest figure of several runs."""
    resolution_pps: float

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.figures)


@dataclass(frozen=True)
class Change:
    """One cell on both sides."""

    dimensions: Dimensions
    metric: Measure
    a: CellSide
    b: CellSide
    change: float
    """Relative change of the means from A to B; infinite if only A is 0."""
    low: float
    """Bound of its confidence interval."""
    high: float
    method: Method
    probability: float | None
    """p-value: probability that runs of equal systems differ as much; None if it cannot be computed."""
    adjusted: float | None
    """p-value adjusted for the number of cells."""
    outcome: Outcome
    remarks: tuple[str, ...] = ()
    """Notes; for unlike figures the differences in meaning."""
    of: str = ""
    """What tells it from other changes of the same cell, such as its testbeds; empty if there are none."""

    @property
    def name(self) -> str:
        """Name for a line of text."""
        return " ".join(filter(None, (self.of, place_text(self.a.series, self.dimensions), self.metric)))

    @property
    def worsening(self) -> float:
        """Relative change for the worse: the decrease, or the increase of what is better the less there is of it."""
        return self.metric.worsening(self.change)


@dataclass(frozen=True)
class Comparison:
    """All cells of two selections."""

    changes: tuple[Change, ...]
    """In the order of cells."""
    only_a: tuple[CellMetric, ...]
    """Cells with a figure only in A."""
    only_b: tuple[CellMetric, ...]

    def of(self, *outcomes: Outcome) -> tuple[Change, ...]:
        """Return the changes with one of these outcomes."""
        return tuple(change for change in self.changes if change.outcome in outcomes)


class SpreadRatio(NamedTuple):
    """Change of a cell between two single runs."""

    a_pps: float
    b_pps: float
    error: float
    """Relative difference without a change of the system, such as the resolution of a search."""


class JudgedChange(NamedTuple):
    """A change judged against those of the other cells."""

    low: float
    """Bound of the confidence interval of the relative change."""
    high: float
    probability: float
    """p-value: probability that runs of equal systems differ as much."""


def relative(resolution_a: float, mean_a: float, resolution_b: float, mean_b: float) -> float:
    """Return the relative error of a ratio; infinite if one side is 0."""
    return hypot(resolution_a / mean_a, resolution_b / mean_b) if mean_a > 0 and mean_b > 0 else inf


def judge(ratios: Sequence[SpreadRatio], confidence: float) -> list[JudgedChange] | None:
    """Judge cells of one matrix by the spread of their changes.

    Two single runs have no variance of their own. Most cells of a matrix change alike, if at all, so the spread of
    their changes estimates the noise: it is the median absolute deviation of the logarithms of the ratios about their
    median, and at least the error of the cell. Each change is tested against no change by Student's t with one degree
    of freedom less than cells. A change of all cells is detected; if about half of them changed, the spread is as large
    as the change, and nothing is reported.

    `confidence`: of the interval, in (0, 1).

    Returns:
        One judgement per cell; None with fewer than `FEWEST_CELLS`, or with a rate of 0.
    """
    if len(ratios) < FEWEST_CELLS or any(each.a_pps <= 0 or each.b_pps <= 0 for each in ratios):
        return None
    logs = [log(each.b_pps / each.a_pps) for each in ratios]
    middle = median(logs)
    noise = _NORMAL * median([abs(each - middle) for each in logs])
    freedom = len(logs) - 1
    quantile = float(special_functions.stdtrit(freedom, (1 + confidence) / 2))
    found = []
    for change, ratio in zip(logs, ratios, strict=True):
        error = max(noise, ratio.error)
        if not error:
            found.append(JudgedChange(expm1(change), expm1(change), 0.0 if change else 1.0))
            continue
        probability = 2 * float(special_functions.stdtr(freedom, -abs(change) / error))
        found.append(JudgedChange(exp(change - quantile * error) - 1, exp(change + quantile * error) - 1, probability))
    return found


class Judgement(NamedTuple):
    """A change relative to the first side."""

    method: Method
    change: float
    low: float
    """Lower end of its confidence interval."""
    high: float
    probability: float | None
    """p-value; None if the noise is unknown."""


def side(cell: CellMetric, found: Sequence[CellFigure]) -> CellSide:
    """Summarize the figures of a cell."""
    values = [each.value_pps for each in found]
    lows, highs = zip(*(interval(each, cell.metric) for each in found), strict=True)
    several = len(values) > 1
    return CellSide(
        cell.series,
        tuple(found),
        fmean(values),
        stdev(values) if several else None,
        min(values) if several else lows[0],
        max(values) if several else highs[0],
        resolution(found, cell.metric),
    )


def interval(found: CellFigure, metric: Measure) -> tuple[float, float]:
    """Return the bounds of a figure; those of its confidence interval for a mean, and infinity without an upper one."""
    if found.error_pps > 0:
        freedom = max(1, (getattr(found.row, metric.trials) or 2) - 1)
        reach = float(special_functions.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * found.error_pps
        return found.value_pps - reach, found.value_pps + reach
    if metric.complete and found.upper_pps == found.value_pps:
        return without_bounds(found.row, metric, found.value_pps)
    lowest = found.value_pps if found.lowest_pps is None else found.lowest_pps
    return lowest, inf if found.upper_pps is None else found.upper_pps


def judge_sides(a: CellSide, b: CellSide) -> Judgement:
    """Judge the change from one side to the other."""
    change = _relative_change(a.mean_pps, b.mean_pps)
    if a.runs == b.runs == 1:
        less, more = 1 - MARGIN, 1 + MARGIN
        low = _relative_change(more * a.high_pps, less * b.low_pps)
        high = _relative_change(max(0.0, less * a.low_pps), more * b.high_pps)
        return Judgement(Method.BOUNDS, change, low, high, None)
    spread_a = max(a.stdev_pps if a.stdev_pps is not None else b.stdev_pps or 0.0, a.resolution_pps)
    spread_b = max(b.stdev_pps if b.stdev_pps is not None else a.stdev_pps or 0.0, b.resolution_pps)
    error_a, error_b = spread_a / sqrt(a.runs), spread_b / sqrt(b.runs)
    method = Method.RUNS if min(a.runs, b.runs) > 1 else Method.ONE_RUN
    freedom = _freedom(error_a, error_b, a.runs, b.runs) if method is Method.RUNS else max(a.runs, b.runs) - 1
    error = hypot(error_a, error_b)
    if not error or not a.mean_pps:
        same = a.mean_pps == b.mean_pps
        return Judgement(method, change, change, change, 1.0 if same else 0.0)
    probability = 2 * float(special_functions.stdtr(freedom, -abs(b.mean_pps - a.mean_pps) / error))
    relative = hypot(error_b / a.mean_pps, b.mean_pps * error_a / a.mean_pps**2)
    reach = float(special_functions.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * relative
    return Judgement(method, change, change - reach, change + reach, probability)


def _relative_change(before: float, after: float) -> float:
    """Return the relative change; infinite from 0, but 0 where both are 0, as shares that stay at nothing are."""
    return after / before - 1 if before else inf if after else 0.0


def _freedom(error_a: float, error_b: float, runs_a: int, runs_b: int) -> float:
    """Degrees of freedom by Welch and Satterthwaite."""
    parts = error_a**4 / (runs_a - 1) + error_b**4 / (runs_b - 1)
    return (error_a**2 + error_b**2) ** 2 / parts if parts else runs_a + runs_b - 2.0


def compare(
    a: Sequence[TestRow], b: Sequence[TestRow], *, insist: bool = False, acknowledged: Acknowledged = NONE
) -> Comparison:
    """Compare the cells that two selections have in common.

    Cells match by service type, rows and columns, sizes, frame and metric; if both sides have several testbeds or
    profiles, also by these.

    `insist`: also compare figures with different meanings, and note the differences.
    `acknowledged`: steps whose cause is known: of A, figures before the last of them that precedes B do not count.
    """
    of_a, of_b = figures(a), figures(b)
    pairs = list(_pairs(of_a, of_b))
    since = [_since(acknowledged.get(one.name, ()), of_a[one], of_b[other]) for one, other in pairs]
    kept = [(pair, own) for pair, own in zip(pairs, since, strict=True) if own]
    changes = [_change(one, other, own, of_b[other], insist=insist) for (one, other), own in kept]
    paired_a, paired_b = {one for one, _ in pairs}, {other for (_, other), _ in kept}
    return Comparison(
        tuple(_judged_together(_by_spread(_told_apart(changes)))),
        tuple(cell for cell in of_a if cell not in paired_a),
        tuple(cell for cell in of_b if cell not in paired_b),
    )


def _since(
    steps: Sequence[AcknowledgedStep], before: Sequence[CellFigure], after: Sequence[CellFigure]
) -> Sequence[CellFigure]:
    """Figures of a baseline since the last acknowledged step that precedes those that are compared with it."""
    begun = max((step.since for step in steps if step.since <= after[0].at), default=None)
    return before if begun is None else [each for each in before if each.at >= begun]


def _pairs(of_a: Collection[CellMetric], of_b: Collection[CellMetric]) -> Iterable[tuple[CellMetric, CellMetric]]:
    places: dict[tuple[object, ...], list[CellMetric]] = defaultdict(list)
    for cell in of_b:
        places[_place(cell)].append(cell)
    known_a = set(of_a)
    for cell in of_a:
        there = places[_place(cell)]
        same = [cell] if cell in there else [other for other in there if other not in known_a]
        same_goals = [other for other in same if other.series.goals == cell.series.goals]
        yield from ((cell, other) for other in same_goals or same)


def _told_apart(changes: Sequence[Change]) -> Sequence[Change]:
    """Changes with different names: those of the same cell on several testbeds, or with several profiles, say which."""
    for key in (attrgetter("system.name"), attrgetter("profile"), attrgetter("goals")):
        if len({each.name for each in changes}) == len(changes):
            break
        sides = [(key(each.a.series), key(each.b.series)) for each in changes]
        changes = [
            replace(each, of=" ".join(filter(None, (each.of, a if a == b else f"{a} / {b}"))))
            for each, (a, b) in zip(changes, sides, strict=True)
        ]
    return changes


def _place(cell: CellMetric) -> tuple[object, ...]:
    """Identity of a cell across testbeds."""
    series = cell.series
    frame = series.frame.split(" ")[0].upper()
    return (series.service_type, series.nf_size, series.vs_dtc, frame, cell.dimensions, cell.metric)


def _change(
    one: CellMetric, other: CellMetric, of_a: Sequence[CellFigure], of_b: Sequence[CellFigure], *, insist: bool
) -> Change:
    a, b = side(one, of_a), side(other, of_b)
    like = likeness(of_a[-1].row, of_b[-1].row, one.metric)
    method, change, low, high, probability = judge_sides(a, b)
    if method is Method.BOUNDS and one.metric in UNBOUNDED:
        low, high = -inf, inf
    if not like.alike and not insist:
        outcome, probability = Outcome.UNLIKE, None
    elif method is Method.BOUNDS:
        apart = high < 0 or low > 0
        outcome = _direction(a, b, change, one.metric) if apart else Outcome.CANNOT_TELL
    else:
        outcome = Outcome.NO_CHANGE  # until all cells are judged together
    bound = [
        f"{name} is a lower bound, limited by the offered load"
        for name, found in (("A", of_a), ("B", of_b))
        if any(each.upper_pps is None for each in found)
    ]
    unsteady = [
        f"{name}: {texts[0]}"
        for name, found in (("A", of_a), ("B", of_b))
        if (texts := [text for each in found if (text := each.out_of_order(one.metric))])
    ]
    return Change(
        one.dimensions, one.metric, a, b, change, low, high, method, probability, None, outcome,
        (*like.differences, *like.remarks, *bound, *unsteady),
    )  # fmt: skip


def _by_spread(changes: Sequence[Change]) -> Sequence[Change]:
    """Changes between single runs, judged by the spread of changes over the matrix if it has enough cells."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, each in enumerate(changes):
        limited = inf in (each.a.high_pps, each.b.high_pps)
        if each.method is Method.BOUNDS and each.outcome is not Outcome.UNLIKE and not limited:
            own = each.a.series
            frame = own.frame.split(" ")[0].upper()
            sizes = (own.service_type, own.nf_size, own.vs_dtc, frame, each.metric)
            groups[*sizes, own.goals, each.b.series.goals].append(index)
    judged = list(changes)
    for places in groups.values():
        sides = [(changes[index].a, changes[index].b) for index in places]
        found = judge(
            [
                SpreadRatio(
                    a.mean_pps, b.mean_pps, relative(a.resolution_pps, a.mean_pps, b.resolution_pps, b.mean_pps)
                )
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
    """Decide by p-values adjusted for the number of cells (Benjamini and Hochberg, 1995).

    The false discovery rate is at most `FALSE_CALLS`; without any change, that is the probability of a false report.
    Valid for independent and for positively dependent figures, such as NDR and PDR of a cell.
    """
    adjusted = iter(adjusted_probabilities([each.probability for each in changes if each.probability is not None]))
    for each in changes:
        if each.probability is None:
            yield each
            continue
        found = next(adjusted)
        if found <= FALSE_CALLS:
            yield replace(each, adjusted=found, outcome=_direction(each.a, each.b, each.change, each.metric))
        elif each.probability <= 1 - CONFIDENCE:
            alone = "significant for this cell alone, but not among this many cells"
            yield replace(each, adjusted=found, outcome=Outcome.NO_CHANGE, remarks=(*each.remarks, alone))
        else:
            yield replace(each, adjusted=found, outcome=Outcome.NO_CHANGE)


def adjusted_probabilities(probabilities: Sequence[float]) -> list[float]:
    """Return adjusted p-values, as `scipy.stats.false_discovery_control` does, whose import takes half a second."""
    falling = sorted(range(len(probabilities)), key=probabilities.__getitem__, reverse=True)
    adjusted, least = [1.0] * len(falling), 1.0
    for below, place in enumerate(falling):
        least = min(least, probabilities[place] * len(falling) / (len(falling) - below))
        adjusted[place] = least
    return adjusted


def _direction(a: CellSide, b: CellSide, change: float, metric: Measure) -> Outcome:
    if a.series.system.testbed != b.series.system.testbed:
        return Outcome.LOWER if change < 0 else Outcome.HIGHER
    return Outcome.REGRESSION if metric.worsening(change) > 0 else Outcome.PROGRESSION


@dataclass(frozen=True)
class UndecidedCell:
    """A cell that cannot be judged."""

    name: str
    series: Series
    reason: str
    failed: bool = False
    """Whether the candidate's test failed."""


@dataclass(frozen=True)
class Decision:
    """Cells of a candidate by result of the gate."""

    fallen: tuple[Change, ...]
    """Largest regression first."""
    kept: tuple[Change, ...]
    unjudged: tuple[UndecidedCell, ...]

    @property
    def judged(self) -> int:
        """Number of judged cells."""
        return len(self.fallen) + len(self.kept)


def decide(
    comparison: Comparison, candidate: Sequence[TestRow], tolerance: float = 0.0, acknowledged: Acknowledged = NONE
) -> Decision:
    """Judge all cells.

    `candidate`: tests of the candidate, for the reason of a missing figure.
    `tolerance`: tolerated relative change for the worse, at least 0.
    `acknowledged`: steps whose cause is known, for the reason of a missing baseline.
    """
    judged = comparison.of(*DIFFERENT, Outcome.NO_CHANGE)
    begun = min(map(when, candidate), default=None)
    fallen = [each for each in judged if each.outcome in DIFFERENT and each.worsening > tolerance]
    return Decision(
        tuple(sorted(fallen, key=lambda each: -each.worsening)),
        tuple(each for each in judged if each not in fallen),
        (
            *(
                UndecidedCell(each.name, each.b.series, _why(each))
                for each in comparison.of(Outcome.CANNOT_TELL, Outcome.UNLIKE)
            ),
            *(_missing(cell, candidate) for cell in comparison.only_a),
            *(
                UndecidedCell(cell.name, cell.series, _without_baseline(acknowledged.get(cell.name, ()), begun))
                for cell in comparison.only_b
            ),
        ),
    )


def _without_baseline(steps: Sequence[AcknowledgedStep], begun: datetime | None) -> str:
    last = max((step for step in steps if begun and step.since <= begun), key=lambda step: step.since, default=None)
    since = f" since the acknowledged step of {last.day} ({last.cause})" if last else ""
    return f"the baseline has no figure{since}"


def _why(change: Change) -> str:
    if change.outcome is Outcome.UNLIKE:
        return "; ".join(change.remarks)
    bounds = "no bounds" if change.metric in UNBOUNDED else "bounds that are hardly apart"
    return f"one run per side, too few cells to estimate the noise, and {bounds}"


def _missing(cell: CellMetric, candidate: Sequence[TestRow]) -> UndecidedCell:
    """A cell for which the candidate has no figure."""
    for row in candidate:
        here = (row.service_type, row.dimensions) == (cell.series.service_type, cell.dimensions)
        if here and row.status != "PASS" and asks_for(row, cell.metric) and _may_be_of(row, cell.series):
            why = " ".join(row.message.split())
            reason = f"the candidate's test ended with {row.status}{f': {why}' if why else ''}"
            return UndecidedCell(cell.name, cell.series, reason, failed=row.status != "SKIP")
    return UndecidedCell(cell.name, cell.series, "the candidate has no figure")


def _may_be_of(row: TestRow, series: Series) -> bool:
    """Whether a failed test belongs to a series, as far as is known: without figures, other tools name no goals."""
    own = series_of(row)
    return own is None or (own if own.goals else replace(own, goals=series.goals)) == series
