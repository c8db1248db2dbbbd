"""Runs of a dataset that a command reads, chosen by what imports say of their parts, before any table is opened."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from csit_utils.analysis.runs import UNDATED, instant, night_of
from csit_utils.dataset.store.layout import Import, StoredPart

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
        night = night_of(_begun(runs[name]))
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
            if _begun(parts) < start and name not in others and testbed in _testbeds(parts)
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
    return sorted(runs, key=lambda name: _begun(runs[name]), reverse=True)


def _begun(parts: _Parts) -> datetime:
    return min((at for _, part in parts if (at := instant(part.begun)) is not None), default=UNDATED)


def _chosen(imports: Sequence[Import], runs: Mapping[str, _Parts], names: Collection[str]) -> ChosenRuns:
    every, wanted = ({part.path: part.tests for name in some for _, part in runs[name]} for some in (runs, names))
    parts = [(each, part) for each in imports for part in each.parts if part.path in wanted]
    return ChosenRuns(parts, len(names), len(runs), sum(every.values()))
