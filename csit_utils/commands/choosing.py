"""Selections of tests as a command line names them: files, or `key=value` of tests that are looked for in a place."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.analysis.selection import KEYS, parse_chosen
from csit_utils.commands.reading import contents_of
from csit_utils.dataset.contents import Contents
from csit_utils.dataset.reference import names, reference
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.errors import ConfigError

RESULTS = Path("results")
DATA = Annotated[
    list[Path] | None,
    typer.Option(
        "--data", help="Where tests are that are chosen by KEY=VALUE; may be given again.  [default: results]"
    ),
]
SIDE_HELP = (
    f"Files or directories, KEY=VALUE[,...] of the tests in --data, or published figures ({', '.join(names())}); "
    f"keys are {', '.join(KEYS)}."
)


class Reader:
    """Reads what a command line names; each place once."""

    def __init__(self, data: Sequence[Path] | None) -> None:
        self._data = tuple(data or (RESULTS,))
        self._known: dict[tuple[Path, ...], Contents] = {}

    def rows(self, text: str) -> list[TestRow]:
        """The tests that a text means.

        Raises:
            ConfigError: There are none.
        """
        path = Path(text)
        if path.exists():
            return self._tests(path)
        if text in names():
            return list(reference(text).tests)
        chosen = parse_chosen(text)
        return chosen.of(self.every(text))

    def every(self, text: str) -> Sequence[TestRow]:
        """All tests of --data, for a text that chooses among them.

        Raises:
            ConfigError: There is no such place.
        """
        missing = [str(place) for place in self._data if not place.exists()]
        if missing:
            raise ConfigError(f"{text}: there is no {missing[0]} to look in; name another place with --data")
        return self._tests(*self._data)

    def contents(self) -> list[Contents]:
        """All that has been read."""
        return list(self._known.values())

    def tell_problems(self) -> bool:
        """Say on stderr which inputs were not read in full; return whether there are any."""
        problems = [problem.text for contents in self._known.values() for problem in contents.problems]
        for problem in problems:
            typer.echo(problem, err=True)
        return bool(problems)

    def _tests(self, *paths: Path) -> list[TestRow]:
        found = self._contents(*paths)
        from csit_utils.studies.registry import measured_rows  # noqa: PLC0415 - numpy costs time of every --help

        return [*found.tests, *measured_rows(found.characterizations)]

    def _contents(self, *paths: Path) -> Contents:
        if paths not in self._known:
            self._known[paths] = contents_of(list(paths), characterizations=True)
        return self._known[paths]
