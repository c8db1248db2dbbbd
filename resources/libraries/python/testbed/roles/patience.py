"""Time that a call of a role's method may take, for callers in another process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])
_ATTRIBUTE = "__patience__"


@dataclass(frozen=True, slots=True)
class Patience:
    """When a caller gives up: later than any driver by itself."""

    seconds: float = 60.0
    more: Callable[..., float] = lambda *_: 0.0
    """Seconds on top, from the arguments of the call."""


def patience(seconds: float, more: Callable[..., float] = lambda *_: 0.0) -> Callable[[_Method], _Method]:
    """Declare how long a method of a role may take. Without it, `Patience()` holds."""

    def declare(method: _Method) -> _Method:
        setattr(method, _ATTRIBUTE, Patience(seconds, more))
        return method

    return declare


def patience_of(method: Callable[..., Any]) -> Patience:
    """Return the declared patience of a method."""
    return getattr(method, _ATTRIBUTE, Patience())
