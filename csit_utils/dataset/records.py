"""Parsing and validation of records from JSON, plain or packed."""

from csit_utils.dataset.goal_order import remarked
from csit_utils.dataset.items import ReadError, Recorded, Status, status_of
from resources.libraries.python.model.record import Record
from resources.libraries.python.recording.marker import plain_message
from resources.libraries.python.recording.records import NotARecord, read_record


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


def read_recorded(
    text: str | bytes,
    where: str,
    source: str,
    status: Status | None = None,
    message: str = "",
    *,
    label: str | None = None,
) -> Recorded:
    """Return a test with its record, which `parse_record` reads; status and message are its own if Robot's are unknown.

    Raises:
        ReadError: As `parse_record`.
    """
    record, digest = parse_record(text, where)
    ended = status or status_of(record)
    return Recorded(record, source, ended, message or plain_message(record.message), label, digest)
