"""Boundary to Robot: its variables and console; an error is one sentence, and no secret reaches its log."""

import functools
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from robot.api import Error, Failure, SkipExecution, deco, logger
from robot.errors import RobotError
from robot.libraries.BuiltIn import BuiltIn, RobotNotRunningError
from robot.running.context import EXECUTION_CONTEXTS

from resources.libraries.python.defects import expected, report_defect
from resources.libraries.python.errors import CsitError, Unsupported, message
from resources.libraries.python.recording.marker import RESULT_MARKER
from resources.libraries.python.redaction import (
    MASK,
    is_secret_name,
    keep_named_secrets,
    keep_secret,
    outgoing,
    redacted,
)
from resources.libraries.python.terminal import dropping_output

_P = ParamSpec("_P")
_Result = TypeVar("_Result")
_ON_PURPOSE = (RobotError, Failure, Error, SkipExecution)
"""Errors that keywords raise, beside errors that Robot shows without the name of their class."""
_ASSIGNED = re.compile(r"[$@&]\{([^}]+)\} = (.*)", re.DOTALL)
"""Robot's message about a variable that gets a value."""
_log = logging.getLogger(__name__)
_RETURNED = "Return: "
"""Begin of Robot's message about what a keyword returns, at level TRACE."""


def variable(name: str) -> Any:  # noqa: ANN401 (a Robot variable is anything)
    """Return a Robot variable, None where it is not set."""
    known = BuiltIn()._variables  # the keyword looks for similar names where there is none: 3 ms of CPU time
    return known[f"${{{name}}}"] if name in known else None


def document(text: str) -> None:
    """Append a text to the documentation of the running suite."""
    if EXECUTION_CONTEXTS.current is not None:
        BuiltIn().set_suite_documentation(text, append=True)


def announce(text: str, *, on_console: bool = True) -> None:
    """Log a sentence, and show it on the console."""
    logger.info(text)
    if on_console:
        with dropping_output(sys.__stdout__ or sys.stdout):
            logger.console(text)


def skipping(step: Callable[[], _Result]) -> _Result:
    """Run a step; skip the test where the machine does not support it."""
    try:
        return step()
    except Unsupported as error:
        raise SkipExecution(str(error)) from error


class Defect(Exception):
    """An error that this project did not raise on purpose, in one sentence that names the log of its traceback."""

    ROBOT_SUPPRESS_NAME = True


class SystemCallFailed(OSError):
    """An error of the operating system, in one sentence."""

    ROBOT_SUPPRESS_NAME = True

    def __str__(self) -> str:
        where = f"{self.filename}: " if self.filename is not None else ""
        return message(f"{where}{self.strerror or OSError.__str__(self)}")


def keyword(method: Callable[_P, _Result]) -> Callable[_P, _Result]:
    """Make a method a Robot keyword whose errors are `guarded`."""
    return deco.keyword(guarded(method))


def guard_keywords(library: type) -> None:
    """Guard keywords of a class that Robot's own decorator has made."""
    for name, member in list(vars(library).items()):
        if hasattr(member, "robot_name") and not hasattr(member, "at_boundary"):
            setattr(library, name, guarded(member))


def guarded(method: Callable[_P, _Result]) -> Callable[_P, _Result]:
    """Return a method whose errors are in one sentence, without secrets.

    The traceback of a defect is in the log that its sentence names, and in Robot's log at level DEBUG.
    """

    @functools.wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
        keep_robot_secrets()
        try:
            return method(*args, **kwargs)
        except Exception as error:  # boundary: any error becomes one sentence
            if isinstance(error, _ON_PURPOSE) or hasattr(error, "ROBOT_SUPPRESS_NAME"):
                _redact(error)
                raise
            if isinstance(error, OSError):
                raise SystemCallFailed(error.errno, error.strerror or str(error), error.filename) from error
            raise Defect(defect_sentence(error)) from error

    call.at_boundary = True  # type: ignore[attr-defined]
    return call


def defect_sentence(error: Exception) -> str:
    """Log the traceback of a defect in the folder of the run, and return the sentence that names the log."""
    return report_defect(error, _folder())


def _folder() -> Path | None:
    with suppress(RobotNotRunningError):
        if folder := variable("OUTPUT DIR"):
            return Path(str(folder))
    return None


def keep_robot_secrets() -> None:
    """Mask the values of variables of Robot and of the environment whose names look like secrets."""
    keep_named_secrets(os.environ)
    with suppress(RobotNotRunningError):
        keep_named_secrets(BuiltIn().get_variables(no_decoration=True))


def _redact(error: BaseException) -> None:
    text = str(error)
    if isinstance(error, CsitError) and len(error.whole) > len(text):
        _log.info("%s", error.whole)
    if text != (shown := redacted(expected(error, _folder()) if isinstance(error, CsitError) else text)):
        error.args = (shown, *error.args[1:])


class Redaction:
    """Robot listener: masks secrets and escapes control characters in all that Robot writes and shows.

    Robot shows names and documentation of suites and tests before it asks listeners: these are written as they are.
    """

    ROBOT_LISTENER_API_VERSION = 3
    ROBOT_LISTENER_PRIORITY = 1000
    """Before all others, which may send what they get elsewhere."""

    def __init__(self) -> None:
        self._makes_secret: list[bool] = []
        """Whether the running keywords, the outermost first, return secrets."""

    def start_suite(self, data: Any, result: Any) -> None:  # noqa: ANN401, ARG002 (Robot's own types are not typed)
        """Find secrets among the variables of the command line and of the suite."""
        keep_robot_secrets()

    def start_keyword(self, data: Any, result: Any) -> None:  # noqa: ANN401, ARG002
        """Look at the names of the variables that get what the keyword returns."""
        self._makes_secret.append(any(is_secret_name(name) for name in result.assign))

    def log_message(self, message: Any) -> None:  # noqa: ANN401
        """Before a message is written or shown."""
        text = str(message.message)
        if text.startswith(RESULT_MARKER):  # of a record without secrets, which has numbers too
            return
        assigned = _ASSIGNED.match(text)
        if assigned is not None and is_secret_name(assigned[1]):
            keep_secret(assigned[2])
            keep_robot_secrets()  # long values are cut in the message
            text = f"{text[: assigned.start(2)]}{MASK}"
        elif text.startswith(_RETURNED) and self._makes_secret[-1:] == [True]:
            text = f"{_RETURNED}{MASK}"
        message.message = outgoing(text)

    message = log_message
    """Messages of Robot itself."""

    def end_keyword(self, data: Any, result: Any) -> None:  # noqa: ANN401, ARG002
        """Before what Robot knows of a keyword is written."""
        del self._makes_secret[-1:]
        result.args = _redacted_words(result.args)
        _redact_texts(result)

    def end_var(self, data: Any, result: Any) -> None:  # noqa: ANN401, ARG002
        """Before the value of a VAR is written."""
        secret = is_secret_name(result.name)
        result.value = tuple(MASK for _ in result.value) if secret else _redacted_words(result.value)

    def end_for_iteration(self, data: Any, result: Any) -> None:  # noqa: ANN401, ARG002
        """Before the values of a loop are written."""
        _redact_mapping(result.assign)

    def end_test(self, data: Any, result: Any) -> None:  # noqa: ANN401, ARG002
        """Before a test is written."""
        _redact_texts(result)

    def end_suite(self, data: Any, result: Any) -> None:  # noqa: ANN401, ARG002
        """Before a suite is written."""
        result.doc, result.message = outgoing(result.doc), outgoing(result.message)
        _redact_mapping(result.metadata)


def _redact_texts(result: Any) -> None:  # noqa: ANN401
    result.doc, result.message = outgoing(result.doc), outgoing(result.message)
    if any(redacted(tag) != tag for tag in result.tags):
        result.tags = [redacted(tag) for tag in result.tags]


def _redacted_words(words: Iterable[object]) -> tuple[object, ...]:
    return tuple(redacted(each) if isinstance(each, str) else each for each in words)


def _redact_mapping(texts: MutableMapping[str, str]) -> None:
    texts.update({name: redacted(str(each)) for name, each in texts.items() if redacted(str(each)) != str(each)})


REDACTION = Redaction()
"""Listener of all libraries."""
