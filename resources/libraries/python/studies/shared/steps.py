"""Steps of a study, each with a deployment of its own: a chain, a set of co-located NFs."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from resources.libraries.python.errors import CsitError, RunStopped
from resources.libraries.python.recording.run_journal import MOST_ATTEMPTS
from resources.libraries.python.testbed.deployment.health import is_breakage, reason_of

_Row = TypeVar("_Row")
_log = logging.getLogger(__name__)


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
            notes.append(_again(reason))
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


def measure_again(name: str, measure: Callable[[], _Row], notes: list[str]) -> _Row:
    """Do what deploys, measures and removes; where that breaks the system under test, once more, with a note.

    Args:
        name: Name of what is measured, for the note.
        measure: Does it; its error goes through where it breaks nothing, and the second time.
        notes: Gets the reason.
    """
    try:
        return measure()
    except (CsitError, OSError) as error:
        if not is_breakage(error):
            raise
        notes.append(f"{name}: {_again(reason_of(error))}")
    _log.warning(notes[-1])
    return measure()


def _again(reason: str) -> str:
    return f"measured once more: {reason}"
