"""Reading of result files: records of any study, plain or packed, and files of other tools."""

from collections.abc import Iterable, Iterator

from pydantic_core import from_json

from csit_utils.dataset.goal_words import remarked
from csit_utils.dataset.inputs import READABLE, Source
from csit_utils.dataset.items import Item, Problem, ReadError, Recorded, Status, status_of
from resources.libraries.python.model.record import Record
from resources.libraries.python.recording.marker import plain_message
from resources.libraries.python.recording.records import NotARecord, read_record


def parse_record(text: str | bytes, where: str) -> tuple[Record, str | None]:
    """Validate the JSON of a record of any study and version.

    `text`: the JSON, plain or with packed keys.
    `where`: file and test, for errors.

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


_CSIT_TEST = {"version", "test_id", "test_name_long"}
_CSIT_SUITE = {"version", "suite_id", "start_time"}
_NFVBENCH = {"nfvbench_version", "benchmarks"}


def read_foreign(content: bytes, source: str) -> Iterator[Item] | None:
    """Read the result file of another tool.

    Returns:
        Its tests, or one problem with the file. None if it is not JSON, or of no known tool. CSIT's file about a suite
        has no tests.
    """
    try:
        data = from_json(content)
    except ValueError:
        return None
    if not isinstance(data, dict):
        return None
    from csit_utils.dataset.foreign.csit import read_csit  # noqa: PLC0415 - costs time where there is none
    from csit_utils.dataset.foreign.dts import is_dts, read_dts  # noqa: PLC0415 - as above
    from csit_utils.dataset.foreign.nfvbench import read_nfvbench  # noqa: PLC0415 - as above

    # The server of NFVbench wraps the output of its command line in `result`.
    inner = data.get("result")
    if isinstance(inner, dict) and inner.keys() >= _NFVBENCH:
        data = inner
    if data.keys() >= _NFVBENCH:
        found = _named(read_nfvbench(data, source), "NFVbench", source)
    elif data.keys() >= _CSIT_TEST:
        found = _named(read_csit(data, source), "FD.io CSIT", source)
    elif is_dts(data):
        found = _named(read_dts(data, source), "DPDK's DTS", source)
    else:
        return iter(()) if data.keys() >= _CSIT_SUITE else None
    return found


def _named(items: Iterable[Item], tool: str, source: str) -> Iterator[Item]:
    """Items of a file; only a problem if one of them is invalid."""
    try:
        found = list(items)
    except ReadError as error:
        yield Problem(source, f"{source}: invalid result of {tool}: {error}")
    else:
        yield from found


def named_problem(source: Source, error: ReadError) -> Problem:
    """Return an error of a file as its problem, with its name."""
    text = str(error)
    return Problem(source.name, text if text.startswith(source.name) else f"{source.name}: {text}")


def read_json(content: bytes, source: str) -> Iterator[Item]:
    """Yield the items of a record file, or of a result file of another tool.

    Raises:
        ReadError: It is neither.
    """
    if not content.strip():
        raise ReadError(f"{source}: the file is empty")
    foreign = None if b'"schema_version"' in content[:200] else read_foreign(content, source)
    if foreign is not None:
        yield from foreign
        return
    try:
        yield read_recorded(content, source, source)
    except ReadError as error:
        if b'"schema_version"' in content:
            raise
        raise ReadError(f"{error}; {READABLE}") from error
