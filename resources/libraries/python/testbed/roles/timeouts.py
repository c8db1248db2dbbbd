"""Time that a call of a role's method may take, for callers in another process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])
_ATTRIBUTE = "__timeout__"


@dataclass(frozen=True, slots=True)
class CallTimeout:
    """When a caller gives up: later than any driver by itself."""

    seconds: float = 60.0
    more: Callable[..., float] = lambda *_: 0.0
    """Seconds on top, from the arguments of the call."""


def timeout(seconds: float, more: Callable[..., float] = lambda *_: 0.0) -> Callable[[_Method], _Method]:
    """Declare how long a method of a role may take. Without it, `CallTimeout()` holds."""

    def declare(method: _Method) -> _Method:
        setattr(method, _ATTRIBUTE, CallTimeout(seconds, more))
        return method

    return declare


def timeout_of(method: Callable[..., Any]) -> CallTimeout:
    """Return the declared timeout of a method."""
    return getattr(method, _ATTRIBUTE, CallTimeout())
