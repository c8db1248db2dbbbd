"""Records that wait to be written come out as they went in."""

from hypothesis import given
from hypothesis import strategies as st

from csit_utils.dataset.store.details import GROUP_BYTES, WaitingDetails

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
