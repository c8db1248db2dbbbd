"""Interference studies in reports: what co-located network functions cost each other, and their records."""

from collections.abc import Iterator, Mapping

from csit_utils.dataset.items import Characterized
from csit_utils.report.study import QueriedTables, RecordKind, Study
from csit_utils.report.units import rate
from csit_utils.studies.interference.explanations import EXPLANATIONS
from csit_utils.studies.interference.measures import NORMALIZED, measured
from csit_utils.studies.interference.pages import interference
from resources.libraries.python.csv_tables import csv_files
from resources.libraries.python.studies.interference.analysis import tables
from resources.libraries.python.studies.interference.analysis.sensitivity import degradation, lowest
from resources.libraries.python.studies.interference.analysis.sentences import advice_in_words, matrix_in_words
from resources.libraries.python.studies.interference.model.record import Interference, InterferenceRecord


def _title(record: InterferenceRecord) -> str:
    if record.interference is None:
        return record.test_name
    spec = record.interference.spec
    load = "" if spec.load_pps is None or spec.loads_pps else f", {rate(spec.load_pps)} each"
    return f"{spec.name}, {', '.join(frame.name for frame in spec.frames or (spec.frame,))}{load}"


def headline(item: Characterized) -> str:
    """Return the result in one sentence."""
    found = item.record.interference
    return f"nothing was measured: {item.message}" if found is None else interference_headline(found)


def interference_headline(found: Interference) -> str:
    """Most sensitive and most aggressive network function, and how much was measured where that is not all."""
    measured, asked = found.coverage
    return _most(found) if measured == asked else f"{measured} of {asked} measurements were made; {_most(found)}"


def _most(found: Interference) -> str:
    sensitive, aggressive = lowest(found.sensitivity), lowest(found.aggressiveness)
    if sensitive is None or aggressive is None:
        return "no two network functions were measured beside each other"
    if found.sensitivity[sensitive] >= 1:
        return "no network function loses anything beside another, on average"
    loses = 100 * degradation(found.sensitivity[sensitive])
    suffers = f"most sensitive is {sensitive}, which loses {loses:.1f} % beside another"
    if found.aggressiveness[aggressive] >= 1:
        return suffers
    lose = 100 * degradation(found.aggressiveness[aggressive])
    return f"{suffers}; most aggressive is {aggressive}, beside which others lose {lose:.1f} %"


def _identity(record: InterferenceRecord) -> object:
    return None if record.interference is None else record.interference.spec.model_dump_json()


def _lines(record: InterferenceRecord) -> Iterator[str]:
    if record.interference is not None:
        yield from (*matrix_in_words(record.interference), *advice_in_words(record.interference))


def _tables(record: InterferenceRecord) -> Mapping[str, str]:
    return csv_files(tables.interference_tables(record))


_QUERIED = QueriedTables(
    {
        "meetings": tables.MEETINGS,
        "interference_matrix": tables.MATRIX,
        "interference_means": tables.MEANS,
        "interference_sweep": tables.SWEEP,
    },
    tables.interference_tables,
    texts=("frame", "target", "against", "network_function", "type", "kind", "stand_in_for"),
    counts=("samples", "turn", "repetition", "memory_bytes", "cache_misses"),
    flags=("guaranteed",),
)
STUDY = Study(
    order=50,
    pages=(interference.PAGE,),
    kinds=(
        RecordKind(
            "interference",
            "Interference",
            _title,
            headline,
            _identity,
            _lines,
            measured=measured,
            tables=_tables,
            queried=_QUERIED,
        ),
    ),
    measures=(NORMALIZED,),
    explanations=EXPLANATIONS,
)
