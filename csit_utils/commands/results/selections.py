"""Selections of tests on a command line: files, or `KEY=VALUE` of tests in the folders of `--data`."""

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Self, TypeVar

import typer

from csit_utils.analysis.selection import KEYS, parse_chosen
from csit_utils.commands.results.inputs import contents_of, print_problems, quickly_read
from csit_utils.dataset.contents import Contents
from csit_utils.dataset.items import Characterized, ReadError, RecordedTest
from csit_utils.dataset.reference import names, reference
from csit_utils.dataset.rows import MEASURES, TestRow
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.redaction import command_text

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


def refuse_missing(data: Sequence[Path] | None, *command: object) -> None:
    """Refuse a path of `--data` that does not exist: a name that is misspelt would be no results.

    Args:
        data: As typed; None where nothing is.
        command: What makes the path, where it may be made: its words before the path.

    Raises:
        ConfigError: One does not exist.
    """
    for path in data or ():
        if not path.exists():
            advice = command_text(*command, path) if command else ""
            text = f"--data: {quoted(str(path))} does not exist"
            raise ConfigError(f"{text}; where there are no results yet, make it by " if command else text, advice)


class DatasetReader:
    """Reads the selections of a command line; each file or folder once, and of large ones only what is asked for.

    Used in a `with` statement, which removes its temporary datasets.

    Args:
        data: Files, folders and datasets that selections choose from; None for `results`, which need not exist.
        columns: Those of tests that are read of datasets; None for all of them.

    Raises:
        ConfigError: One that is named does not exist.
    """

    def __init__(self, data: Sequence[Path] | None, columns: Collection[str] | None = None) -> None:
        refuse_missing(data)
        self._columns = columns
        self._data = tuple(data or (RESULTS,))
        self._known: dict[tuple[Path, ...], Contents] = {}
        self._held = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, ConfigError):
            self.report_problems()  # they may be why
        self._held.close()

    def rows(self, text: str) -> list[TestRow]:
        """Return the tests of a selection.

        Raises:
            ConfigError: The selection is invalid or empty.
        """
        path = Path(text)
        if path.exists():
            return self._tests(path)
        if text in names():
            return list(reference(text).tests)
        chosen = parse_chosen(text)
        return chosen.of(self.every(text))

    def studies(self, text: str) -> Sequence[Characterized]:
        """Return the records of other studies than density of a file or folder.

        Raises:
            ConfigError: It does not exist or has no test.
        """
        path = Path(text)
        if not path.exists():
            raise ConfigError(f"{text} does not exist; name a file or folder with a chain study, or two sides A and B")
        self._contents(path)
        return self._whole_if_damaged((path,), lambda found: list(found.characterizations))

    def every(self, text: str) -> Sequence[TestRow]:
        """Return all tests of `--data`.

        Args:
            text: The selection, for the error.

        Raises:
            ConfigError: A file or folder of `--data` does not exist.
        """
        missing = [str(place) for place in self._data if not place.exists()]
        if missing:
            raise ConfigError(f"{text}: {missing[0]} does not exist; give the results to select from by --data")
        return self.whole()

    def whole(self) -> list[TestRow]:
        """Return all tests of `--data`.

        Raises:
            ConfigError: It has none, or cannot be read.
        """
        return self._tests(*self._data)

    def record(self, anchor: str) -> RecordedTest:
        """Return the record of a test that was read.

        Raises:
            KeyError: No such test, or it has no record.
        """
        known = self._known.items()
        paths = next((paths for paths, found in known if any(row.anchor == anchor for row in found.tests)), None)
        if paths is None:
            raise KeyError(anchor)
        return self._whole_if_damaged(paths, lambda found: found.record(anchor))

    def report_problems(self) -> bool:
        """Print on stderr which inputs could not be read in full; return whether there are any."""
        return print_problems([problem.text for contents in self._known.values() for problem in contents.problems])

    def _tests(self, *paths: Path) -> list[TestRow]:
        from csit_utils.studies.registry import measured_rows  # noqa: PLC0415 - numpy costs time of every --help

        self._contents(*paths)
        return self._whole_if_damaged(paths, lambda found: [*found.tests, *measured_rows(found.characterizations)])

    def _contents(self, *paths: Path) -> Contents:
        if paths not in self._known:
            quick = self._held.enter_context(quickly_read(list(paths)))
            self._known[paths] = contents_of(quick, characterizations=True, columns=self._columns)
        return self._known[paths]

    def _whole_if_damaged(self, paths: tuple[Path, ...], ask: Callable[[Contents], _Asked]) -> _Asked:
        """Ask contents; where a record is damaged, again after every record was validated, without damaged ones."""
        try:
            return ask(self._known[paths])
        except ReadError:
            self._known[paths] = contents_of(list(paths), characterizations=True, columns=self._columns)
            return ask(self._known[paths])
