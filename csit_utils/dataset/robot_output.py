"""Tests of an output of Robot Framework in any form, those whose records rebot has removed included.

`rebot --removekeywords` and log levels above INFO remove the messages with records. A test that passed has one: it is
read from the record files beside the output; where these are missing, the test is left out and reported.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, datetime
from itertools import zip_longest
from typing import BinaryIO

import msgspec

from csit_utils.dataset.inputs import Source, content_of
from csit_utils.dataset.items import Problem, ReadError, Status
from csit_utils.dataset.kinds import Kind
from csit_utils.dataset.scan import Scanned, ScannedTest, scan
from csit_utils.dataset.scan_json import scan_json
from resources.libraries.python.quantities import counted
from resources.libraries.python.recording.marker import plain_message

_QUARTER_S = 900
_ZONES = range(-14 * 4, 14 * 4 + 1)
"""Time zones, in quarters of an hour."""
_EARLY_S, _LATE_S = 1, 30
"""How much before and after its test a record may begin. It begins when the first keyword has described the test."""


def scanned(stream: BinaryIO, source: Source) -> Iterator[Scanned]:
    """Yield every test of an output, then its problems.

    Raises:
        ReadError: The records of all tests were removed, and are not beside it.
    """
    found = scan_json(stream, source.name) if source.kind is Kind.ROBOT_JSON else scan(stream, source.name)
    lost: list[ScannedTest] = []  # also tests that never had a record: the legacy format does not say what was removed
    problems: list[Problem] = []
    has_others = False
    names: set[str] = set()
    for each in found:
        if isinstance(each, ScannedTest):
            names.add(each.long_name)
        if isinstance(each, Problem):
            problems.append(each)
        elif isinstance(each, ScannedTest) and each.record is None and each.status is not None:
            lost.append(each)
        else:
            has_others = has_others or isinstance(each, ScannedTest)
            yield _plain(each)
    records = _records_of(lost, source, names) if lost else ()
    for test, record in zip_longest(lost, records):
        if record is not None:
            with record.open() as content:
                yield _plain(msgspec.structs.replace(test, record=content_of(content)))
        elif test.status is not Status.PASS:
            has_others = True
            yield _plain(test)
    if not records and (missing := [*filter(_had_record, lost)]):
        text = _lost_text(missing, source)
        if not has_others and not problems:
            raise ReadError(text)
        problems.append(Problem(source.name, text))
    yield from problems


def _had_record(test: ScannedTest) -> bool:
    """Whether a test without a record had one, as all that passed; one that failed may have ended before."""
    return test.status is Status.PASS or (test.stripped and test.status is Status.FAIL)


class _Begin(msgspec.Struct):
    """What is needed of a record to recognize its test."""

    test_id: str
    test_name: str
    started_at: datetime


def _records_of(lost: Sequence[ScannedTest], source: Source, names: Set[str]) -> Sequence[Source | None]:
    """Return the record file beside an output of each test; nothing if those of passed tests are not all there.

    A test and its record begin at the same time but for the time zone, which is the same for all tests of a run: the
    records of another run in the folder are not taken for them.
    """
    begun: dict[str, list[tuple[_Begin, Source]]] = {each.name: [] for each in lost}
    for record in source.beside():
        with suppress(msgspec.DecodeError, ReadError), record.open() as content:
            found = msgspec.json.decode(content_of(content), type=_Begin)
            if found.test_name in begun and found.started_at.tzinfo is not None:
                begun[found.test_name].append((found, record))
    zones = [
        _by_zone(
            test,
            # rebot can rename suites: only a record that belongs to another test of the output is not this one's.
            [
                (found.started_at, record)
                for found, record in begun[test.name]
                if found.test_id == test.long_name or found.test_id not in names
            ],
        )
        for test in lost
    ]
    # A test that failed may have ended before its record began.
    passed = [set(found) for test, found in zip(lost, zones, strict=True) if test.status is Status.PASS]
    needed = passed or [set(found) for found in zones if found]
    common = set.intersection(*needed) if needed else set()
    if not common:
        return ()
    records = [found.get(min(common, key=abs)) for found in zones]
    taken = [each.name for each in records if each is not None]
    return records if len(set(taken)) == len(taken) else ()


def _by_zone(test: ScannedTest, records: Sequence[tuple[datetime, Source]]) -> Mapping[int, Source]:
    """Return records that began when a test did, by the time zone of Robot's clock in quarters of an hour."""
    if test.started_at is None:
        return {}
    start = datetime.fromisoformat(test.started_at).replace(tzinfo=UTC)
    found = {}
    for began, record in records:
        zone, late_s = divmod((began - start).total_seconds() + _EARLY_S, _QUARTER_S)
        if late_s <= _EARLY_S + _LATE_S and zone in _ZONES:
            found[int(zone)] = record
    return found


def _plain(item: Scanned) -> Scanned:
    if not isinstance(item, ScannedTest) or (message := plain_message(item.message)) is item.message:
        return item
    return msgspec.structs.replace(item, message=message)


def _lost_text(lost: Sequence[ScannedTest], source: Source) -> str:
    count = counted(len(lost), "test")
    why = "rebot --removekeywords removed it" if any(each.stripped for each in lost) else "it is not in the log"
    return (
        f"{source.name}: {count} without the result record, such as '{lost[0].long_name}': {why}; "
        "name the output that Robot wrote at first, or the folder of the run with results/*.json"
    )
