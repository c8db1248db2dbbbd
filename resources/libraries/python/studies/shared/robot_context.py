"""Variables of the running test, a way to skip it, and sentences on the console."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from robot.api import SkipExecution, logger
from robot.libraries.BuiltIn import BuiltIn
from robot.running.context import EXECUTION_CONTEXTS

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.terminal import dropping_output

_Result = TypeVar("_Result")


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
