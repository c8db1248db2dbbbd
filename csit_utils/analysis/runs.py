"""Runs of testbeds over time, and groups of runs for comparisons; which of a dataset a command reads.

Those are chosen by what imports say of their parts, before any table is opened.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import cached_property

from csit_utils.dataset.rows import OWN, TestRow
from csit_utils.dataset.store.layout import Import, StoredPart

_NOON = timedelta(hours=12)
UNDATED = datetime.min.replace(tzinfo=UTC) + _NOON
"""Time of what has none: the first one that belongs to a night."""


@dataclass(frozen=True, order=True)
class TestbedKey:
    """Key of comparable runs: separates simulated from measured results, and tools from each other."""

    __test__ = False  # not a pytest class

    name: str
    simulated: bool = False
    world: str = ""
    origin: str = OWN


@dataclass(frozen=True)
class Run:
    """All tests of one execution on one testbed."""

    testbed: TestbedKey
    name: str
    """Unique display name: testbed, and its label or date."""
    label: str | None
    started_at: datetime | None
    """Start of its first test, UTC."""
    versions: tuple[str, ...]
    """Versions of the software under test; several if tests differ."""
    revisions: tuple[str, ...]
    environments: tuple[str, ...]
    """Digests of environments."""
    rows: Sequence[TestRow] = field(repr=False, compare=False)

    @cached_property
    def tests(self) -> Set[Hashable]:
        """Identities of its tests, which are the same in all runs."""
        return frozenset(map(_kind, self.rows))

    @property
    def simulated(self) -> bool:
        """Whether its results come from a model."""
        return self.testbed.simulated


class SideKind(StrEnum):
    """Kinds of sides of a comparison."""

    RUN = "run"
    BEFORE = "runs before"
    LABEL = "label"
    VERSION = "version"
    TESTBED = "testbed"


@dataclass(frozen=True)
class ComparisonSide:
    """Runs that form one side of a comparison."""

    kind: SideKind
    name: str
    runs: tuple[Run, ...]


class History:
    """All runs of all testbeds, oldest first."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs: tuple[Run, ...] = tuple(sorted(runs, key=_when))

    @cached_property
    def testbeds(self) -> tuple[TestbedKey, ...]:
        """Measured testbeds first, then by name."""
        return tuple(sorted({run.testbed for run in self.runs}, key=lambda one: (one.simulated, one)))

    def of(self, testbed: TestbedKey) -> tuple[Run, ...]:
        """Return the runs of a testbed, oldest first."""
        return tuple(run for run in self.runs if run.testbed == testbed)

    def latest(self, testbed: TestbedKey) -> Run:
        """Return the newest run of a testbed."""
        return self.of(testbed)[-1]

    def previous(self, testbed: TestbedKey) -> Run | None:
        """Return the last run before the newest that has one of its tests; None without one."""
        found = self.earlier(self.latest(testbed))
        return found[-1] if found else None

    def earlier(self, run: Run) -> tuple[Run, ...]:
        """Return the runs of its testbed before a run that have one of its tests, oldest first."""
        own = self.of(run.testbed)
        return tuple(each for each in own[: own.index(run)] if each.tests & run.tests)

    @cached_property
    def sides(self) -> tuple[ComparisonSide, ...]:
        """All sides of comparisons: testbeds, releases by label and by version, and runs, newest first.

        A label or version shared by all runs of a testbed is omitted: it is the same as the testbed.
        """
        return tuple(self._sides())

    def _sides(self) -> Iterator[ComparisonSide]:
        for testbed in self.testbeds:
            every = self.of(testbed)
            if len(every) > 1:
                yield ComparisonSide(SideKind.TESTBED, f"{called(testbed)}, all runs", every)
            labels = dict.fromkeys(run.label for run in reversed(every) if run.label)
            for label in labels:
                runs = tuple(run for run in every if run.label == label)
                if 1 < len(runs) < len(every):
                    yield ComparisonSide(SideKind.LABEL, f"{called(testbed)} {label}, all runs", runs)
            versions = dict.fromkeys(version for run in reversed(every) for version in run.versions)
            for version in versions:
                runs = tuple(run for run in every if run.versions == (version,))
                if 1 < len(runs) < len(every):
                    yield ComparisonSide(SideKind.VERSION, f"{called(testbed)} {version}, all runs", runs)
            yield from (ComparisonSide(SideKind.RUN, run.name, (run,)) for run in reversed(every))


def history(rows: Iterable[TestRow]) -> History:
    """Group tests into runs.

    Args:
        rows: All tests. A test without a record belongs to the testbed of the others of its run; it is omitted if
            they have several testbeds or none.
    """
    grouped: dict[str, list[TestRow]] = {}
    for row in rows:
        grouped.setdefault(row.run, []).append(row)
    parts = [part for run in grouped.values() for part in _by_testbed(run)]
    days = Counter((testbed, row_label(own) or _day(own)) for testbed, own in parts)
    return History(_run(testbed, own, days) for testbed, own in parts)


def called(testbed: TestbedKey) -> str:
    """Return the name of a testbed, with the tool if it is not this one."""
    return testbed.name if testbed.origin == OWN else f"{testbed.name} ({testbed.origin})"


def row_label(rows: Sequence[TestRow]) -> str | None:
    """Return the label of a run."""
    return next((row.label for row in rows if row.label), None)


def instant(stamp: str | None) -> datetime | None:
    """Return an ISO 8601 time in UTC, the default zone; None if it is invalid."""
    try:
        found = datetime.fromisoformat(stamp or "")
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):  # of year 1 in another zone
        return None


def night_of(at: datetime) -> date:
    """Return the date of the night of a time: what is before noon belongs to the night before."""
    return (max(at, UNDATED) - _NOON).date()


def _by_testbed(rows: Sequence[TestRow]) -> Iterator[tuple[TestbedKey, list[TestRow]]]:
    found: dict[TestbedKey, list[TestRow]] = {}
    for row in rows:
        if row.testbed is not None:
            testbed = TestbedKey(row.testbed, bool(row.simulated), row.world or "", row.origin)
            found.setdefault(testbed, []).append(row)
    if len(found) == 1:
        found[next(iter(found))] = list(rows)
    yield from found.items()


def _run(testbed: TestbedKey, rows: Sequence[TestRow], days: Counter[tuple[TestbedKey, str]]) -> Run:
    label, day, begun = row_label(rows), _day(rows), _begun(rows)
    name = f"{called(testbed)} {label or day}"
    if days[testbed, label or day] > 1:
        name += f"{f' {day}' if label else ''} {begun:%H:%M:%S}" if begun else f" {rows[0].run}"
    return Run(
        testbed,
        name,
        label,
        begun,
        tuple(dict.fromkeys(row.version for row in rows if row.version)),
        tuple(dict.fromkeys(row.revision for row in rows if row.revision)),
        tuple(dict.fromkeys(row.environment for row in rows if row.environment)),
        rows,
    )


def _begun(rows: Sequence[TestRow]) -> datetime | None:
    return min((found for row in rows if (found := instant(row.started_at))), default=None)


def _day(rows: Sequence[TestRow]) -> str:
    begun = _begun(rows)
    return f"{begun:%Y-%m-%d}" if begun else "undated"


def _when(run: Run) -> tuple[bool, datetime, str]:
    return (run.started_at is not None, run.started_at or datetime.min.replace(tzinfo=UTC), run.name)


def latest_runs(history: History) -> tuple[Run, ...]:
    """Return the newest run of each testbed, and older runs without a test of a newer one.

    So suites that ran one after the other in a night are combined, and each night replaces the previous one: a test
    missing in the newest run is shown as not run, not with a figure of an earlier night.

    Returns:
        Oldest first.
    """
    chosen: list[Run] = []
    for testbed in history.testbeds:
        covered: set[Hashable] = set()
        for run in reversed(history.of(testbed)):
            if not covered & run.tests:
                covered |= run.tests
                chosen.append(run)
    names = {run.name for run in chosen}
    return tuple(run for run in history.runs if run.name in names)


def _kind(row: TestRow) -> Hashable:
    """Identity of a test across runs, also without a record."""
    frame = (row.frame or "").split(" ", 1)[0].upper()
    sizes = (row.nf_size, row.vs_dtc) if row.recorded else row.test_id
    return (row.test_type, row.service_type, row.dimensions, sizes, frame, row.profile, row.drivers)


def rows_of(runs: Iterable[Run], history: History, rows: Sequence[TestRow]) -> Sequence[TestRow]:
    """Return the tests of some runs in their order, and tests of an unknown testbed."""
    chosen = {row.anchor for run in runs for row in run.rows}
    placed = {row.anchor for run in history.runs for row in run.rows}
    return [row for row in rows if row.anchor in chosen or row.anchor not in placed]


def runs_before(candidate: Sequence[TestRow], known: Sequence[TestRow], count: int) -> list[TestRow]:
    """Return tests of the last runs on the candidate's testbeds before the candidate.

    `candidate`: tests to judge; they may be among `known`.

    Returns:
        Oldest run first; empty without earlier runs, or if start times are unknown.
    """
    past = history(known)
    begun: dict[TestbedKey, datetime] = {}
    for run in history(candidate).runs:  # oldest first
        if run.started_at is not None:
            begun.setdefault(run.testbed, run.started_at)
    earlier = [
        [run for run in past.of(testbed) if run.started_at is not None and run.started_at < start][-count:]
        for testbed, start in begun.items()
    ]
    return [row for runs in earlier for run in runs for row in run.rows]


_Parts = Sequence[tuple[Import, StoredPart]]


@dataclass(frozen=True)
class ChosenRuns:
    """Parts of imports to read."""

    parts: _Parts
    """In the order of imports."""
    runs: int
    all_runs: int
    """Runs that were asked for."""
    all_tests: int

    @property
    def tests(self) -> int:
        """Tests to read."""
        return sum(part.tests for _, part in self.parts)


Choice = Callable[[Sequence[Import]], ChosenRuns]
"""Chooses among all imports of a dataset."""


def newest(
    imports: Sequence[Import],
    max_tests: int | None = None,
    wanted: Callable[[Import, StoredPart], bool] = lambda _import, _part: True,
) -> ChosenRuns:
    """Choose the newest runs of each testbed.

    `max_tests`: number of tests at which older runs are left out; the newest run of each testbed is always read.
    `wanted`: whether a part may have a test that is asked for.
    """
    runs = _runs((each, part) for each in imports for part in each.parts if wanted(each, part))
    count: Counter[str | None] = Counter()
    places: dict[str, int] = {}
    for name in _newest_first(runs):
        testbeds = _testbeds(runs[name])
        places[name] = min(count[testbed] for testbed in testbeds)
        count.update(testbeds)
    chosen: list[str] = []
    seen: set[str] = set()
    tests = 0
    for name in sorted(places, key=places.__getitem__):  # stable: newest first
        tests += sum(part.tests for _, part in runs[name] if part.path not in seen)
        if max_tests is not None and places[name] > 0 and tests > max_tests:
            break
        seen.update(part.path for _, part in runs[name])
        chosen.append(name)
    return _chosen(imports, runs, chosen)


def newest_nights(imports: Sequence[Import]) -> ChosenRuns:
    """Choose the runs of the newest night of each testbed that has a test in the matrix; a night ends at noon."""
    runs = _runs((each, part) for each in imports for part in each.parts if part.values.service_type != ())
    nights: dict[str | None, date] = {}
    chosen = []
    for name in _newest_first(runs):
        night = night_of(_parts_begun(runs[name]))
        if night in [nights.setdefault(testbed, night) for testbed in _testbeds(runs[name])]:
            chosen.append(name)
    return _chosen(imports, runs, chosen)


def last_before(
    imports: Sequence[Import], starts: Mapping[str, datetime], others: Collection[str], count: int
) -> ChosenRuns:
    """Choose the last runs before others on their testbeds.

    `starts`: start of these others by testbed.
    `others`: names of these others.
    """
    chosen: dict[str, None] = {}
    runs: dict[str, list[tuple[Import, StoredPart]]] = {}
    for testbed, start in starts.items():
        own = _runs((each, part) for each in imports for part in each.parts if part.testbed in (testbed, None))
        earlier = {
            name: parts
            for name, parts in own.items()
            if _parts_begun(parts) < start and name not in others and testbed in _testbeds(parts)
        }
        chosen |= dict.fromkeys(_newest_first(earlier)[:count])
        for name, parts in earlier.items():
            runs.setdefault(name, []).extend(parts)
    return _chosen(imports, {name: runs[name] for name in chosen}, chosen)


def _runs(parts: Iterable[tuple[Import, StoredPart]]) -> dict[str, list[tuple[Import, StoredPart]]]:
    """Group parts by run. One of another tool may have several runs; one with too many to list counts as one."""
    found: dict[str, list[tuple[Import, StoredPart]]] = defaultdict(list)
    for each, part in parts:
        for name in part.values.run or (each.run,):
            found[name].append((each, part))
    return found


def _testbeds(parts: _Parts) -> Collection[str | None]:
    """Testbeds of a run. A test without a record has none, and belongs to that of its run."""
    return {part.testbed for _, part in parts if part.testbed is not None} or {None}


def _newest_first(runs: Mapping[str, _Parts]) -> list[str]:
    return sorted(runs, key=lambda name: _parts_begun(runs[name]), reverse=True)


def _parts_begun(parts: _Parts) -> datetime:
    return min((at for _, part in parts if (at := instant(part.begun)) is not None), default=UNDATED)


def _chosen(imports: Sequence[Import], runs: Mapping[str, _Parts], names: Collection[str]) -> ChosenRuns:
    every, wanted = ({part.path: part.tests for name in some for _, part in runs[name]} for some in (runs, names))
    parts = [(each, part) for each in imports for part in each.parts if part.path in wanted]
    return ChosenRuns(parts, len(names), len(runs), sum(every.values()))
