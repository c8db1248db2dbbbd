"""Characterizations in words, for a terminal or a pipe."""

import sys
from collections.abc import Iterator, Sequence

from csit_utils.report.characterized import KINDS, View, warnings
from resources.libraries.python.studies.chains.model.record import ChainStudy
from resources.libraries.python.studies.interference.analysis.sentences import advice_in_words, matrix_in_words
from resources.libraries.python.studies.sweep.analysis.sentences import errors_in_words, profile_in_words


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
    return " ".join(
        [*marks, f"{KINDS[view.record.kind].lower()} {view.title} ({view.record.test_name}):", view.headline]
    )


def _reasons(view: View) -> Iterator[str]:
    record = view.record
    if record.profile is not None:
        # The first line is the break-point, which the headline has told.
        yield from (line for line in profile_in_words(record.profile)[1:] if line not in record.profile.notes)
    yield from errors_in_words(record.predictions)
    if record.sizing is not None:
        yield from (*record.sizing.steps, *record.sizing.notes)
    if record.chain_study is not None:
        yield from _suspects(record.chain_study)
    if record.interference is not None:
        yield from (*matrix_in_words(record.interference), *advice_in_words(record.interference))
    yield from warnings(record)


def _suspects(study: ChainStudy) -> Iterator[str]:
    for rank, suspect in enumerate(study.suspects, 1):
        by = f" ({', '.join(suspect.rules)})" if suspect.rules else ""
        why = "; ".join(suspect.reasons)
        yield f"{rank}. {suspect.chain.name}{by}, mean distance {suspect.mean_distance:.3g}: {why}"
    yield from study.notes
