"""Choice of the tests of a night with a time limit, by what stored results leave open.

Three reasons to measure a test, in this order:

- **suspected**: its newest figures differ from the earlier ones, and are too few for a confirmed step. `trend` says so
  for cells with enough figures, `compare` of the newest figure with all others for the rest. As many repetitions as a
  step lacks (`trends.steps.MIN_RUNS`). Score: relative size of the change.
- **unseen**: never measured, or not for some days. Once. Score: days since the last figure.
- **uncertain**: the 95 % interval of its present level, as `compare` computes it for several runs (Student's t of the
  standard deviation, at least the resolution), is wider than wanted. Repeated until it is expected to be narrow enough.
  Score: expected decrease of the interval's half-width per hour.

Lines are taken by reason and score while they fit, so more time never gives up a line, except for a more pressing one
that did not fit before.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from math import inf, sqrt
from operator import itemgetter
from statistics import median

from csit_utils.analysis.cells import CellMetric, when
from csit_utils.analysis.comparisons.comparison import CONFIDENCE, DIFFERENT, FEWEST_CELLS, compare, side
from csit_utils.analysis.trends.steps import MIN_RUNS
from csit_utils.analysis.trends.trend import FEWEST, Trend, trends
from csit_utils.dataset.ledger import NONE, Acknowledged
from csit_utils.dataset.rows import UNBOUNDED, TestRow
from resources.libraries.python import special_functions
from resources.libraries.python.model.request.cell import Dimensions

MAX_REPEATS = 10
"""Of a test in one night."""
UNKNOWN = 1.0
"""Half-width of the interval of a level that one figure alone does not give, for the score."""
_DAY_S = 86400.0


class NightReason(StrEnum):
    """Why a test is measured, most pressing first."""

    SUSPECTED = "suspected"
    UNSEEN = "unseen"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, order=True)
class NightKey:
    """Identity of a test in results of several nights on one testbed."""

    suite: str
    """Suite of the density matrix, such as `csc-ndrpdr`, or the folder of another study."""
    name: str
    """Robot's name of the test."""
    profile: str = ""
    """Search profile; empty for other studies."""


@dataclass(frozen=True)
class NightTest:
    """A test that can be measured."""

    key: NightKey
    title: str
    """The cell, or the study and its test."""
    name: str
    """Robot's full name."""
    seconds: float | None
    """Expected duration; None if it is not known."""
    why_not: str | None = None
    """Why it cannot be measured here."""
    study: bool = False
    """Whether it belongs to another study than the density matrix."""
    tried: bool = False
    """Whether it was measured in this night already, so that it is not unseen whatever its results are."""


@dataclass(frozen=True)
class StoredEvidence:
    """Evidence of stored results for a test."""

    last_seen: datetime | None = None
    """Start of the newest test with a figure."""
    metric: str = ""
    """The least certain metric."""
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

    def half_width(self, count: int) -> float | None:
        """Return half of the width of the 95 % interval of the level after so many figures, relative; None: unknown."""
        freedom = count - 1 if self.freedom is None else self.freedom
        if self.spread is None or not count or freedom < 1:
            return None
        return _quantile(freedom) * self.spread / sqrt(count)


@cache
def _quantile(freedom: int) -> float:
    return float(special_functions.stdtrit(freedom, (1 + CONFIDENCE) / 2))


@dataclass(frozen=True)
class NightLine:
    """One measurement of a test."""

    test: NightTest
    known: StoredEvidence
    reason: NightReason
    repeat: int
    """Number of the measurement of this test in the night, from 1."""
    score: float
    """See the module; comparable within a reason."""
    before: float | None = None
    """Half-width of the interval before it, for `UNCERTAIN`; None: unknown."""
    after: float | None = None

    @property
    def seconds(self) -> float:
        """Expected duration."""
        return self.test.seconds or 0.0

    @property
    def run(self) -> tuple[NightReason, int, str]:
        """Lines of one Robot run, in which every test occurs once."""
        return self.reason, self.repeat, self.test.title if self.test.study else ""


class Omission(StrEnum):
    """Why a test is not, or not as often as wanted, in a plan."""

    UNFIT = "unfit"
    """The testbed cannot run it."""
    NO_DURATION = "no duration"
    SETTLED = "settled"
    """Nothing is open."""
    NO_TIME = "no time"


@dataclass(frozen=True)
class OmittedTest:
    """A test that is not measured, or less often than wanted."""

    test: NightTest
    known: StoredEvidence
    why: Omission
    wanted: int = 0
    planned: int = 0
    """Measurements."""


@dataclass(frozen=True)
class NightRules:
    """Criteria of a settled test."""

    within: float = 0.02
    """Half-width of the 95 % interval at which a level is settled, relative."""
    unseen_days: float = 7.0
    """A test without a figure for so long is unseen."""
    opening_s: float = 0.0
    """Time to open the testbed for each run."""


@dataclass(frozen=True)
class NightPlan:
    """The lines of a night in their order, and what is left out."""

    lines: tuple[NightLine, ...]
    left_out: tuple[OmittedTest, ...]
    budget_s: float
    opening_s: float = 0.0
    """Sum over all runs."""
    runs: Mapping[tuple[NightReason, int, str], tuple[NightLine, ...]] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Expected duration of everything."""
        return sum(line.seconds for line in self.lines) + self.opening_s


def plan_night(
    tests: Sequence[NightTest],
    known: Mapping[NightKey, StoredEvidence],
    budget_s: float,
    now: datetime,
    rules: NightRules,
) -> NightPlan:
    """Choose the measurements of a night that begins now.

    A test that is missing in `known` was never measured. The expected duration of the plan is at most the budget, which
    may be infinite. Each test is in its lines, or left out with the reason.
    """
    wanted = {test: list(_wanted(test, known.get(test.key, StoredEvidence()), now, rules)) for test in tests}
    planned: dict[NightTest, list[NightLine]] = defaultdict(list)
    opened: set[tuple[object, ...]] = set()
    spent_s = 0.0
    affordable = (line for test, lines in wanted.items() if test.seconds is not None for line in lines)
    for line in sorted(affordable, key=_urgency):
        price_s = line.seconds + (0.0 if line.run in opened else rules.opening_s)
        if len(planned[line.test]) == line.repeat - 1 and spent_s + price_s <= budget_s:
            planned[line.test].append(line)
            opened.add(line.run)
            spent_s += price_s
    omitted = tuple(
        OmittedTest(test, known.get(test.key, StoredEvidence()), why, len(lines), len(planned[test]))
        for test, lines in wanted.items()
        if (why := _omission(test, len(lines), len(planned[test]))) is not None
    )
    runs: dict[tuple[NightReason, int, str], list[NightLine]] = defaultdict(list)
    for line in _in_order([line for own in planned.values() for line in own]):
        runs[line.run].append(line)
    return NightPlan(
        tuple(line for own in runs.values() for line in own),
        omitted,
        budget_s,
        rules.opening_s * len(opened),
        {run: tuple(own) for run, own in runs.items()},
    )


def _omission(test: NightTest, wanted: int, planned: int) -> Omission | None:
    if test.why_not is not None:
        return Omission.UNFIT
    if not wanted:
        return Omission.SETTLED
    if test.seconds is None:
        return Omission.NO_DURATION
    return Omission.NO_TIME if planned < wanted else None


def _in_order(lines: Iterable[NightLine]) -> list[NightLine]:
    """Return lines in the order in which they are measured: by reason and run, together those of one suite."""
    first: dict[object, int] = {}
    for place, line in enumerate(urgent := sorted(lines, key=_urgency)):
        first.setdefault((line.run, line.test.key.suite), place)

    def place_of(line: NightLine) -> tuple[object, ...]:
        return _rank(line), line.test.study, line.repeat, first[line.run, line.test.key.suite]

    return sorted(urgent, key=place_of)


def _rank(line: NightLine) -> int:
    return list(NightReason).index(line.reason)


def _urgency(line: NightLine) -> tuple[int, float, float, NightKey, int]:
    return _rank(line), -line.score, line.seconds, line.test.key, line.repeat


def _wanted(test: NightTest, known: StoredEvidence, now: datetime, rules: NightRules) -> Iterator[NightLine]:
    """Measurements of a test that something would be learned from."""
    if test.why_not is not None:
        return
    if known.suspected is not None:
        for repeat in range(1, known.missing + 1):
            yield NightLine(test, known, NightReason.SUSPECTED, repeat, abs(known.suspected))
        return
    days = inf if known.last_seen is None else (now - known.last_seen).total_seconds() / _DAY_S
    repeat = 0
    if days >= rules.unseen_days and not test.tried:
        repeat = 1
        yield NightLine(test, known, NightReason.UNSEEN, repeat, days)
    score = inf
    while repeat < MAX_REPEATS:
        count = known.count + repeat
        before, after = known.half_width(count), known.half_width(count + 1)
        if (before is not None and before <= rules.within) or (before is None and count > 1):
            return
        repeat += 1
        fewer = (UNKNOWN if before is None else min(before, UNKNOWN)) - min(after or 0.0, UNKNOWN)
        score = min(score, max(fewer, 0.0) / max((test.seconds or 1.0) / 3600, 1e-9))  # never above its predecessor's
        yield NightLine(test, known, NightReason.UNCERTAIN, repeat, score, before, after)


_Place = tuple[NightKey, str, tuple[str, Dimensions]]
"""A metric of a test where it is measured: the service and its size."""


def known_tests(
    rows: Iterable[tuple[NightKey, TestRow]], acknowledged: Acknowledged = NONE
) -> dict[NightKey, StoredEvidence]:
    """Return what stored results of one testbed say of each test.

    `rows`: tests of all nights, with the identity of each.
    """
    pairs = list(rows)
    keys = {id(row): key for key, row in pairs}
    newest: dict[_Place, Trend] = {}
    for trend in trends([row for _, row in pairs]):
        if trend.cell.metric in UNBOUNDED:
            continue  # one that is often 0 would look the least certain of all
        # What a study measures in several places is apart; where drivers changed, only the present ones count.
        where = trend.cell.series.service_type, trend.cell.dimensions
        place = keys[id(trend.figures[-1].row)], str(trend.cell.metric), where
        if place not in newest or trend.figures[-1].at > newest[place].figures[-1].at:
            newest[place] = trend
    called = _called(pairs, acknowledged)
    spreads = {place: _spread(trend) for place, trend in newest.items()}
    pooled: dict[str, list[float]] = defaultdict(list)
    for (_, metric, _), (count, spread) in spreads.items():
        if spread is not None and count > 1:
            pooled[metric].append(spread)
    found: dict[NightKey, StoredEvidence] = {}
    for place, trend in newest.items():
        (key, metric, _), (count, spread) = place, spreads[place]
        about = StoredEvidence(trend.figures[-1].at, metric, count, spread)
        others = pooled[metric]
        if count == 1 and len(others) >= FEWEST_CELLS:
            about = replace(about, spread=max(median(others), spread or 0.0), freedom=len(others) - 1)
        elif count == 1:
            about = replace(about, spread=None)
        change = trend.suspected if len(trend.figures) >= FEWEST else called.get(trend.cell)
        if change is not None:
            missing = MIN_RUNS - (trend.fresh or 1)
            about = replace(about, suspected=change, suspect=metric, missing=missing)
        found[key] = about if key not in found else _worse(found[key], about)
    return found


def _worse(one: StoredEvidence, other: StoredEvidence) -> StoredEvidence:
    """The least certain of two metrics, with the larger suspected change of both."""
    wide = max(one, other, key=_width)
    change = max(one, other, key=lambda each: abs(each.suspected or 0.0))
    seen = [each.last_seen for each in (one, other) if each.last_seen is not None]
    return replace(
        wide, last_seen=max(seen), suspected=change.suspected, suspect=change.suspect, missing=change.missing
    )


def _width(known: StoredEvidence) -> float:
    width = known.half_width(known.count)
    return inf if width is None else width


def _spread(trend: Trend) -> tuple[int, float | None]:
    """Number of figures at the present level, and their relative standard deviation, at least the resolution."""
    own = trend.figures[trend.steps[-1].index if trend.steps else 0 :]
    now = side(trend.cell, own)
    if now.mean_pps <= 0:
        return len(own), None
    return len(own), max(now.stdev_pps or 0.0, now.resolution_pps) / now.mean_pps


def _called(pairs: Sequence[tuple[NightKey, TestRow]], acknowledged: Acknowledged) -> dict[CellMetric, float]:
    """Changes of the newest figure of each test against all others that `compare` calls significant."""
    last: dict[NightKey, TestRow] = {}
    for key, row in pairs:
        if row.status == "PASS" and (key not in last or when(row) > when(last[key])):
            last[key] = row
    after = {id(row) for row in last.values()}
    earlier = [row for _, row in pairs if id(row) not in after]
    found = compare(earlier, list(last.values()), acknowledged=acknowledged)
    return {
        CellMetric(change.b.series, change.dimensions, change.metric): change.change for change in found.of(*DIFFERENT)
    }


_LATEST = 5


def durations(rows: Iterable[tuple[NightKey, TestRow]]) -> dict[NightKey, float]:
    """Return the duration of each test, in seconds: the median of its last five that passed."""
    took: dict[NightKey, list[tuple[datetime, float]]] = defaultdict(list)
    for key, row in rows:
        if row.status == "PASS" and row.started_at and row.finished_at:
            began, ended = datetime.fromisoformat(row.started_at), datetime.fromisoformat(row.finished_at)
            took[key].append((when(row), (ended - began).total_seconds()))
    return {key: median(value for _, value in sorted(own, key=itemgetter(0))[-_LATEST:]) for key, own in took.items()}
