"""Sizings in reports: capacity of each deployment size, and their records."""

from collections.abc import Iterator, Mapping

from csit_utils.report.study import RecordKind, Study
from csit_utils.studies.sizing.explanations import EXPLANATIONS
from csit_utils.studies.sizing.measures import CAPACITY, measured
from csit_utils.studies.sizing.pages import sizings
from csit_utils.studies.sizing.words import best_of, headline
from resources.libraries.python.studies.sizing.analysis.tables import sizing_table
from resources.libraries.python.studies.sizing.model.record import SizingRecord


def _title(record: SizingRecord) -> str:
    return record.test_name if record.sizing is None else record.sizing.deployment.vnf_name


def _identity(record: SizingRecord) -> object:
    sizing = record.sizing
    return None if sizing is None else (sizing.deployment.model_dump_json(), sizing.workload.model_dump_json())


def _lines(record: SizingRecord) -> Iterator[str]:
    if record.sizing is not None:
        yield from (*record.sizing.steps, *record.sizing.notes)


def _tables(record: SizingRecord) -> Mapping[str, str]:
    return {} if record.sizing is None else {"sizing.csv": sizing_table(record.sizing)}


def _name_first(record: SizingRecord) -> bool:
    return record.sizing is not None and best_of(record.sizing) is not None


STUDY = Study(
    order=30,
    pages=(sizings.PAGE,),
    kinds=(
        RecordKind(
            "sizing",
            "Sizing",
            _title,
            headline,
            _identity,
            _lines,
            measured=measured,
            tables=_tables,
            name_first=_name_first,
        ),
    ),
    measures=(CAPACITY,),
    explanations=EXPLANATIONS,
)
