"""Losses by simulated mechanisms, and the patterns that are recognized from what arrives."""

from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.impairment import PacketLosses, flow_losses
from resources.libraries.python.model.measurements.trial import Direction, FlowLosses
from resources.libraries.python.search.losses import LossPattern, loss_loads, losses_in_words, pattern_of
from tests.unit.examples import share

FLOW = cast(Any, SimpleNamespace(instance=1, direction=Direction.FORWARD))
LOAD_PPS = 100_000.0


def lost_by(truth: PacketLosses, *, utilization: float = 0.5, packets: int = 100_000, seed: int = 1) -> FlowLosses:
    return flow_losses(
        truth,
        FLOW,
        Random(seed),
        packets=packets,
        load_pps=LOAD_PPS,
        capacity_pps=LOAD_PPS / utilization,
        begin_ns=10**18,
    )


def test_a_server_that_pauses_loses_bursts_at_its_period() -> None:
    # 4 ms hold 400 packets: of the 160 of a pause 128 wait, and 32 are dropped
    found = lost_by(PacketLosses(queue=128, pause_every_s=0.004, pause_s=0.0016), utilization=0.1)
    assert pattern_of(found) is LossPattern.PERIODIC
    assert found.burst_packets is not None and abs(found.burst_packets[1] - 32) <= 1
    assert losses_in_words(found).startswith(f"bursts of {found.burst_packets[1]}")
    assert " every 4 ms (1 in 1" in losses_in_words(found)


def test_random_drops_are_recognized() -> None:
    found = lost_by(PacketLosses(random_ratio=0.001))
    assert pattern_of(found) is LossPattern.RANDOM
    assert losses_in_words(found) == f"1 in {float(f'{100_000 / found.lost:.3g}'):,.0f} at random"


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("ratio", [0.001, 0.01, 0.2])
def test_random_drops_of_any_share_are_random(ratio: float, seed: int) -> None:
    assert pattern_of(lost_by(PacketLosses(random_ratio=ratio), packets=20_000, seed=seed)) is LossPattern.RANDOM


def test_pauses_among_random_drops_are_found() -> None:
    truth = PacketLosses(queue=128, pause_every_s=0.004, pause_s=0.0016, random_ratio=0.001)
    found = lost_by(truth, utilization=0.1)
    assert pattern_of(found) is LossPattern.PERIODIC and " every 4 ms" in losses_in_words(found)


def test_an_overloaded_queue_drops_evenly() -> None:
    found = lost_by(PacketLosses(), utilization=1.23)
    assert pattern_of(found) in {LossPattern.EVEN, LossPattern.PERIODIC}
    assert 0.17 < found.lost / found.sent < 0.19 and found.longest == 1


def test_a_longer_path_reorders_and_copies_are_duplicates() -> None:
    found = lost_by(PacketLosses(detour_ratio=0.01, detour_s=0.000105, copied_ratio=0.002))
    assert not found.lost and found.duplicates == pytest.approx(200, abs=60)
    assert found.order.reordered == pytest.approx(1000, abs=150)
    assert max(found.order.extents, key=lambda pair: pair[1])[0] == 10  # 10 packets are sent in 105 us
    assert losses_in_words(found).startswith("none of 100,000 packets lost; ")
    assert f"{found.order.reordered:,} packets reordered (1 in " in losses_in_words(found)
    assert f"{found.duplicates} duplicates" in losses_in_words(found)


@settings(max_examples=share(25), deadline=None)
@given(
    st.integers(1, 300),
    st.floats(0, 0.01),
    st.floats(0, 0.5),
    st.floats(0, 0.5),
    st.floats(0.1, 2),
    st.integers(1, 3000),
)
def test_every_mechanism_has_a_sentence(  # noqa: PLR0917 - drawn
    queue: int, pause_s: float, random_ratio: float, detour_ratio: float, utilization: float, packets: int
) -> None:
    truth = PacketLosses(
        queue=queue,
        pause_every_s=0.02,
        pause_s=pause_s,
        random_ratio=random_ratio,
        detour_ratio=detour_ratio,
        detour_s=0.001,
    )
    found = lost_by(truth, utilization=utilization, packets=packets)
    assert losses_in_words(found)
    assert (pattern_of(found) is LossPattern.NONE) is (found.received == found.sent)
    assert FlowLosses.model_validate_json(found.model_dump_json()) == found


def test_loads_are_ndr_pdr_and_an_overload() -> None:
    assert loss_loads(100.0, 110.0, 500.0) == (("NDR", 100.0), ("PDR", 110.0), ("OVERLOAD", 132.0))
    assert loss_loads(None, 100.0, 110.0) == (("PDR", 100.0), ("OVERLOAD", 110.0))
    assert loss_loads(100.0, 110.0, 110.0) == (("NDR", 100.0), ("PDR", 110.0))
    assert loss_loads(None, None, 110.0) == (("OVERLOAD", 110.0),)
