"""Pages of the ring buffer: what was written is found, wherever pages end and however far apart events are."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.probes.tracer.pages import Words, decode, heads
from tests.unit.drivers.probes.page_maker import PAGE_BYTES, Page, pages

_GAPS = st.one_of(st.integers(0, 5000), st.integers(1 << 26, 1 << 33))
_EVENTS = st.lists(st.tuples(_GAPS, st.integers(2, 60), st.sampled_from(["event", "event", "absolute", "discard"])))


def found(words: Words) -> list[tuple[int, int, int]]:
    """Time, first word of the data and page of each event."""
    events = decode(words)
    data = words.reshape(-1)[events.words]
    return list(zip(events.times_ns.tolist(), data.tolist(), events.pages.tolist(), strict=True))


@given(st.lists(_EVENTS, min_size=1, max_size=5), st.integers(0, 1 << 58))
def test_events_of_many_pages_come_back_with_their_times(rows: list[list[tuple[int, int, str]]], now_ns: int) -> None:
    made: list[Page] = []
    wanted: list[tuple[int, int, int]] = []
    for number, row in enumerate(rows):
        page = Page()
        for gap, words, kind in row:
            now_ns += gap
            mark = len(wanted) + 1
            if kind == "discard":
                page.discard(now_ns, 4 * words)
                now_ns += 1  # a discarded event has a time of its own, which is never that of the event before
            elif page.add(now_ns, np.array([mark] * words, np.uint32).tobytes(), absolute=kind == "absolute"):
                wanted.append((now_ns, mark, number))
        made.append(page)
    assert [(data, page) for _, data, page in found(pages(*made))] == [(data, page) for _, data, page in wanted]
    if not any(kind == "discard" for row in rows for _, _, kind in row):
        assert found(pages(*made)) == wanted


@given(st.integers(0, 1 << 32))
def test_no_page_of_rubbish_leads_outside_of_it(seed: int) -> None:
    page = np.frombuffer(random.Random(seed).randbytes(PAGE_BYTES), np.uint32).reshape(1, -1)
    events = decode(page)
    assert events.times_ns.size == events.words.size <= PAGE_BYTES


def test_a_page_that_ends_early_is_left_there() -> None:
    page, other = Page(), Page()
    assert page.add(5, b"abcd")
    assert other.add(7, b"efgh")
    words = np.stack([page.words(filled=True), other.words()])
    assert [time for time, _, _ in found(words)] == [5, 7]


def test_long_events_and_full_pages_are_read() -> None:
    page = Page()
    while page.add(100, b"x" * 400):
        pass
    assert len(found(pages(page))) == 4080 // 408


def test_the_head_says_that_events_were_lost() -> None:
    lossy, whole = Page(missed=True), Page()
    for page in (lossy, whole):
        page.add(9, b"abcd")
    head = heads(pages(lossy, whole))
    assert head.missed.tolist() == [True, False]
    assert head.times_ns.tolist() == [9, 9]


def test_no_pages_have_no_events() -> None:
    assert decode(np.zeros((0, 1024), np.uint32)).times_ns.size == 0
    assert decode(pages(Page())).times_ns.size == 0
