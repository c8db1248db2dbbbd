"""Characterizations in words, for a terminal or a pipe."""

import sys
from collections.abc import Iterator, Sequence

from csit_utils.report.characterized import View, warnings
from resources.libraries.python.profiling.words import errors_in_words, profile_in_words


def print_characterizations(found: Sequence[View], *, why: bool = False) -> None:
    """Print one line for each.

    Args:
        found: Those to tell of.
        why: Print functions, predictions, the way of a search and warnings below it.
    """
    for view in found:
        sys.stdout.write(f"{_line(view)}\n")
        if why:
            sys.stdout.writelines(f"    {' '.join(line.split())}\n" for line in _reasons(view))


def _line(view: View) -> str:
    marks = [
        *(["SIMULATED"] if view.record.simulated else []),
        *(["oversubscribed"] if view.oversubscribed else []),
        *([] if view.passed else [str(view.item.status)]),
    ]
    return " ".join([*marks, f"{view.record.kind} {view.title} ({view.record.test_name}):", view.headline])


def _reasons(view: View) -> Iterator[str]:
    record = view.record
    if record.profile is not None:
        # The first line is the break-point, which the headline has told.
        yield from (line for line in profile_in_words(record.profile)[1:] if line not in record.profile.notes)
    yield from errors_in_words(record.predictions)
    if record.sizing is not None:
        yield from (*record.sizing.steps, *record.sizing.notes)
    yield from warnings(record)
