"""Figures of loss and reordering, against the definitions of the RFCs applied to explicit sequences."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators import losses
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
def test_the_sequence_of_arrivals_is_known_exactly(sequence: list[int]) -> None:
    first = list(dict.fromkeys(sequence))
    arrivals = counted(sequence, 61)
    assert losses.arrival_sequence(arrivals).tolist() == first
    assert arrivals.duplicates == len(sequence) - len(first)


@given(sequence=SEQUENCES)
def test_reordering_is_that_of_rfc_4737_and_rfc_5236(sequence: list[int]) -> None:
    received = list(dict.fromkeys(sequence))
    found = report(counted(sequence, 61)).order
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


@given(came=st.lists(st.booleans(), min_size=1, max_size=300))
def test_loss_periods_and_distances_are_those_of_the_sequence(came: list[bool]) -> None:
    found = of(np.array(came))
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


def test_an_incomplete_log_leaves_the_ratio_only() -> None:
    found = report(counted([5, 4, 3, 2, 1, 0], 6, kept=3)).order
    assert found.reordered == 5 and not found.extents
    assert found.unknown == "the order of 3 of 5 reordered packets was kept"


def test_packets_of_several_receive_queues_have_no_order() -> None:
    found = report(losses.NumberedArrivals(np.ones(9, dtype=np.bool_), NONE, NONE, 0, NONE, NONE, 0, 4))
    assert found.order.reordered is None
    assert found.order.unknown == "4 packets arrived in other receive queues than the first one"


def test_a_period_is_found_among_random_losses() -> None:
    came = np.random.default_rng(1).random(400_000) > 1e-3
    for start in range(777, 400_000, 4000):
        came[start : start + 32] = False
    found = of(came)
    assert found.period_s == pytest.approx(0.004, rel=0.001)
    assert found.period_share is not None and found.period_share > 0.8
    assert found.runs_z is not None and found.runs_z < -100


def test_random_losses_have_neither_period_nor_dispersion() -> None:
    periods = 0
    for seed in range(40):
        found = of(np.random.default_rng(seed).random(100_000) > 1e-3)
        assert found.runs_z is not None and found.dispersion_z is not None
        assert abs(found.runs_z) < 4.5 and abs(found.dispersion_z) < 4.5
        periods += found.period_s is not None
    assert periods <= 1


def test_the_time_of_losses_follows_the_sender() -> None:
    came = np.ones(1000, dtype=np.bool_)
    came[500:510] = False
    sent_ns = BEGIN_NS + SPACING_NS * np.arange(1000)
    sent_ns[500:] += 5_000_000  # the sender paused
    stamped = np.flatnonzero(came)
    found = report(losses.NumberedArrivals(came, stamped, sent_ns[stamped], 0, NONE, NONE, 0))
    assert found.duration_s == pytest.approx(0.006, rel=0.01)


@pytest.mark.parametrize("came", [[], [True], [False], [False] * 20, [True] * 20])
def test_extreme_flows_have_figures(came: list[bool]) -> None:
    found = of(np.array(came, dtype=np.bool_))
    assert found.sent - found.received == came.count(False)
    assert found.period_s is None
