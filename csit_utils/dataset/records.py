"""Records in files of results: from JSON text, plain or packed, to a validated record."""

from csit_utils.dataset.items import ReadError
from resources.libraries.python.model.record import Record
from resources.libraries.python.recording.records import NotARecord, read_record
from resources.libraries.python.studies.density.model.record import DensityRecord


def parse_record(text: str | bytes, where: str) -> tuple[Record, str | None]:
    """Validate the JSON of a record of any study and version.

    Args:
        text: The JSON, all of it plain or its heavy keys packed.
        where: The file, and the test in it, for the error's text.

    Returns:
        The record, and its digest where the JSON tells it.

    Raises:
        ReadError: It is no record, or one of another schema version.
    """
    try:
        return read_record(text)
    except NotARecord as error:
        raise ReadError(f"{where}: {error}") from error


def parse_density(text: str | bytes, where: str) -> tuple[DensityRecord, str | None]:
    """Validate the JSON of the record of a density test, as `parse_record`.

    Raises:
        ReadError: It is none.
    """
    record, digest = parse_record(text, where)
    if not isinstance(record, DensityRecord):
        raise ReadError(f"{where}: a record of the study '{record.study}' in the place of a density test's")
    return record, digest
