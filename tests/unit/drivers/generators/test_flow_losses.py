"""Figures of loss and reordering, against the definitions of the RFCs applied to explicit sequences."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom, norm

from resources.libraries.python.drivers.generators import losses
from resources.libraries.python.drivers.generators.builtin.arrivals import timeline
from resources.libraries.python.drivers.generators.builtin.wire import TimelineReport
from tests.unit.drivers.generators.counted_arrivals import NONE, counted

SPACING_NS = 1_000
BEGIN_NS = 1_700_000_000_000_000_000
SEQUENCES = st.lists(st.integers(0, 60), max_size=120)


def report(arrivals: losses.NumberedArrivals) -> losses.LossReport:
    return losses.count_losses(arrivals, (BEGIN_NS, SPACING_NS))


def of(came: np.ndarray) -> losses.LossReport:
    return report(losses.NumberedArrivals(came, NONE, NONE, 0, NONE, NONE, 0))


def _pairs(values: Sequence[int]) -> list[tuple[int, int]]:
    return sorted(Counter(values).items())


@given(sequence=SEQUENCES)
def test_reordering_is_that_of_rfc_4737_and_rfc_5236(sequence: list[int]) -> None:
    received = list(dict.fromkeys(sequence))
    arrivals = counted(sequence, 61)
    assert losses.arrival_sequence(arrivals).tolist() == received
    assert arrivals.duplicates == len(sequence) - len(received)
    found = report(arrivals).order
    extents, degrees = [], []
    for place, number in enumerate(received):
        earlier = [at for at in range(place) if received[at] > number]
        if not earlier:
            continue
        extents.append(place - earlier[0])  # RFC 4737, section 4.2.2
        degree = 0  # section 5.4
        while degree < place and received[place - degree - 1] > number:
            degree += 1
        degrees += [min(degree, 64)] if degree else []
    assert found.reordered == len(extents)
    assert found.extents == _pairs(extents) and found.degrees == _pairs(degrees)
    in_order = sorted(received)
    # RFC 5236, section 4: displacement from the receive index; section 5: occupancy of the buffer
    assert found.displacements == _pairs([place - in_order.index(number) for place, number in enumerate(received)])
    held: set[int] = set()
    released, occupancies = 0, []
    for number in received:
        held.add(number)
        while released < len(in_order) and in_order[released] in held:
            held.remove(in_order[released])
            released += 1
        occupancies.append(len(held))
    assert found.buffer_occupancy == _pairs(occupancies)


@given(came=st.lists(st.booleans(), max_size=300))
def test_loss_periods_and_distances_are_those_of_the_sequence(came: list[bool]) -> None:
    found = of(np.array(came, dtype=np.bool_))
    runs: list[tuple[int, int]] = []
    for number, arrived in enumerate(came):
        if arrived:
            continue
        if runs and sum(runs[-1]) == number:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((number, 1))
    assert [(first, length) for _, first, length in found.listed] == runs
    assert [offset for offset, _, _ in found.listed] == [first * SPACING_NS for first, _ in runs]
    assert (found.sent, found.received, found.loss_periods) == (len(came), sum(came), len(runs))
    assert found.longest == max((length for _, length in runs), default=0)
    short = [length for _, length in runs if length <= 64]
    assert [pair for pair in found.run_lengths if pair[0] < 64] == [pair for pair in _pairs(short) if pair[0] < 64]
    assert sum(count for _, count in found.run_lengths) == len(runs)
    assert sum(count for _, count in found.distances) == max(0, len(runs) - 1)


@given(values=st.lists(st.integers(-(2**40), 2**40), max_size=50))
def test_bins_are_exact_to_3_percent(values: list[int]) -> None:
    found = losses.histogram(np.array(values, dtype=np.int64))
    assert sum(count for _, count in found) == len(values)
    for edge, _ in found:
        assert any(abs(edge) <= abs(value) <= abs(edge) * (1 + 2**-5) for value in values)


def test_of_an_incomplete_log_or_several_queues_the_order_is_unknown() -> None:
    found = report(counted([5, 4, 3, 2, 1, 0], 6, kept=3)).order
    assert found.reordered == 5 and not found.extents
    assert found.unknown == "the order of 3 of 5 reordered packets was kept"
    found = report(losses.NumberedArrivals(np.ones(9, dtype=np.bool_), NONE, NONE, 0, NONE, NONE, 0, 4)).order
    assert found.reordered is None
    assert found.unknown == "4 packets arrived in other receive queues than the first one"


def test_a_period_is_found_among_random_losses() -> None:
    came = np.random.default_rng(1).random(400_000) > 1e-3
    for start in range(777, 400_000, 4000):
        came[start : start + 32] = False
    found = of(came)
    assert found.period_s == pytest.approx(0.004, rel=0.001)
    assert found.period_share > 0.8 and found.runs_z < -30


def test_random_losses_have_neither_period_nor_dispersion() -> None:
    periods = 0
    for seed in range(40):
        found = of(np.random.default_rng(seed).random(100_000) > 1e-3)
        assert abs(found.runs_z) < 4 and abs(found.dispersion_z) < 4
        periods += found.period_s is not None
    assert periods <= 1


@given(lost=st.integers(10, 30), arrived=st.integers(10, 60), periods=st.integers(1, 10))
def test_the_number_of_loss_periods_has_its_exact_probability(lost: int, arrived: int, periods: int) -> None:
    came = np.array([False] * (lost - periods) + [False, True] * periods + [True] * (arrived - periods))
    below = hypergeom(lost + arrived, arrived + 1, lost)
    few, many = below.cdf(periods), below.sf(periods - 1)
    assert losses.runs_z(came) == pytest.approx(norm.ppf(min(few, 0.5)) if few < many else norm.isf(min(many, 0.5)))


def test_the_time_of_losses_follows_the_sender() -> None:
    came = np.ones(1000, dtype=np.bool_)
    came[500:510] = False
    sent_ns = BEGIN_NS + SPACING_NS * np.arange(1000)
    sent_ns[500:] += 5_000_000  # the sender paused
    stamped = np.flatnonzero(came)
    found = report(losses.NumberedArrivals(came, stamped, sent_ns[stamped], 0, NONE, NONE, 0))
    assert found.duration_s == pytest.approx(0.006, rel=0.01)


EACH_NS = 250_000
DELAY_NS = 30_000


def timeline_of(came: list[bool], *, knows: bool = True, bin_ns: int = 1_000_000) -> TimelineReport:
    """Of frames at equal distances; only those that arrive carry the time at which they left."""
    left_ns = BEGIN_NS + EACH_NS * np.arange(len(came))
    arrived_ns = np.where(came, left_ns + DELAY_NS, 0)
    sent_ns = left_ns if knows else np.where(came, left_ns, 0)
    frames = sum(came)
    return timeline(arrived_ns, sent_ns, (BEGIN_NS - 7_000, EACH_NS), bin_ns, sent=len(came), frames=frames)


@given(came=st.lists(st.booleans(), min_size=1, max_size=400))
def test_no_frame_is_forgotten_or_counted_twice(came: list[bool]) -> None:
    found = timeline_of(came)
    assert sum(found.sent) == len(came)
    assert sum(found.received) == sum(came)
    assert sum(packets for _, packets, _, _ in found.gaps) == came.count(False)
    assert len(found.sent) == len(found.received) == len(found.delay_ns) == (len(came) - 1) // 4 + 1
    assert {delay for delay in found.delay_ns if delay is not None} <= {DELAY_NS}
    for first, packets, begin_ns, end_ns in found.gaps:
        assert not any(came[first : first + packets])
        assert first == 0 or came[first - 1]
        assert begin_ns == BEGIN_NS + (EACH_NS * (first - 1) + DELAY_NS if first else 0)
        behind = first + packets
        assert end_ns == (None if behind == len(came) else BEGIN_NS + EACH_NS * behind + DELAY_NS)
        assert end_ns is None or came[behind]


@given(came=st.lists(st.booleans(), min_size=1, max_size=400), late=st.lists(st.integers(0, 20), min_size=400))
def test_the_longest_silences_are_those_between_arrivals_in_time(came: list[bool], late: list[int]) -> None:
    """Packets may wait, and overtake each other."""
    left_ns = BEGIN_NS + EACH_NS * np.arange(len(came))
    arrived_ns = np.where(came, left_ns + DELAY_NS + EACH_NS * np.array(late[: len(came)]), 0)
    found = timeline(arrived_ns, left_ns, (BEGIN_NS, EACH_NS), 1_000_000, sent=len(came), frames=sum(came))
    in_time = [BEGIN_NS, *sorted(arrived_ns[arrived_ns > 0].tolist())]
    expected = max((after - before for before, after in pairwise(in_time)), default=None)
    assert max((each for each in found.silence_ns if each is not None), default=None) == expected
    assert [each is None for each in found.silence_ns] == [not each for each in found.received]


@given(came=st.lists(st.booleans(), min_size=2, max_size=200).filter(any))
def test_frames_that_took_their_time_stamp_with_them_are_placed_by_the_schedule(came: list[bool]) -> None:
    known, guessed = timeline_of(came), timeline_of(came, knows=False)
    assert sum(guessed.sent) == len(came)
    assert sum(guessed.received) == sum(came)
    assert abs(guessed.begin_ns - known.begin_ns) < 1000


def test_a_flow_of_which_nothing_arrives_is_placed_by_the_schedule_and_a_frame_that_comes_twice_counts_once() -> None:
    found = timeline_of([False] * 8, knows=False)
    assert (found.begin_ns, found.sent, found.arrivals_ns) == (BEGIN_NS - 7_000, [4, 4], None)
    assert found.gaps == [(0, 8, BEGIN_NS - 7_000, None)]
    left_ns = BEGIN_NS + EACH_NS * np.arange(4)
    found = timeline(left_ns + 1, left_ns, (BEGIN_NS, EACH_NS), 1_000_000, sent=4, frames=5)
    assert (sum(found.received), found.duplicates) == (4, 1)


def test_the_largest_gaps_are_kept_and_the_others_counted() -> None:
    found = timeline_of([True, False] * 1200 + [True, False, False, True])
    assert (len(found.gaps), found.more_gaps) == (1000, 201)
    assert max(packets for _, packets, _, _ in found.gaps) == 2
