"""Losses by simulated mechanisms, and the patterns that are recognized from what arrives."""

from random import Random
from types import SimpleNamespace
from typing import Any, cast

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
