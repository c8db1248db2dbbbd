"""Choice of the tests of a night with a time limit, by what stored results leave open.

Three reasons to measure a test, in this order:

- **suspected**: its newest figures differ from the earlier ones, and are too few for a confirmed step. `trend` says so
  for cells with enough figures, `compare` of the newest figure with all others for the rest. As many repetitions as a
  step lacks (`trends.steps.MIN_RUNS`). Score: relative size of the change.
- **unseen**: never passed, or not for some days. Once. Score: days since it passed.
- **uncertain**: the 95 % interval of its present level, as `compare` computes it for several runs (Student's t of the
  standard deviation, at least the resolution), is wider than wanted. Repeated until it is expected to be narrow enough.
  Score: expected decrease of the interval's half-width per hour.

Measurements are taken by reason and score while they fit, so more time never gives up one, except for a more pressing
one that did not fit before.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from math import inf, sqrt
from statistics import median
from typing import NamedTuple

from csit_utils.analysis.cells import CellMetric, when
from csit_utils.analysis.comparisons.comparison import CONFIDENCE, DIFFERENT, FEWEST_CELLS, CellSide, compare, side
from csit_utils.analysis.runs import instant
from csit_utils.analysis.trends.steps import MIN_RUNS
from csit_utils.analysis.trends.trend import FEWEST, Trend, trends
from csit_utils.dataset.ledger import NONE, Acknowledged
from csit_utils.dataset.rows import UNBOUNDED, TestRow
from resources.libraries.python import special_functions

MAX_REPEATS = 10
"""Of a test in one night."""
_UNKNOWN = 1.0
"""Half-width of the interval of a level that one figure alone does not give, for the score."""
_LATEST = 5
"""Measurements whose median is the duration of a test."""
_DAY_S = 86400.0


_quantile = cache(lambda freedom: float(special_functions.stdtrit(freedom, (1 + CONFIDENCE) / 2)))


class NightReason(StrEnum):
    """Why a test is measured, most pressing first."""

    SUSPECTED = "suspected"
    UNSEEN = "unseen"
    UNCERTAIN = "uncertain"


class NightKey(NamedTuple):
    """Identity of a test in results of several nights on one testbed."""

    suite: str
    """Robot's name of its suite, such as `Csc-Ndrpdr`."""
    name: str
    profile: str
    """Search profile; empty for other studies than density."""


def key_of(row: TestRow) -> NightKey:
    """Return the identity of a test; the suites above its own differ by how Robot was called."""
    suite = row.test_id.removesuffix(f".{row.test_name}").rpartition(".")[2]
    return NightKey(suite, row.test_name, row.profile or "")


@dataclass(frozen=True)
class NightTest:
    """A test that can be measured."""

    key: NightKey
    title: str
    """The cell, or the study and its test."""
    name: str
    """Robot's full name."""
    seconds: float | None
    """Expected duration by its preview; None without one."""
    refusal: str = ""
    """Why it cannot be measured here."""


@dataclass(frozen=True)
class StoredEvidence:
    """Evidence of stored results for a test."""

    last_seen: datetime | None = None
    """Start of the newest test that passed."""
    seconds: float | None = None
    """Median duration of the last ones that passed."""
    metric: str = ""
    """The least certain metric; empty if none of its figures are followed over time."""
    count: int = 0
    """Its figures at the present level."""
    spread: float | None = None
    """Relative standard deviation of its figures; None if it cannot be estimated."""
    freedom: int | None = None
    """Degrees of freedom of a spread that comes from other cells; None if it is that of the own figures."""
    suspected: float | None = None
    """Relative change of the newest figures."""
    suspect: str = ""
    """Metric of this change."""
    missing: int = 0
    """Figures that this change lacks for a step."""

    def half_width(self, further: int = 0) -> float | None:
        """Return half of the width of the 95 % interval of the level after further figures, relative; None: unknown."""
        count = self.count + further
        freedom = count - 1 if self.freedom is None else self.freedom
        if self.spread is None or not count or freedom < 1:
            return None
        return _quantile(freedom) * self.spread / sqrt(count)


NightRun = tuple[int, bool, int]
"""Robot run in which every test occurs once: rank of its reason, whether of other studies, number of the repetition."""


class Measurement(NamedTuple):
    """One measurement of a test that something would be learned from."""

    test: NightTest
    reason: NightReason
    repeat: int
    """Number of the measurement of this test in the night, from 1."""
    score: float
    """See the module; comparable within a reason."""

    @property
    def run(self) -> NightRun:
        """The run that it belongs to."""
        return list(NightReason).index(self.reason), not self.test.key.profile, self.repeat

    @property
    def urgency(self) -> tuple[int, float, float, NightKey, int]:
        """Place in the order in which measurements are taken into a plan."""
        return self.run[0], -self.score, self.test.seconds or 0.0, self.test.key, self.repeat


@dataclass
class TestDecision:
    """What is decided of a test."""

    test: NightTest
    evidence: StoredEvidence
    wanted: tuple[Measurement, ...]
    """None: it cannot be measured, or nothing is open."""
    planned: int = 0
    """Number of wanted measurements that fit into the night, from the first."""


class NightPlan(NamedTuple):
    """Decisions on all tests, most pressing first, and the runs of a night in their order."""

    decisions: Sequence[TestDecision]
    runs: Mapping[NightRun, Sequence[Measurement]]
    seconds: float
    """Expected duration of everything."""


def plan_night(
    tests: Sequence[NightTest],
    known: Mapping[NightKey, StoredEvidence],
    budget_s: float,
    now: datetime,
    *,
    within: float = 0.02,
    unseen_days: float = 7.0,
    opening_s: float = 0.0,
) -> NightPlan:
    """Choose the measurements of a night that begins now; they take at most the budget, which may be infinite.

    `known`: a test that is missing was never measured.
    `within`: half-width of the 95 % interval at which a level is settled, relative.
    `unseen_days`: a test that has not passed for so long is unseen.
    `opening_s`: time to open the testbed for each run.
    """
    decisions, runs, spent_s = [], defaultdict[NightRun, list[Measurement]](list), 0.0
    for test in tests:
        found = known.get(test.key, StoredEvidence())
        timed = replace(test, seconds=found.seconds or test.seconds)
        days = inf if found.last_seen is None else (now - found.last_seen).total_seconds() / _DAY_S
        wanted = () if test.refusal else tuple(_wanted(timed, found, days if days >= unseen_days else None, within))
        decisions.append(TestDecision(timed, found, wanted))
    offers = [(each, own) for own in decisions for each in own.wanted if each.test.seconds is not None]
    for each, own in sorted(offers, key=lambda offer: offer[0].urgency):
        price_s = (each.test.seconds or 0.0) + (0.0 if each.run in runs else opening_s)
        if own.planned == each.repeat - 1 and spent_s + price_s <= budget_s:
            own.planned += 1
            runs[each.run].append(each)
            spent_s += price_s
    decisions.sort(key=lambda each: (not each.planned, not each.wanted, [one.urgency for one in each.wanted[:1]]))
    return NightPlan(decisions, dict(sorted(runs.items())), spent_s)


def _wanted(test: NightTest, known: StoredEvidence, unseen_days: float | None, within: float) -> Iterator[Measurement]:
    """Yield what would be learned of; `unseen_days`: None for a test that passed lately."""
    if known.suspected is not None:
        for repeat in range(1, known.missing + 1):
            yield Measurement(test, NightReason.SUSPECTED, repeat, abs(known.suspected))
        return
    repeat, score = 0, inf
    if unseen_days is not None:
        repeat = 1
        yield Measurement(test, NightReason.UNSEEN, repeat, unseen_days)
    while repeat < MAX_REPEATS and (known.metric or known.last_seen is None):
        before, after = known.half_width(repeat), known.half_width(repeat + 1)
        if (before is not None and before <= within) or (before is None and known.count + repeat > 1):
            return
        repeat += 1
        fewer = (_UNKNOWN if before is None else min(before, _UNKNOWN)) - min(after or 0.0, _UNKNOWN)
        score = min(score, max(fewer, 0.0) / max((test.seconds or 1.0) / 3600, 1e-9))  # never above its predecessor's
        yield Measurement(test, NightReason.UNCERTAIN, repeat, score)


def known_tests(rows: Sequence[TestRow], acknowledged: Acknowledged = NONE) -> dict[NightKey, StoredEvidence]:
    """Return what stored results of one testbed say of each test that has passed."""
    passed = defaultdict[NightKey, list[TestRow]](list)
    for row in sorted(rows, key=when):
        if row.status == "PASS":
            passed[key_of(row)].append(row)
    newest: dict[tuple[object, ...], Trend] = {}
    for trend in sorted(trends(rows), key=lambda each: each.figures[-1].at, reverse=True):
        cell = trend.cell
        if cell.metric not in UNBOUNDED:  # one that is often 0 would look the least certain of all
            # What a study measures in several places is apart; where drivers changed, only the present ones count.
            place = key_of(trend.figures[-1].row), cell.metric, cell.series.service_type, cell.dimensions
            newest.setdefault(place, trend)
    levels = [
        (each, side(each.cell, each.figures[each.steps[-1].index if each.steps else 0 :])) for each in newest.values()
    ]
    pooled = defaultdict[str, list[float]](list)
    for trend, level in levels:
        if level.runs > 1 and level.mean_pps > 0:
            pooled[trend.cell.metric].append(_spread(level))
    last = {id(own[-1]): own[-1] for own in passed.values()}
    earlier = [row for row in rows if id(row) not in last]
    compared = compare(earlier, [*last.values()], acknowledged=acknowledged).of(*DIFFERENT)
    changes = {CellMetric(each.b.series, each.dimensions, each.metric): each.change for each in compared}
    known = defaultdict[NightKey, list[StoredEvidence]](list)
    for trend, level in levels:
        spread, freedom = _spread(level) if level.mean_pps > 0 else None, None
        if level.runs == 1:
            others = pooled[trend.cell.metric]
            enough = len(others) >= FEWEST_CELLS
            spread, freedom = (max(median(others), spread or 0.0), len(others) - 1) if enough else (None, None)
        change = trend.suspected if len(trend.figures) >= FEWEST else changes.get(trend.cell)
        metric, missing = str(trend.cell.metric), 0 if change is None else MIN_RUNS - (trend.fresh or 1)
        own = StoredEvidence(None, None, metric, level.runs, spread, freedom, change, metric, missing)
        known[key_of(trend.figures[-1].row)].append(own)
    return {key: _joined(known[key], own) for key, own in passed.items()}


def _spread(level: CellSide) -> float:
    """Standard deviation relative to the mean, at least the resolution."""
    return max(level.stdev_pps or 0.0, level.resolution_pps) / level.mean_pps


def _joined(metrics: Sequence[StoredEvidence], passed: Sequence[TestRow]) -> StoredEvidence:
    """The least certain of all metrics, with the largest suspected change."""
    none = StoredEvidence()
    wide = max(metrics, key=lambda each: inf if (width := each.half_width()) is None else width, default=none)
    change = max(metrics, key=lambda each: abs(each.suspected or 0.0), default=none)
    times = [(instant(row.started_at), instant(row.finished_at)) for row in passed]
    took_s = [(ended - began).total_seconds() for began, ended in times if began and ended]
    return replace(
        wide,
        last_seen=when(passed[-1]),
        seconds=median(took_s[-_LATEST:]) if took_s else None,
        suspected=change.suspected,
        suspect=change.suspect,
        missing=change.missing,
    )
