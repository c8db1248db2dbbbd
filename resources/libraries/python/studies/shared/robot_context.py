"""Variables of the running test, and a way to skip it."""

from collections.abc import Callable
from typing import Any, TypeVar

from robot.api import SkipExecution
from robot.libraries.BuiltIn import BuiltIn

from resources.libraries.python.errors import Unsupported

_Result = TypeVar("_Result")


def variable(name: str) -> Any:  # noqa: ANN401 (a Robot variable is anything)
    """Return a Robot variable, None where it is not set."""
    known = BuiltIn()._variables  # the keyword looks for similar names where there is none: 3 ms of CPU time
    return known[f"${{{name}}}"] if name in known else None


def skipping(step: Callable[[], _Result]) -> _Result:
    """Run a step; skip the test where the machine does not support it."""
    try:
        return step()
    except Unsupported as error:
        raise SkipExecution(str(error)) from error
