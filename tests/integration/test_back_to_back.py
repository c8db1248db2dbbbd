"""Back-to-back frames on real packets: the buffer is a token bucket of known size in front of an NF."""

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.search.back_to_back import measure_back_to_back
from tests.integration.local_functions import running
from tests.realtime import LOSS, realtime

RATE_PPS = 20_000
BUCKET = RATE_PPS / 100
"""Frames that the bucket of `rate_limits` takes at once: 10 ms of its rate."""
FLOW_PPS = 50_000
FLOWS = 2

NO_NFT = "; ".join(map(str, missing()))
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(NO_NFT), reason=NO_NFT), pytest.mark.usefixtures("awake")]


@realtime(LOSS)
def test_the_longest_burst_is_that_of_the_bucket() -> None:
    with running(NfKind("linux_router"), limits=(Limits(network_pps=RATE_PPS),)) as deployment:
        found = measure_back_to_back(
            deployment.parts.generator.run,
            frame("64B"),
            flows=FLOWS,
            load_pps=FLOWS * FLOW_PPS,
            throughput_pps=FLOWS * RATE_PPS,
            repetitions=5,
        )
    # While a burst comes, at the rate at which it was really sent, the bucket gets tokens at its own.
    flow_pps = found.offered_pps / FLOWS
    assert found.mean_frames == pytest.approx(BUCKET / (1 - RATE_PPS / flow_pps), rel=0.05), found
    assert found.corrected_buffer_s == pytest.approx(BUCKET / flow_pps, rel=0.1), found
    assert not found.endless
