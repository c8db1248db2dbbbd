"""What waits to be written comes out as it went in, rows together as each of them alone."""

from hypothesis import given, settings
from hypothesis import strategies as st

from csit_utils.dataset.items import Status, Unrecorded
from csit_utils.dataset.rows import TestRow
from csit_utils.dataset.store.details import GROUP_BYTES, WaitingDetails
from csit_utils.dataset.store.staging import WaitingRows
from csit_utils.dataset.store.stored_contents import rows_of_table
from csit_utils.dataset.testrows import HeadRow, head_row, packed_head, unrecorded_row
from resources.libraries.python.model.result import ReceiveRate
from resources.libraries.python.recording.writer import pack
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.unit.csit_utils.builders import result
from tests.unit.examples import share

_FULL = result()
_RECORDS = (
    _FULL,
    result(ndr=None, pdr=None),
    result(mrr=ReceiveRate(offered_pps=2e6, receive_rates_pps=(1e6, 1.2e6), mean_pps=1.1e6, stdev_pps=1e5)),
    result(loss_patterns={"PDR50": "instance 1 lost most"}, quarantined="it broke"),
)


def _head(record: DensityRecord) -> HeadRow:
    return head_row(packed_head(pack(record, digest="0" * 64)), "PASS", "")


_BARE = unrecorded_row(Unrecorded("s.t", "t", ("CSC", "1R1C"), "x", Status.FAIL, "no record"))
_ROWS = st.sampled_from([*map(_head, _RECORDS), _BARE])


def _columns(*rows: HeadRow | TestRow) -> list[TestRow]:
    waiting = WaitingRows("run", {"source": "x"})
    for row in rows:
        waiting.add(row)
    table = waiting.table()
    assert waiting.table() is None
    return [] if table is None else [*rows_of_table(table)]


@settings(max_examples=share(40), deadline=None)
@given(st.lists(st.tuples(_ROWS, st.integers(1, 90)), max_size=4))
def test_a_column_of_some_rows_only_has_its_default_in_the_others(runs: list[tuple[HeadRow | TestRow, int]]) -> None:
    rows = [row for row, count in runs for _ in range(count)]
    expected = [one for row, count in runs for one in _columns(row) * count]
    assert _columns(*rows) == expected


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.lists(st.tuples(_TEXTS, _TEXTS, _TEXTS, _TEXTS | _TEXTS.map(str.encode)))))
def test_every_group_has_what_was_added_since_the_last(groups: list[list[tuple[str, str, str, str | bytes]]]) -> None:
    waiting = WaitingDetails()
    for group in groups:
        for each in group:
            waiting.add(*each)
        batch = waiting.batch()
        texts = [text.decode() if isinstance(text, bytes) else text for *_, text in group]
        expected = [(*names, text) for (*names, _), text in zip(group, texts, strict=True)]
        found = [] if batch is None else list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        assert found == expected
        assert waiting.size_bytes == sum(len(text.encode()) for text in texts)
        waiting.clear()


def test_a_text_larger_than_the_buffer_is_kept_whole_and_so_is_what_came_before() -> None:
    waiting = WaitingDetails()
    large = "x" * (3 * GROUP_BYTES)
    waiting.add("a", "1", "record", "small")
    before = waiting.batch()
    waiting.add("b", "2", "record", large)
    batch = waiting.batch()
    assert before.column("record").to_pylist() == ["small"]
    assert batch.column("record").to_pylist() == ["small", large]
