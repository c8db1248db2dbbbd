"""Sweeps, bursts and chains in reports: profiles, predictions, and their records."""

from collections.abc import Iterator, Mapping

from csit_utils.report.study import RecordKind, Study
from csit_utils.studies.sweep.explanations import EXPLANATIONS
from csit_utils.studies.sweep.measures import BREAK_POINT, SATURATED, WITHOUT_LOSS, measured
from csit_utils.studies.sweep.pages import bursts, predictions, profiles
from csit_utils.studies.sweep.words import headline, title
from resources.libraries.python.csv_tables import csv_files
from resources.libraries.python.studies.sweep.analysis.sentences import errors_in_words, profile_in_words
from resources.libraries.python.studies.sweep.analysis.tables import tables_of
from resources.libraries.python.studies.sweep.model.record import SweepRecord


def _identity(record: SweepRecord) -> object:
    """Service and traffic. Loads are no part of it: tests choose them by what the service forwards."""
    if record.sweep is None:
        return None
    spec = record.sweep.spec
    return record.sweep.cell.model_dump_json(), spec.frame, spec.protocol, spec.flows


def _lines(record: SweepRecord) -> Iterator[str]:
    if record.profile is not None:
        # The first line is the break-point, which is in the headline.
        yield from (line for line in profile_in_words(record.profile)[1:] if line not in record.profile.notes)
    yield from errors_in_words(record.predictions)


def _warnings(record: SweepRecord) -> Iterator[str]:
    flagged = sum(point.flagged is not None for point in record.sweep.points) if record.sweep else 0
    if record.sweep is not None and flagged:
        yield f"{flagged} of {len(record.sweep.points)} loads differ from what was asked for"
    if record.profile is not None:
        yield from record.profile.notes


def _tables(record: SweepRecord) -> Mapping[str, str]:
    return csv_files(tables_of(record))


def _kind(kind: str, name: str) -> RecordKind:
    return RecordKind(kind, name, title, headline, _identity, _lines, _warnings, measured, _tables)


STUDY = Study(
    order=20,
    pages=(profiles.PAGE, predictions.PAGE, bursts.PAGE),
    kinds=(_kind("sweep", "Sweep"), _kind("chain", "Chain"), _kind("bursts", "Bursts")),
    measures=(BREAK_POINT, WITHOUT_LOSS, SATURATED),
    explanations=EXPLANATIONS,
)
