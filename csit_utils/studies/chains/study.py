"""Declaration of chain studies in reports."""

from collections.abc import Iterator, Mapping

from csit_utils.dataset.items import Characterized
from csit_utils.report.study import QueriedTables, RecordKind, Study
from csit_utils.studies.chains.explanations import EXPLANATIONS
from csit_utils.studies.chains.pages import chain_study
from resources.libraries.python.csv_tables import csv_files
from resources.libraries.python.studies.chains.analysis import tables
from resources.libraries.python.studies.chains.model.record import ChainsRecord


def _title(record: ChainsRecord) -> str:
    return record.test_name if record.chain_study is None else record.chain_study.spec.name


def headline(item: Characterized) -> str:
    """Return the number of measured chains, and the first suspect with its reason."""
    study = item.record.chain_study
    if study is None:
        return f"no measurement: {item.message}"
    measured = len({run.chain for run in study.runs if run.failed is None})
    failed = len({run.chain for run in study.runs if run.failed is not None})
    begin = f"{measured} of {study.chains} chains were measured" if measured < study.chains else f"{measured} chains"
    failures = f", {failed} failed" if failed else ""
    if not study.suspects:
        return f"{begin}{failures}; no suspects"
    first = study.suspects[0]
    planted = " (a fault was planted in it)" if first.planted else ""
    reason = f": {first.reasons[0]}" if first.reasons else ""
    suspects = f"{len(study.suspects)} suspect{'s' * (len(study.suspects) != 1)}"
    return f"{begin}{failures}; {suspects}, first {first.chain.name}{planted}{reason}"


def _identity(record: ChainsRecord) -> object:
    return None if record.chain_study is None else record.chain_study.spec.model_dump_json()


def _lines(record: ChainsRecord) -> Iterator[str]:
    study = record.chain_study
    if study is None:
        return
    for rank, suspect in enumerate(study.suspects, 1):
        by = f" ({', '.join(suspect.rules)})" if suspect.rules else ""
        why = "; ".join(suspect.reasons)
        yield f"{rank}. {suspect.chain.name}{by}, mean distance {suspect.mean_distance:.3g}: {why}"
    yield from study.notes


def _tables(record: ChainsRecord) -> Mapping[str, str]:
    return csv_files(tables.chain_tables(record))


_QUERIED = QueriedTables(
    {"runs": tables.RUNS, "statistics": tables.STATISTICS, "suspects": tables.SUSPECTS, "reasons": tables.REASONS},
    tables.chain_tables,
    texts=(
        "chain", "resources", "protocol", "frame", "planted", "failed", "owner", "feature", "unit", "reason", "rules",
        "measure",
    ),
    counts=("sessions", "samples", "filtered", "rank"),
)  # fmt: skip
"""Samples and transitions, the largest part, are in the record only."""
STUDY = Study(
    order=40,
    pages=(chain_study.PAGE,),
    kinds=(RecordKind("chains", "Chain study", _title, headline, _identity, _lines, tables=_tables, queried=_QUERIED),),
    explanations=EXPLANATIONS,
)
