"""Steps of a cleanup: all are taken, whichever fail."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from resources.libraries.python.errors import CsitError, RunStopped


def take_all(steps: Iterable[Callable[[], Iterable[str] | None]]) -> list[str]:
    """Take all steps, one after the other; return their sentences.

    Raises:
        CsitError: Steps failed; the text has all reasons. The others were taken.
    """
    done: list[str] = []
    failures: list[Exception] = []

    def attempt(step: Callable[[], Iterable[str] | None]) -> None:
        try:
            done.extend(step() or ())
        except Exception as error:  # boundary: what cannot be removed keeps nothing else from being removed
            failures.append(error)

    with ExitStack() as stack:  # an interrupt in a step keeps no later one from being taken either
        for step in reversed(tuple(steps)):
            stack.callback(attempt, step)
    raise_all(failures)
    return done


def raise_all(failures: Sequence[Exception]) -> None:
    """Raise failures of steps as one error with all reasons; nothing where there are none.

    Raises:
        CsitError: There are some. A single one is raised as it is, and so is one that ends the run, such as that of a
            signal.
    """
    if not failures:
        return
    ending = (each for each in failures if isinstance(each, RunStopped) or getattr(each, "exit", False))
    chosen = next(ending, failures[0] if len(failures) == 1 else None)
    if isinstance(chosen, OSError):
        raise CsitError(f"cleanup failed: {chosen}") from chosen
    if chosen is not None:
        raise chosen
    raise CsitError("; ".join(dict.fromkeys(map(_reason, failures)))) from failures[0]


def _reason(failure: Exception) -> str:
    if isinstance(failure, CsitError):
        return str(failure)
    name = "" if isinstance(failure, OSError) else f"{type(failure).__name__}: "
    return f"cleanup failed: {name}{failure}"


def remove_file(path: Path, name: str) -> list[str]:
    """Remove a file as a step of a cleanup; return a sentence, none where it is gone already.

    Raises:
        OSError: It cannot be removed.
    """
    try:
        path.unlink()
    except FileNotFoundError:
        return []
    return [f"removed {name}"]
