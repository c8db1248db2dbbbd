"""What benchmarks share: sides that take turns, and the figures of which `./csit bench` makes its table."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def in_turns(rounds: int, sides: Mapping[str, Callable[[], T | None]]) -> dict[str, list[T]]:
    """Results of each side by round, in reverse order every other time; without sides that return None."""
    found = dict[str, list[T]]()
    for number in range(rounds):
        for name in reversed(sides) if number % 2 else sides:
            if (result := sides[name]()) is not None:
                found.setdefault(name, []).append(result)
    return found


def figures(ours: float, peer: float | None, unit: str, note: str, **more: Any) -> dict[str, Any]:
    """Figures of a benchmark; the ratio is ours over the peer's, unless `more` has another."""
    return {"ours": ours, "peer": peer, "ratio": ours / peer if peer else None, "unit": unit, "note": note, **more}
