"""Wrong choices of a run, refused in one sentence before anything is measured.

`./csit robot` looks at them before Robot begins. Where Robot was started by itself, the listener `AT_START` of all
libraries of studies does so in the first suite. A study refuses them too when its suite opens the testbed, for suites
of users; by then Robot fails each test by the same sentence.
"""

import inspect
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from robot.api import SuiteVisitor
from robot.conf import RobotSettings
from robot.errors import DataError
from robot.libraries.BuiltIn import BuiltIn
from robot.model import TagPatterns
from robot.running import ResourceFile, TestCase, TestSuite
from robot.running.context import EXECUTION_CONTEXTS
from robot.utils import find_file
from robot.variables import Variables
from robot.variables.scopes import GlobalVariables

from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.request.variables import Lookup, read_by
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.redaction import is_secret_name
from resources.libraries.python.studies.shared.choices import resumed, settings_of
from resources.libraries.python.testbed.kinds.factory import refuse_without_basics

_CLOSE = 0.85
"""Least similarity (`difflib`) of a misspelt variable: one letter of five to ten is missing or too much."""
_NEAR, _MAX_NEAR = 0.6, 3
"""The same of names that a variable without a misspelt one may stand for, and their number."""
_OF_RUNNERS = re.compile(r"COMMAND|PABOT\w*|CALLER_ID")
"""Variables that a program gives which starts Robot: a command of this project, or pabot."""
_STUDIES = "resources.libraries.python.studies."
_SWITCHES = "UNLESS ASKED"
"""Variable of suites: words of the variable MORE, and the tag that tests which take longer get by each."""


_Suite = tuple[TestSuite, Sequence[ResourceFile], Sequence[Any]]
"""A suite, the files whose tables it has, and the libraries of its studies, which are `StudyKeywords`."""
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

    `given`: what the command line says, with variable files.
    """

    def __init__(self, settings: RobotSettings, given: Variables) -> None:
        self._settings, self._given = settings, given

    def visit_suite(self, suite: TestSuite) -> None:
        """Look at all suites of the run.

        Raises:
            RunRefused: A variable is misspelt, a choice is wrong, or this user may not run on this machine.
        """
        with suppress(DataError):  # Robot reports it
            try:
                self._refuse(suite)
            except CsitError as error:
                raise RunRefused(error) from error

    @abstractmethod
    def _refuse(self, suite: TestSuite) -> None:
        """Raise a `CsitError` for what is wrong."""


class SpellingBeforeRun(_BeforeRun):
    """Refuses variables of the command line that no suite reads."""

    def _refuse(self, suite: TestSuite) -> None:
        _refuse_unread(_suites(suite), self._given)


class ChoicesBeforeRun(_BeforeRun):
    """Lets the study of each suite look at its choices; comes when all suites have their rows."""

    def __init__(self, settings: RobotSettings, given: Variables) -> None:
        super().__init__(settings, given)
        self.worlds: dict[Path | None, World] = {}
        """Of the testbeds of the suites that run, by their files."""

    def _refuse(self, suite: TestSuite) -> None:
        running = _running(suite, self._settings)
        self.worlds |= _refuse_wrong(_suites(suite), self._given, running, dry_run=self._settings.dry_run)
        AT_START.seen = suite


def given_to(settings: RobotSettings) -> Variables:
    """Return what the command line of a run says, with variable files, which Robot evaluates again.

    Raises:
        ConfigError: A variable file does not exist, or cannot be read.
    """
    _refuse_unreadable(settings)
    return GlobalVariables(settings)


def _refuse_unreadable(settings: RobotSettings) -> None:
    """Refuse variable files that do not exist, or cannot be read: Robot would begin the run without them."""
    for name, arguments in settings.variable_files:
        try:
            is_path = name.lower().endswith(_VARIABLE_FILES)
            Variables().set_from_file(find_file(name, file_type="Variable file") if is_path else name, arguments)
        except DataError as error:  # lines below the first one are a traceback
            raise ConfigError(str(error).splitlines()[0]) from error


class ChoicesAtStart:
    """Robot listener: refuses what is wrong in the first suite of a run that Robot was started for by itself."""

    ROBOT_LISTENER_API_VERSION = 3
    ROBOT_LISTENER_PRIORITY = 900
    """When secrets are known, and before rows are made."""

    def __init__(self) -> None:
        self.seen: TestSuite | None = None
        """All suites of the last run whose choices are right."""

    def start_suite(self, data: TestSuite, result: object) -> None:  # noqa: ARG002 - of Robot
        """Look at all suites of the run; where something is wrong, let it end before the setup of this one."""
        whole = whole_of(data)
        if whole is self.seen or not all(are_ours(each.source) for each in all_of(whole) if each.tests):
            return
        self.seen = whole
        suites, given = _suites(whole), BuiltIn()._variables._global
        skip = TagPatterns(given["${OPTIONS}"].skip)
        try:
            _refuse_unreadable(EXECUTION_CONTEXTS.current.output._settings)
            _refuse_unread(suites, given)
            running = _with_tests(whole, skip)
            _refuse_wrong(suites, given, running, dry_run=EXECUTION_CONTEXTS.current.dry_run)
        except CsitError as error:
            data.setup = data.teardown = None
            data.suites.clear()
            data.tests = [_Refusal(name=str(error))]


AT_START = ChoicesAtStart()
"""Listener of all libraries of studies."""


class _Refusal(TestCase):  # type: ignore[misc]  # as above
    """In the place of tests: its name is the sentence with which Robot ends, as for any wrong test data."""

    def visit(self, visitor: object) -> None:  # noqa: ARG002 - of Robot
        """End the run.

        Raises:
            DataError: Always.
        """
        raise DataError(self.name)


def are_ours(source: Path | str | None) -> bool:
    """Whether a suite or a folder of suites is one of this project."""
    return source is not None and Path(source).resolve().is_relative_to(PROJECT / "tests")


def _suites(whole: TestSuite) -> list[_Suite]:
    """All suites of a run with the files whose tables they have, and their studies."""
    known: dict[Path, ResourceFile] = {}
    return [(each, files, _libraries(files)) for each in all_of(whole) if (files := _files(each, known))]


def _files(suite: TestSuite, known: dict[Path, ResourceFile]) -> list[ResourceFile]:
    """The suite's own tables, then those of its resource files, and of theirs.

    `known`: resource files that have been read; gets those that are read now.
    """
    found, paths = [suite.resource], set[Path]()
    for file in found:
        for each in file.imports:
            path = ((each.directory or Path()) / each.name).resolve() if each.type == each.RESOURCE else None
            if path is not None and path not in paths and path.is_file():
                paths.add(path)
                if path not in known:
                    known[path] = ResourceFile.from_file_system(path)
                found.append(known[path])
    return found


def _refuse_unread(suites: Iterable[_Suite], given: Variables) -> None:
    """Refuse variables that a user gives and no suite reads, those that a filter leaves out included."""
    own = GlobalVariables(RobotSettings()).as_dict(decoration=False)
    values = given.as_dict(decoration=False).items()
    chosen = [name for name, value in values if name not in own and not (inspect.ismodule(value) or callable(value))]
    known = [name for _, files, libraries in suites for name in _names(files, libraries)]
    if known:  # suites of others read what they like
        refuse_misspelt(chosen, known)


def _refuse_wrong(
    suites: Sequence[_Suite], given: Variables, running: Mapping[Path | None, Collection[str]], *, dry_run: bool
) -> Mapping[Path | None, World]:
    """Let the study of each suite look at its choices.

    `running`: names of the tests that run, by the files of their suites.

    Returns:
        The worlds of their testbeds, by file.

    Raises:
        CsitError: A choice is wrong, or this user may not run on this machine.
    """
    topologies: dict[str, Topology] = {}
    worlds: dict[Path | None, World] = {}
    for suite, files, libraries in suites:
        if not libraries or suite.source not in running:
            continue
        variables = given.copy()
        for file in files:
            variables.set_from_variable_section(file.variables)
        lookup = resumed(partial(_value, variables))
        if lookup("TOPOLOGY") or not dry_run:  # a dry run needs no testbed
            _refuse_switch(lookup)
            for study in libraries:
                found = study.refuse_wrong(lookup)
                if settings_of(lookup, study.STUDY):
                    for name, keys in _specifications(suite, running[suite.source], variables):
                        study.specification(name, keys)
                topologies[found.model_dump_json()], worlds[suite.source] = found, found.world
    if not dry_run:
        for topology in topologies.values():
            refuse_without_basics(topology)
    return worlds


def _specifications(
    suite: TestSuite, running: Collection[str], variables: Variables
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the files of specifications that tests which run name first, and the keys that they set."""
    for test in suite.tests:
        words = getattr(test.body[0], "args", ()) if test.name in running and test.body else ()
        known = [variables.replace_string(str(each), ignore_errors=True) for each in words]
        if known and known[0] and "${" not in "".join(known):  # others get their values when the suite runs
            keys = dict(each.split("=", 1) for each in known[1:] if "=" in each)
            yield known[0], {name: value for name, value in keys.items() if name != "only_in"}


def _running(whole: TestSuite, settings: RobotSettings) -> dict[Path | None, set[str]]:
    """Return the names of tests that pass Robot's filters and are not skipped, by the files of their suites.

    Raises:
        DataError: No test passes.
    """
    tags = {"include_tags": settings.include, "exclude_tags": settings.exclude}
    with warnings.catch_warnings(action="ignore"):  # of patterns; Robot logs them itself
        patterns = {name: TagPatterns(texts) for name, texts in tags.items() if texts}
        skip = TagPatterns(settings.skip)
    outline = _outline(whole)
    outline.configure(**settings.suite_config | patterns)
    return _with_tests(outline, skip)


def _with_tests(whole: TestSuite, skip: TagPatterns) -> dict[Path | None, set[str]]:
    """Return the names of tests that are not skipped, by the files of their suites."""
    found = {each.source: {test.name for test in each.tests if not skip.match(test.tags)} for each in all_of(whole)}
    return {source: names for source, names in found.items() if names}


def _outline(suite: TestSuite) -> TestSuite:
    """Return a copy of what filters look at: ten times as fast as a copy of thousands of rows."""
    outline = TestSuite(suite.name, source=suite.source)
    outline.suites = [_outline(each) for each in suite.suites]
    outline.tests = [TestCase(each.name, tags=each.tags) for each in suite.tests]
    return outline


def refuse_misspelt(given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse variables that no suite reads: without them the suites would run what is chosen by default.

    Secrets choose nothing, and are for keywords of users.

    `known`: names that the suites read. One that only others read is refused too, such as FRAME where FRAMES counts.

    Raises:
        ConfigError: A name is not among them; it may be in lower case, in which rows are not made by it.
    """
    names = dict.fromkeys(known)
    for name in given:
        if name in names or _OF_RUNNERS.fullmatch(name) or is_secret_name(name):
            continue
        near = partial(get_close_matches, name.upper(), names)
        close = " or ".join(near(1, _CLOSE) or near(_MAX_NEAR, _NEAR))
        advice = f"did you mean {close}?" if close else f"the suites read {', '.join(names)}"
        raise ConfigError(f"-v {quoted(name)}: no such variable; {advice}")


def _value(variables: Variables, name: str) -> object:
    return variables.get(f"${{{name}}}")


def _refuse_switch(lookup: Lookup) -> None:
    words = lookup(_SWITCHES)
    if isinstance(words, Mapping) and (more := str(lookup("MORE"))) not in words:
        raise ConfigError(f"MORE '{more}': expected {' or '.join(words)}")


def whole_of(suite: TestSuite) -> TestSuite:
    """All suites of the run."""
    return suite if suite.parent is None else whole_of(suite.parent)


def all_of(suite: TestSuite) -> Iterator[TestSuite]:
    """Yield a suite, and all suites in it."""
    yield suite
    for each in suite.suites:
        yield from all_of(each)


def _libraries(files: Iterable[ResourceFile]) -> list[Any]:
    """Libraries of studies that a suite imports."""
    imports = (each for file in files for each in file.imports if each.type == each.LIBRARY)
    found = (
        (getattr(import_module(each.name), each.name.rpartition(".")[2]), each.args)
        for each in imports
        if each.name.startswith(_STUDIES)
    )
    return [library(*arguments) for library, arguments in found if hasattr(library, "refuse_wrong")]


def _names(files: Iterable[ResourceFile], libraries: Iterable[Any]) -> Iterator[str]:
    """Variables that the studies of a suite read, or that it has itself. Lists and tables are its own."""
    for library in libraries:
        yield from (each.name for each in read_by(library.STUDY))
    for file in files:
        yield from (each.name[2:-1] for each in file.variables if each.name[0] == "$")
