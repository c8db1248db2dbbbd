"""Steps of a study, each with a deployment of its own: a chain, a set of co-located NFs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from resources.libraries.python.errors import CsitError, RunStopped
from resources.libraries.python.recording.run_journal import MOST_ATTEMPTS
from resources.libraries.python.testbed.deployment.health import is_breakage, reason_of

_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class StepOutcome(Generic[_Row]):
    """Outcome of a step that was deployed, measured and removed."""

    row: _Row | None
    """Its result; None where it failed."""
    reason: str
    """Reason of its failure."""
    notes: tuple[str, ...]
    """Why it was measured once more, and errors of removals; each begins with its name."""


def measure_step(name: str, measure: Callable[[], _Row], remove: Callable[[], str | None]) -> StepOutcome[_Row]:
    """Measure a step and remove what it deployed; where that breaks the system under test, once more.

    Args:
        name: Name of the step, for notes.
        measure: Deploys and measures it.
        remove: Removes it; returns the error, None without one.

    Raises:
        RunStopped: The machine cannot be used any more.
    """
    notes: list[str] = []
    row, reason, again = None, "", False
    for _ in range(MOST_ATTEMPTS):
        if again:
            notes.append(f"measured once more: {reason}")
        again = False
        try:
            row, reason = measure(), ""
        except RunStopped:
            raise
        except (CsitError, OSError) as error:
            reason, again = reason_of(error), is_breakage(error)
        finally:
            notes += filter(None, [remove()])
        if not again:
            break
    return StepOutcome(row, reason, tuple(f"{name}: {note}" for note in notes))
