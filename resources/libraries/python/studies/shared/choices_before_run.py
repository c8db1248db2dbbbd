"""Wrong choices of a run, refused in one sentence before Robot begins it.

A study refuses them too when its suite opens the testbed. By then Robot fails each test by the same sentence.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from robot.api import SuiteVisitor
from robot.conf import RobotSettings
from robot.errors import DataError
from robot.model import TagPatterns
from robot.running import ResourceFile, TestCase, TestSuite
from robot.utils import find_file
from robot.variables import Variables, VariableScopes

from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.studies.shared.choices import KNOWN, Lookup, resumed
from resources.libraries.python.studies.shared.library import StudyLibrary
from resources.libraries.python.testbed.worlds.factory import refuse_without_basics

_CLOSE = 0.85
"""Least similarity (`difflib`) of a misspelt variable: one letter of five to ten is missing or too much."""
_STUDIES = "resources.libraries.python.studies."
_SWITCHES = "UNLESS ASKED"
"""Variable of suites: words of the variable MORE, and the tag that tests which take longer get by each."""
_Suite = tuple[TestSuite, Sequence[ResourceFile], Sequence[type[StudyLibrary[Any]]]]
"""A suite, the files whose tables it has, and its studies."""
_VARIABLE_FILES = (".py", ".yaml", ".yml", ".json", "/")
"""Ends of variable files that Robot takes for paths; others are names of modules."""


class RunRefused(BaseException):
    """Ends Robot before a run: `error` says why.

    Robot would log an `Exception` of a modifier with its traceback, and begin the run.
    """

    def __init__(self, error: CsitError) -> None:
        super().__init__(str(error))
        self.error = error


class _BeforeRun(SuiteVisitor, ABC):  # type: ignore[misc]  # Robot is not typed for mypy
    """A pre-run modifier that looks at suites of this project and changes nothing.

    Suites of users may have variables of any name, and get their testbed in any way that Robot knows.

    Args:
        options: Robot's, by their long names.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._settings = RobotSettings(dict(options))
        self._resources: dict[Path, ResourceFile] = {}

    def visit_suite(self, suite: TestSuite) -> None:
        """Look at all suites of the run.

        Raises:
            RunRefused: A variable is misspelt, a choice is wrong, or this user may not run on this machine.
        """
        with suppress(DataError):  # Robot reports it
            try:
                self._refuse([(each, files, _libraries(files)) for each in _all(suite) if (files := self._files(each))])
            except CsitError as error:
                raise RunRefused(error) from error

    @abstractmethod
    def _refuse(self, suites: Sequence[_Suite]) -> None:
        """Raise a `CsitError` for what is wrong."""

    def _files(self, suite: TestSuite) -> list[ResourceFile]:
        """The suite's own tables, then those of its resource files, and of theirs."""
        found, paths = [suite.resource], set[Path]()
        for file in found:
            for each in file.imports:
                path = ((each.directory or Path()) / each.name).resolve() if each.type == each.RESOURCE else None
                if path is not None and path not in paths and path.is_file():
                    paths.add(path)
                    if path not in self._resources:
                        self._resources[path] = ResourceFile.from_file_system(path)
                    found.append(self._resources[path])
        return found


class SpellingBeforeRun(_BeforeRun):
    """Refuses variables of the command line that are misspelt."""

    def _refuse(self, suites: Sequence[_Suite]) -> None:
        given = [str(variable).split(":", 1)[0] for variable in self._settings.variables]
        refuse_misspelt(given, {name for _, files, libraries in suites for name in _names(files, libraries)})


class ChoicesBeforeRun(_BeforeRun):
    """Lets the study of each suite look at its choices; comes when all suites have their rows.

    Variable files are evaluated here, and again by Robot.

    Args:
        options: Robot's, by their long names.

    Raises:
        DataError: A variable file does not exist; Robot would begin the run without it.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self.worlds: dict[Path | None, World] = {}
        """Of the testbeds of the suites that run, by their files."""
        for name, _ in self._settings.variable_files:
            if name.lower().endswith(_VARIABLE_FILES):
                find_file(name, file_type="Variable file")

    def _refuse(self, suites: Sequence[_Suite]) -> None:
        running = _running(suites[0][0], self._settings)
        scopes = VariableScopes(self._settings)
        topologies: dict[str, Topology] = {}
        for suite, files, libraries in suites:
            if not libraries or suite.source not in running:
                continue
            scopes.start_suite()
            for file in files:
                scopes.set_from_variable_section(file.variables)
            lookup = resumed(partial(_value, scopes.current))
            if lookup("TOPOLOGY") or not self._settings.dry_run:  # a dry run needs no testbed
                _refuse_switch(lookup)
                for library in libraries:
                    found = library().refuse_wrong(lookup)
                    topologies[found.model_dump_json()] = found
                    self.worlds[suite.source] = found.world
            scopes.end_suite()
        if not self._settings.dry_run:
            for topology in topologies.values():
                refuse_without_basics(topology)


def _running(whole: TestSuite, settings: RobotSettings) -> set[Path | None]:
    """Return the files of suites with a test that passes Robot's filters and is not skipped.

    Raises:
        DataError: No test passes.
    """
    tags = {"include_tags": settings.include, "exclude_tags": settings.exclude}
    with warnings.catch_warnings(action="ignore"):  # of patterns; Robot logs them itself
        patterns = {name: TagPatterns(texts) for name, texts in tags.items() if texts}
        skip = TagPatterns(settings.skip)
    outline = _outline(whole)
    outline.configure(**settings.suite_config | patterns)
    return {each.source for each in _all(outline) if not all(skip.match(test.tags) for test in each.tests)}


def _outline(suite: TestSuite) -> TestSuite:
    """Return a copy of what filters look at: ten times as fast as a copy of thousands of rows."""
    outline = TestSuite(suite.name, source=suite.source)
    outline.suites = [_outline(each) for each in suite.suites]
    outline.tests = [TestCase(each.name, tags=each.tags) for each in suite.tests]
    return outline


def refuse_misspelt(given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse variables named almost like one of the suites: without it the suites would run what is chosen by default.

    Args:
        given: Names of the command line.
        known: Names that the suites read, those that a filter leaves out included, beside those of all studies. One
            that only others read is refused too: FRAME where it is FRAMES that counts.

    Raises:
        ConfigError: A name has a letter more or less, or is in lower case, in which rows are not made by it.
    """
    names = dict.fromkeys((*KNOWN, *sorted(known)))
    for name in given:
        close = [] if name in names else get_close_matches(name.upper(), names, 1, _CLOSE)
        if close:
            raise ConfigError(f"-v {name}: no such variable; did you mean {close[0]}?")


def _value(variables: Variables, name: str) -> object:
    return variables.get(f"${{{name}}}")


def _refuse_switch(lookup: Lookup) -> None:
    words = lookup(_SWITCHES)
    if isinstance(words, Mapping) and (more := str(lookup("MORE"))) not in words:
        raise ConfigError(f"MORE '{more}': expected {' or '.join(words)}")


def _all(suite: TestSuite) -> Iterator[TestSuite]:
    yield suite
    for each in suite.suites:
        yield from _all(each)


def _libraries(files: Iterable[ResourceFile]) -> list[type[StudyLibrary[Any]]]:
    """Libraries of studies that a suite imports."""
    names = (each.name for file in files for each in file.imports if each.type == each.LIBRARY)
    classes = (getattr(import_module(name), name.rpartition(".")[2]) for name in names if name.startswith(_STUDIES))
    return [each for each in classes if isinstance(each, type) and issubclass(each, StudyLibrary)]


def _names(files: Iterable[ResourceFile], libraries: Iterable[type[StudyLibrary[Any]]]) -> Iterator[str]:
    """Variables that a suite declares or reads."""
    yield from (variable.name[2:-1] for file in files for variable in file.variables)
    for library in libraries:
        yield from library.VARIABLES
