"""Steps of a cleanup: all are taken, whichever fail."""

from collections.abc import Callable, Iterable
from pathlib import Path

from resources.libraries.python.errors import CsitError


def take_all(steps: Iterable[Callable[[], Iterable[str]]]) -> list[str]:
    """Take all steps; return their sentences.

    Raises:
        CsitError: Steps failed; the text has all reasons. The others were taken.
    """
    done: list[str] = []
    failures: list[CsitError] = []
    for step in steps:
        try:
            done += step()
        except CsitError as error:  # what is in use keeps nothing else from being removed
            failures.append(error)
        except OSError as error:
            failures.append(CsitError(f"cleanup failed: {error}"))
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise CsitError("; ".join(map(str, failures)))
    return done


def remove_file(path: Path, name: str) -> list[str]:
    """Remove a file as a step of a cleanup; return a sentence, none where it is gone already.

    Args:
        path: The file.
        name: Of what it is, for the sentence.

    Raises:
        OSError: It cannot be removed.
    """
    try:
        path.unlink()
    except FileNotFoundError:
        return []
    return [f"removed {name}"]
