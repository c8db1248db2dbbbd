"""Rows that wait to be written become the same columns together as each of them alone."""

from hypothesis import given, settings
from hypothesis import strategies as st

from csit_utils.dataset.items import Status, Unrecorded
from csit_utils.dataset.rows import TestRow
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
