"""Simulated latency has the right shape, and its histogram says the same as its figures."""

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim import flows
from resources.libraries.python.model.measurements.trial import Direction, FlowLatency

CAPACITY = 6e6


def shape_of(crossings: int, functions: int) -> flows.FlowShape:
    return flows.FlowShape((flows.PORT_NS, *[flows.CROSSING_NS] * crossings, *[flows.NF_NS] * functions, flows.PORT_NS))


def latency(load_pps: float, *, crossings: int = 2, functions: int = 1, sent: int = 5000) -> FlowLatency:
    shape = shape_of(crossings, functions)
    pairs, mean_ns = flows.simulate_latency(shape, load_pps, CAPACITY, sent=sent, received=sent)
    return flows.flow_latency(1, Direction.FORWARD, sent, pairs, mean_ns)


def p99(row: FlowLatency) -> int:
    assert row.p99_ns is not None
    return row.p99_ns


def test_latency_grows_with_load_and_hops() -> None:
    loads = [p99(latency(share * CAPACITY)) for share in (0.0, 0.1, 0.5, 0.9)]
    assert loads == sorted(set(loads))
    assert p99(latency(0.0, crossings=11, functions=10)) > 4 * p99(latency(0.0))


@given(st.floats(0.0, 2e7), st.integers(1, 20000))
def test_figures_ascend_and_count_every_frame(load_pps: float, sent: int) -> None:
    row = latency(load_pps, sent=sent)
    assert row.received == sent
    figures = [row.min_ns, row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns, row.max_ns]
    known = [figure for figure in figures if figure is not None]
    assert len(known) == len(figures)
    assert known == sorted(known)
    assert row.mean_ns is not None
    assert known[0] - 1 <= row.mean_ns <= known[-1] + 1


def test_the_histogram_decodes_to_the_same_figures() -> None:
    row = latency(0.9 * CAPACITY)
    assert row.histogram is not None
    assert row.histogram.startswith("HISTF")
    histogram = HdrHistogram.decode(row.histogram)
    assert histogram.get_total_count() == row.received
    for percent, figure in ((50, row.p50_ns), (90, row.p90_ns), (99, row.p99_ns), (99.9, row.p999_ns)):
        assert histogram.get_value_at_percentile(percent) == pytest.approx(figure, rel=0.002)
    assert histogram.get_mean_value() == pytest.approx(row.mean_ns, rel=0.002)


def test_waiting_is_that_of_the_queue() -> None:
    """Mean waiting of M/D/1 at 80 %: 2 service times, of a vector of 32 packets."""
    shape = shape_of(0, 0)
    _, idle_ns = flows.simulate_latency(shape, 0.0, CAPACITY, sent=100_000, received=100_000)
    _, busy_ns = flows.simulate_latency(shape, 0.8 * CAPACITY, CAPACITY, sent=100_000, received=100_000)
    assert idle_ns is not None
    assert busy_ns is not None
    assert busy_ns - idle_ns == pytest.approx(2 * 32 / CAPACITY * 1e9, rel=0.1)


@pytest.mark.parametrize(("sent", "received"), [(0, 0), (100, 0)])
def test_lost_packets_have_no_latency(sent: int, received: int) -> None:
    pairs, mean_ns = flows.simulate_latency(shape_of(2, 1), 1e6, CAPACITY, sent=sent, received=received)
    row = flows.flow_latency(1, Direction.REVERSE, sent, pairs, mean_ns)
    assert (row.sent, row.received) == (sent, 0)
    assert (row.min_ns, row.mean_ns, row.p50_ns, row.p999_ns, row.max_ns, row.histogram) == (None,) * 6
