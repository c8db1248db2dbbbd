"""Parsing and validation of records from JSON, plain or packed."""

from csit_utils.dataset.goal_order import remarked
from csit_utils.dataset.items import ReadError
from resources.libraries.python.model.record import Record
from resources.libraries.python.recording.records import NotARecord, read_record
from resources.libraries.python.studies.density.model.record import DensityRecord


def parse_record(text: str | bytes, where: str) -> tuple[Record, str | None]:
    """Validate the JSON of a record of any study and version.

    Args:
        text: The JSON, plain or with packed keys.
        where: File and test, for errors.

    Returns:
        The record, and its digest as `read_record` returns it.

    Raises:
        ReadError: Not a record, or one of an unsupported schema version.
    """
    try:
        record, digest = read_record(text)
    except NotARecord as error:
        raise ReadError(f"{where}: {error}") from error
    return remarked(record), digest


def parse_density(text: str | bytes, where: str) -> tuple[DensityRecord, str | None]:
    """Validate the JSON of the record of a density test, as `parse_record`.

    Raises:
        ReadError: Not a record of a density test.
    """
    record, digest = parse_record(text, where)
    if not isinstance(record, DensityRecord):
        raise ReadError(f"{where}: a record of the study '{record.study}' instead of a density test")
    return record, digest
