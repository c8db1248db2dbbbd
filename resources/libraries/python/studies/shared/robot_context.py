"""Variables of the running test, and a way to skip it."""

from collections.abc import Callable
from typing import Any, TypeVar

from robot.api import SkipExecution
from robot.libraries.BuiltIn import BuiltIn

from resources.libraries.python.errors import Unsupported

_Result = TypeVar("_Result")


def variable(name: str) -> Any:  # noqa: ANN401 (a Robot variable is anything)
    """Return a Robot variable, None where it is not set."""
    return BuiltIn().get_variable_value(f"${{{name}}}")


def skipping(step: Callable[[], _Result]) -> _Result:
    """Run a step; skip the test where the machine does not support it."""
    try:
        return step()
    except Unsupported as error:
        raise SkipExecution(str(error)) from error
