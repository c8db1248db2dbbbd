"""Selections of tests on a command line: files, or `KEY=VALUE` of tests in the folders of `--data`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self, TypeVar

import typer

from csit_utils.analysis.cells import when
from csit_utils.analysis.runs import Choice, history, last_before, newest, night_of, runs_before
from csit_utils.commands.results.inputs import OpenedInputs, opened, print_problems
from csit_utils.dataset.items import ReadError, Recorded
from csit_utils.dataset.ledger import Acknowledged, acknowledged_in
from csit_utils.dataset.reference import names, reference_items
from csit_utils.dataset.rows import MEASURES, TestRow
from csit_utils.dataset.store.layout import Import, StoredPart
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.model.result import Environment
from resources.libraries.python.studies.density.model import DensityRecord

if TYPE_CHECKING:
    from csit_utils.dataset.store.stored_contents import Stored

RANGE = ".."
_KEYS: Mapping[str, Callable[[TestRow], object]] = {
    "run": lambda row: row.run,
    "label": lambda row: row.label,
    "testbed": lambda row: row.testbed,
    "night": lambda row: night_of(when(row)) if row.started_at else None,
    "version": lambda row: row.version,
    "revision": lambda row: row.revision,
    "profile": lambda row: row.profile,
    "service": lambda row: row.service_type,
    "frame": lambda row: row.frame,
    "origin": lambda row: row.origin,
}
KEYS = tuple(_KEYS)
"""Keys of selections."""


@dataclass(frozen=True)
class SelectedTests:
    """A selection of tests."""

    text: str
    """The selection as given."""
    conditions: tuple[tuple[str, tuple[str, ...]], ...]
    """Keys with their accepted values."""

    def meets(self, row: TestRow) -> bool:
        """Whether a test is selected; an unknown property never matches."""
        return all(
            any(_matches(found, value) for value in values)
            for key, values in self.conditions
            for found in (_KEYS[key](row),)
        )

    def may_be_in(self, _import: Import, part: StoredPart) -> bool:
        """Whether a part of a dataset may have a selected test, by what its import says of it."""
        return all(
            known is None or any(_matches(found, value) for found in known for value in values)
            for key, values in self.conditions
            for known in (_values_in(part, key),)
        )

    def of(self, rows: Sequence[TestRow]) -> list[TestRow]:
        """Return the selected tests.

        Raises:
            ConfigError: No test is selected; the message lists existing values.
        """
        found = [row for row in rows if self.meets(row)]
        if not found:
            alone = (each for each in self.conditions if not any(SelectedTests("", (each,)).meets(row) for row in rows))
            key, _ = next(alone, self.conditions[0])
            raise ConfigError(f"{self.text}: matches no test; {_known(rows, key)}")
        return found


def _values_in(part: StoredPart, key: str) -> Collection[object] | None:
    """Values of a property in a part; None if it may have others."""
    if key == "testbed":
        return (part.testbed,)
    if key != "night":
        known: Collection[str] | None = getattr(part.values, "service_type" if key == "service" else key)
        return known
    with suppress(ValueError, OverflowError):
        # Its tests began on this day in their own time zone, some before noon.
        return [date.fromisoformat(part.night) + timedelta(days) for days in range(-2, 2)] if part.night else ()
    return None


def parse_chosen(text: str) -> SelectedTests:
    """Return a selection from comma-separated `key=value` pairs.

    Values are shell patterns, alternatives separated by `|`; `night=2026-11-01..2026-11-30` is a range.

    Raises:
        ConfigError: A key is unknown or has no value.
    """
    conditions = []
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if key not in _KEYS:
            close = get_close_matches(key, KEYS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"choose from {', '.join(KEYS)}"
            raise ConfigError(f"{text}: no file '{text}', and no key '{key}'; {hint}")
        if not equals or not value:
            raise ConfigError(f"{text}: say {key}=VALUE")
        values = tuple(value.split("|"))
        if key == "night":
            for each in values:
                _check_nights(text, each)
        conditions.append((key, values))
    return SelectedTests(text, tuple(conditions))


def _check_nights(text: str, value: str) -> None:
    for end in value.split(RANGE):
        try:
            date.fromisoformat(end)
        except ValueError as error:
            raise ConfigError(
                f"{text}: '{end}' is no date; expected night=2026-11-20 or 2026-11-01..2026-11-30"
            ) from error


def _matches(found: object, value: str) -> bool:
    if found is None:
        return False
    if isinstance(found, date):
        first, _, last = value.partition(RANGE)
        return date.fromisoformat(first) <= found <= date.fromisoformat(last or first)
    return fnmatchcase(str(found), value)


_SHOWN = 8


def _known(rows: Sequence[TestRow], key: str) -> str:
    values = sorted({str(found) for row in rows if (found := _KEYS[key](row)) is not None})
    if not values:
        return f"the {key} of all tests is unknown"
    few = values if len(values) <= _SHOWN else [*values[: _SHOWN // 2], "...", *values[-_SHOWN // 2 :]]
    return f"{key} is one of {', '.join(few)}"


RESULTS = Path("results")
_OF_EVERY_TEST = (
    "anchor", "test_id", "test_name", "source", "recorded", "status", "message", "tags", "origin", "run", "label",
    "started_at", "finished_at", "world", "simulated", "testbed", "drivers", "version", "revision", "environment",
    "profile", "goals", "test_type", "service_type", *Dimensions(1, 1).columns, "nf_size", "vs_dtc", "frame", "planned",
    "oversubscribed", "data_cores", "verdicts", "quarantined", "call_stacks",
)  # fmt: skip
COMPARED = (*_OF_EVERY_TEST, *(name for measure, column in MEASURES.items() for name in (column, *measure.columns)))
"""Columns of tests that trends and gates read of datasets, a third of all."""
DATA = Annotated[
    list[Path] | None,
    typer.Option("--data", help="File, folder or dataset that KEY=VALUE selects from.", show_default="results"),
]
SIDE_HELP = (
    f"Files or folders, a selection KEY=VALUE[,...] of --data, or published figures ({', '.join(names())}). "
    f"Keys: {', '.join(KEYS)}."
)

_Asked = TypeVar("_Asked")


def refuse_missing(paths: Sequence[Path] | None, option: str = "--data: ") -> None:
    """Refuse a path that does not exist: a name that is misspelt would be no results.

    Args:
        paths: As typed; None where nothing is.
        option: What the error begins with; empty for paths that are arguments.

    Raises:
        ConfigError: One does not exist.
    """
    for path in paths or ():
        if not path.exists():
            raise ConfigError(f"{option}{quoted(str(path))} does not exist")


MAX_COMPARED = 60_000
"""Tests of a dataset that are compared, or followed over time, unless more are asked for."""


class _Read(NamedTuple):
    contents: "Stored"
    choose: Choice


class DatasetReader:
    """Reads the selections of a command line; files once, and of datasets and large files only what is asked for.

    Used in a `with` statement, which prints problems of inputs where there is an error.

    Args:
        data: Files, folders and datasets that selections choose from; None for `results`, which need not exist.
        columns: Those of tests that are read of datasets; None for all of them.
        max_tests: Tests of a selection that are read of datasets, those of the newest runs.

    Raises:
        ConfigError: One that is named does not exist.
    """

    def __init__(
        self, data: Sequence[Path] | None, columns: Collection[str] | None = None, max_tests: int = MAX_COMPARED
    ) -> None:
        refuse_missing(data)
        self._columns = columns
        self._newest = partial(newest, max_tests=max_tests)
        self._data = tuple(data or (RESULTS,))
        self._opened: dict[tuple[Path, ...], OpenedInputs] = {}
        self._known: dict[tuple[tuple[Path, ...], str], _Read] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, ConfigError):
            self.report_problems()  # they may be why

    def rows(self, text: str) -> list[TestRow]:
        """Return the tests of a selection.

        Raises:
            ConfigError: The selection is invalid or empty.
        """
        path = Path(text)
        if path.exists():
            return self._tests((path,))
        if text in names():
            return [item.row for item in reference_items(text)]
        chosen = parse_chosen(text)
        self._check_data(text)
        found = self._tests(self._data, text, partial(self._newest, wanted=chosen.may_be_in))
        # Where no test is chosen, the error lists what others have.
        return [row for row in found if chosen.meets(row)] or chosen.of(self.whole())

    def before(self, text: str, after: Sequence[TestRow], count: int) -> list[TestRow]:
        """Return the tests of the last runs of `--data` on the testbeds of others before these, oldest run first.

        `text`: the words that ask for them, for the error.

        Raises:
            ConfigError: A file or folder of `--data` does not exist.
        """
        self._check_data(text)
        starts = {run.testbed.name: run.started_at for run in reversed(history(after).runs) if run.started_at}
        # Twice as many, since a run may be in two files, whose tests count once.
        choose = partial(last_before, starts=starts, others={row.run for row in after}, count=2 * count)
        return runs_before(after, self._tests(self._data, text, choose), count)

    def studies(self, text: str) -> Sequence[Recorded]:
        """Return the records of other studies than density of a file or folder.

        Raises:
            ConfigError: It does not exist or has no test.
        """
        path = Path(text)
        if not path.exists():
            raise ConfigError(f"{text} does not exist; name a file or folder with a chain study, or two sides A and B")
        return self._asked((path,), "", self._newest, lambda found: list(found.characterizations))

    def records(self) -> Sequence[Recorded]:
        """Return the records of other studies than density of `--data`, as `whole` does their figures."""
        return self._asked(self._data, "", self._newest, lambda found: list(found.characterizations))

    def whole(self) -> list[TestRow]:
        """Return all tests of `--data`, of large datasets those of the newest runs.

        Raises:
            ConfigError: It has none, or cannot be read.
        """
        return self._tests(self._data)

    def record(self, anchor: str) -> DensityRecord:
        """Return the record of a test that was read.

        Raises:
            KeyError: No such test, or it has no record.
        """
        for (paths, text), read in self._known.items():
            if any(row.anchor == anchor for row in read.contents.tests):
                return self._asked(paths, text, read.choose, lambda found: found.record(anchor))
        raise KeyError(anchor)

    def acknowledged(self) -> Acknowledged:
        """Return the acknowledged steps of all files, folders and datasets that were read.

        Raises:
            ConfigError: A ledger is invalid.
        """
        return acknowledged_in(dict.fromkeys(path for paths in self._opened for path in paths))

    @cached_property
    def environments(self) -> Mapping[str, Environment]:
        """Environments of the tests that were read, by digest."""
        return {digest: each for read in self._known.values() for digest, each in read.contents.environments.items()}

    def report_problems(self) -> bool:
        """Print on stderr which inputs could not be read in full; return whether there are any."""
        every = (problem.text for read in self._known.values() for problem in read.contents.problems)
        return print_problems(list(dict.fromkeys(every)))

    def _check_data(self, text: str) -> None:
        missing = [str(place) for place in self._data if not place.exists()]
        if missing:
            raise ConfigError(f"{text}: {missing[0]} does not exist; give the results to select from by --data")

    def _tests(self, paths: tuple[Path, ...], text: str = "", choose: Choice | None = None) -> list[TestRow]:
        """Tests of files and folders; with a text those of datasets that it chooses, which may be none."""
        from csit_utils.studies.registry import measured_rows  # noqa: PLC0415 - numpy costs time of every --help

        return self._asked(
            paths, text, choose or self._newest, lambda found: [*found.tests, *measured_rows(found.characterizations)]
        )

    def _asked(self, paths: tuple[Path, ...], text: str, choose: Choice, ask: Callable[["Stored"], _Asked]) -> _Asked:
        """Ask contents; where a record is damaged, again after every record was validated, without damaged ones."""
        if paths not in self._opened:
            self._opened[paths] = opened(list(paths), quickly=True)

        def read() -> "Stored":
            found = self._opened[paths].contents(columns=self._columns, choose=choose, may_be_empty=bool(text))
            self._known[paths, text] = _Read(found, choose)
            return found

        known = self._known.get((paths, text))
        try:
            return ask(read() if known is None else known.contents)
        except ReadError:
            if self._opened[paths].validated:
                raise
            self._opened[paths] = opened(list(paths))
            return ask(read())
